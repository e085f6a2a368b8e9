"""kvasir draft: what is learned of a model is kept beside it, found there, measured again, and changes no answer."""
import json
import pathlib
import shutil
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, MACHINE, NO, USAGE, CommandLineTest

PROMPTS = "".join(json.dumps({"prompt": f"Once upon a time {i} there was"}) + "\n" for i in range(24))
SHORT = ["--tokens", "6000", "--answer-tokens", "48"]


class Draft(CommandLineTest):
    def model(self, source):
        path = self.folder / pathlib.Path(source).name
        if not path.exists():
            shutil.copy(source, path)
        return str(path)

    def model_with_heads(self):
        model = self.model(LLAMA)
        trained = self.json("draft", "train", model, "--prompts", self.file("prompts.jsonl", PROMPTS.encode()), *SHORT)
        self.assertEqual(model + ".draft", trained["file"])
        return model, trained

    def test_what_is_learned_is_found_and_guesses(self):
        model, trained = self.model_with_heads()
        self.assertGreater(trained["acceptance"][0], 0.02)
        self.assertEqual(sorted(trained["acceptance"], reverse=True), trained["acceptance"])
        asked = ["run", model, "Once upon a time 3 there was", "--raw", "--max-tokens", "200", "--temperature", "0"]
        plain = self.json(*asked, "--speculate", "off")
        guessed = self.json(*asked, "--speculate", "heads")
        self.assertEqual(plain["token_ids"], guessed["token_ids"])
        self.assertEqual(["heads"], [drafter["name"] for drafter in guessed["speculation"]["drafters"]])
        estimates = guessed["speculation"]["estimates"]
        self.assertGreaterEqual(estimates["tokens"], estimates["steps"])
        self.assertGreater(estimates["ms_expected"], 0)

    def test_the_same_seed_learns_the_same(self):
        model, _ = self.model_with_heads()
        first = pathlib.Path(model + ".draft").read_bytes()
        self.model_with_heads()
        self.assertEqual(first, pathlib.Path(model + ".draft").read_bytes())

    def test_check_finds_what_the_file_says(self):
        model, trained = self.model_with_heads()
        info = self.json("draft", "info", model + ".draft")
        check = self.json("draft", "check", model)
        self.assertTrue(check["matches"])
        self.assertEqual(len(check["acceptance"]) + 1, len(check["row_times"]))
        self.assertEqual(1.0, check["row_times"][0])
        for told, measured, shown in zip(trained["acceptance"], check["acceptance"], info["expected"]):
            self.assertAlmostEqual(told, measured, 5)
            self.assertAlmostEqual(told, shown, 5)
        self.assertEqual(info["bytes"], check["bytes"])

    def test_check_says_no_where_guesses_are_worse(self):
        model, _ = self.model_with_heads()
        heads = pathlib.Path(model + ".draft").read_bytes()
        place = heads.index(b"draft.table") + len(b"draft.table") + 16
        spoiled = self.file("spoiled.draft", heads[:place] + bytes(len(heads) - place))
        self.kvasir("draft", "check", model, "--draft-heads", spoiled, expect=NO)

    def test_another_model_refuses_the_file(self):
        model, _ = self.model_with_heads()
        other = self.model(GEMMA)
        shutil.copy(model + ".draft", other + ".draft")
        self.refusal(BAD_FILE, "run", other, "hi", says="whose tokens are not this model's")
        self.refusal(BAD_FILE, "draft", "check", other, says="whose tokens are not this model's")
        self.json("run", other, "hi", "--max-tokens", "2", "--speculate", "suffix")

    def test_faults_are_one_line(self):
        few = self.file("few.jsonl", PROMPTS.encode().splitlines()[0])
        self.refusal(USAGE, "draft", "train", self.model(GEMMA), "--prompts", few, says="prompts: at least 16 are needed, there are 1")
        self.refusal(MACHINE, "draft", "train", LLAMA, "--out", "none/x.draft", says="none/x.draft")
        self.refusal(BAD_FILE, "draft", "train", LLAMA, "--prompts", self.file("bad.jsonl", b"{}\n"), "--out", "x.draft",
                     says="bad.jsonl: line 1")
        self.refusal(BAD_FILE, "draft", "info", LLAMA, says="its architecture is llama")
        self.refusal(BAD_FILE, "draft", "info", self.file("cut.draft", b"GGUF"), says="cut.draft")
        self.refusal(BAD_FILE, "draft", "check", self.model(LLAMA), says="kvasir draft train")
        model = self.model(LLAMA)
        before = pathlib.Path(model).read_bytes()
        self.refusal(USAGE, "draft", "train", model, "--out", model, says="it is there and is no draft file")
        self.assertEqual(before, pathlib.Path(model).read_bytes())
        self.refusal(USAGE, "run", LLAMA, "hi", "--speculate", "off,auto", says="takes off alone")
        self.refusal(USAGE, "bench", LLAMA, "--speculate", "off,auto", "--replay-accept", "nan", says="--replay-accept")
        self.refusal(USAGE, "run", LLAMA, "hi", "--speculate", "headz", says="did you mean 'heads'?")
        self.refusal(USAGE, "run", LLAMA, "hi", "--speculate", "suffix,draft", says="--draft-model")
        self.refusal(USAGE, "run", LLAMA, "hi", "--speculate", "suffix", "--draft-heads", "x.draft", says="leaves them out")
        self.refusal(BAD_FILE, "run", LLAMA, "hi", "--draft-heads", "none.draft", says="none.draft")


class Bench(CommandLineTest):
    def bench(self, *flags):
        return self.json("bench", LLAMA, "--prompt", "0", "--repeat", "1", "--speculate", "off,auto", *flags)["results"]

    def test_a_workload_has_the_same_tokens_each_way(self):
        workload = PROMPTS + json.dumps({"prompt": "Once", "max_tokens": 3, "seed": 5}) + "\n"
        rows = self.bench("--workload", self.file("w.jsonl", workload.encode()), "--gen", "20", "--batch", "1,4")
        self.assertEqual([(1, "off"), (1, "auto"), (4, "off"), (4, "auto")], [(row["batch"], row["speculate"]) for row in rows])
        self.assertEqual(1, len({row["tokens_sha256"] for row in rows}))
        self.assertEqual({"workload"}, {row["test"] for row in rows})

    def test_answers_are_replayed_as_right_as_asked(self):
        off, right = self.bench("--gen", "256", "--replay-accept", "1")
        self.assertEqual(off["tokens_sha256"], right["tokens_sha256"])
        self.assertEqual(1.0, off["tokens_per_step"])
        self.assertGreater(right["tokens_per_step"], 1.5)
        self.assertEqual(1.0, right["accept_rate"])
        wrong = self.bench("--gen", "256", "--replay-accept", "0")[1]
        self.assertEqual(off["tokens_sha256"], wrong["tokens_sha256"])
        self.assertEqual(1.0, wrong["tokens_per_step"])

    def test_replay_needs_guesses(self):
        self.refusal(USAGE, "bench", LLAMA, "--replay-accept", "0.8", says="--speculate has no auto")


if __name__ == "__main__":
    unittest.main()
