"""The output of run, tokenize, eval and bench when all is well."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import gguf_edit
from command_line import (BAD_FILE, GEMMA, INTERRUPTED, LLAMA, MACHINE, MODELS, NO_TOKENIZER, TIME_LIMIT_S, UNMET, USAGE,
                          CommandLineTest)
from gguf_edit import Gguf


class Run(CommandLineTest):
    def answer(self, *args, **kwargs):
        return self.json("run", LLAMA, *args, "--max-tokens", "12", **kwargs)

    def test_json_has_every_field(self):
        answer = self.answer("Hello", "--temperature", "0")
        self.assertEqual(list(answer), ["model", "device", "prompt_tokens", "completion_tokens", "text", "token_ids",
                                        "finish_reason", "timing", "memory", "speculation"])
        self.assertEqual(answer["model"], LLAMA)
        self.assertEqual(len(answer["token_ids"]), answer["completion_tokens"])
        self.assertIn(answer["finish_reason"], ["stop", "length"])
        self.assertEqual(list(answer["timing"]),
                         ["load_ms", "packed_cache", "ttft_ms", "prefill_tokens_per_s", "decode_tokens_per_s"])
        self.assertGreater(answer["timing"]["ttft_ms"], 0)
        self.assertGreater(answer["memory"]["peak_bytes"], answer["memory"]["kv_bytes"])

    def test_a_draft_model_changes_no_token(self):
        words = ["run", LLAMA, "Hello, hello", "--temperature", "0", "--max-tokens", "80", "--ignore-eos"]
        plain, drafted = self.json(*words, "--speculate", "off"), self.json(*words, "--draft-model", LLAMA)
        self.assertEqual(plain["token_ids"], drafted["token_ids"])
        self.assertNotIn("speculation", plain)
        said = drafted["speculation"]
        self.assertEqual(list(said), ["steps", "drafted", "accepted", "tokens_per_step", "drafters", "estimates"])
        self.assertEqual(said["steps"], 80 - said["accepted"])
        self.assertEqual(said["drafted"], sum(one["drafted"] for one in said["drafters"]))

    def test_residual_sampling_leaves_a_seed_its_answer(self):
        words = ["run", LLAMA, "Hello, hello", "--temperature", "1", "--seed", "3", "--max-tokens", "80", "--ignore-eos"]
        plain = self.json(*words, "--speculate", "off")
        drafted = self.json(*words, "--draft-model", LLAMA, "--draft-rule", "residual")
        self.assertEqual(plain["token_ids"], drafted["token_ids"])
        self.refusal(USAGE, "run", LLAMA, "Hello", "--draft-rule", "residual", says="--draft-rule residual: ")
        self.refusal(USAGE, "run", LLAMA, "Hello", "--draft-rule", "typical", says="--draft-rule")

    def test_a_draft_model_that_cannot_guess_is_refused(self):
        for code, words, line in ((USAGE, (GEMMA,), "draft model: its tokens are not the model's: token 0 is "),
                                  (BAD_FILE, ("no-such-model",), "no-such-model"),
                                  (USAGE, (LLAMA, "--speculate", "off"), "--speculate off")):
            self.refusal(code, "run", LLAMA, "Hello", "--draft-model", *words, says=line)

    def test_text_is_the_same_with_and_without_json(self):
        answer = self.answer("Hello", "--temperature", "0")
        plain = self.kvasir("run", LLAMA, "Hello", "--max-tokens", "12", "--temperature", "0").stdout
        self.assertEqual(plain.decode(), answer["text"] + "\n")

    def test_a_seed_decides_the_answer(self):
        hot = ["Hello", "--temperature", "2", "--top-p", "1", "--seed"]
        first, again, other = self.answer(*hot, "7"), self.answer(*hot, "7"), self.answer(*hot, "8")
        self.assertEqual(first["token_ids"], again["token_ids"])
        self.assertNotEqual(first["token_ids"], other["token_ids"])

    def test_minus_one_is_no_wish(self):
        for seed in ("--seed=-1", "--seed"):
            args = [seed] if "=" in seed else [seed, "-1"]
            answer = self.json("run", LLAMA, "Hello", *args, "--top-k", "-1", "--max-tokens", "-1")
            self.assertIn(answer["finish_reason"], ["stop", "length"])
            if answer["finish_reason"] == "length":
                self.assertGreater(answer["completion_tokens"], 12)

    def test_name_of_the_model_cannot_steer_the_terminal(self):
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        gguf.metadata["general.name"] = gguf_edit.string("evil\x1b[31m\nname")
        said = self.kvasir("show", self.file("named.gguf", gguf.content()))
        self.assertIn(rb"evil\x1b[31m\x0aname", said.stdout)
        self.assertNotIn(b"\x1b", said.stdout)
        said = self.kvasir("bench", self.file("evil\x1b[31m.gguf", gguf.content()), "--prompt", "8", "--gen", "2")
        self.assertIn(rb"evil\x1b[31m.gguf F32, limits", said.stdout)
        self.assertNotIn(b"\x1b", said.stdout)

    def test_bench_and_the_kv_log_use_the_name_that_was_typed(self):
        self.assertTrue(self.kvasir("bench", LLAMA, "--prompt", "8", "--gen", "0").stdout.decode().startswith(LLAMA + " "))
        self.json("run", LLAMA, "the lazy dog " * 8, "--kv-budget", "0.5", "--kv-log", "kv.db")
        self.assertEqual(self.json("kv", "explain", "kv.db")[0]["model"], LLAMA)

    def test_padding_of_the_vocabulary_is_never_chosen(self):
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        rows, known = len(gguf.strings("tokenizer.ggml.tokens")), 259
        for key in ("tokens", "token_type"):
            values = gguf.metadata["tokenizer.ggml." + key]
            gguf.metadata["tokenizer.ggml." + key] = gguf_edit.first_elements(values, known)
        padded = self.file("padded.gguf", gguf.content())
        answer = self.json("run", padded, "Hello", "--max-tokens", "300", "--temperature", "2", "--ignore-eos")
        self.assertEqual(len(answer["token_ids"]), 300)
        self.assertLess(max(answer["token_ids"]), known)
        whole = self.json("run", LLAMA, "Hello", "--max-tokens", "300", "--temperature", "2", "--ignore-eos")
        self.assertLess(max(whole["token_ids"]), rows)
        self.assertGreaterEqual(max(whole["token_ids"]), known)

    def test_isas_agree(self):
        usable = self.json("version")["isas"]
        answers = {isa: self.answer("Hello", "--temperature", "0", "--isa", isa)["token_ids"] for isa in usable}
        self.assertEqual(len(set(map(tuple, answers.values()))), 1, answers)

    def test_prompt_from_argument_file_and_stdin_is_one(self):
        greedy = ["--temperature", "0"]
        argument = self.answer("two words", *greedy)
        path = self.file("prompt.txt", b"two words\n")
        for stdin in (b"", b"neither read nor needed\n"):
            self.assertEqual(self.answer("--file", path, *greedy, stdin=stdin)["token_ids"], argument["token_ids"])
        self.assertEqual(self.answer(*greedy, stdin=b"two words\n")["token_ids"], argument["token_ids"])

    def test_system_message_is_part_of_the_prompt(self):
        self.assertGreater(self.answer("Hi", "--system", "Be brief.")["prompt_tokens"],
                           self.answer("Hi")["prompt_tokens"])

    def test_control_tokens_in_a_message_are_text(self):
        written = self.answer("<|im_end|>")["prompt_tokens"] - self.answer("")["prompt_tokens"]
        self.assertGreater(written, 1)

    def test_raw_counts_the_text_alone(self):
        ids = self.json("tokenize", LLAMA, "some text")["ids"]
        self.assertEqual(self.answer("some text", "--raw")["prompt_tokens"], len(ids))

    def test_raw_parses_control_tokens_unless_told_otherwise(self):
        self.assertEqual(self.answer("<|im_end|>", "--raw")["prompt_tokens"], 1)
        self.assertEqual(self.answer("<|im_end|>", "--raw", "--special")["prompt_tokens"], 1)
        self.assertGreater(self.answer("<|im_end|>", "--raw", "--no-special")["prompt_tokens"], 1)

    def test_a_model_that_is_not_here_is_said_before_stdin_is_read(self):
        self.assertIn("no model is called 'nothere'", self.kvasir("run", "nothere", expect=BAD_FILE).stderr)

    def test_a_text_that_comes_by_a_pipe_holds_up_no_signal(self):
        os.mkfifo(self.folder / "pipe")
        for verb in (("eval", "ppl"), ("eval", "kv", "--report", "r"), ("calibrate-kv",)):
            with self.subTest(verb):
                process = self.start(*verb, LLAMA, "--file", "pipe")
                time.sleep(0.5)
                self.assertIsNone(process.poll())
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(10), -signal.SIGTERM)

    def test_model_without_template_continues_the_text(self):
        done = self.kvasir("run", GEMMA, "in the", "--max-tokens", "4")
        self.assertIn("no chat template", done.stderr)

    def test_a_stop_string_ends_the_answer_before_it(self):
        text = self.answer("Hello", "--temperature", "0")["text"]
        stop = text[len(text) // 2:][:2]
        answer = self.answer("Hello", "--temperature", "0", "--stop", stop)
        self.assertEqual(answer["text"], text[:text.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")

    def test_max_tokens_ends_the_answer(self):
        answer = self.json("run", LLAMA, "Hello", "--max-tokens", "3", "--temperature", "0", "--raw")
        self.assertEqual((answer["completion_tokens"], answer["finish_reason"]), (3, "length"))

    def test_quiet_says_nothing_else(self):
        self.assertEqual(self.kvasir("run", LLAMA, "Hi", "--max-tokens", "2", "--quiet").stderr, "")

    def test_no_escape_codes_without_a_terminal(self):
        done = self.kvasir("run", LLAMA, "Hi", "--max-tokens", "2", "--temperature", "0")
        self.assertNotIn("\x1b", done.stderr)
        self.assertEqual(self.kvasir("rnu", expect=2, env={"NO_COLOR": "1"}).stderr.count("\x1b"), 0)

    def test_a_full_disk_is_noticed(self):
        with open("/dev/full", "wb") as full:
            process = self.start("run", LLAMA, "Hi", "--max-tokens", "2", stdout=full, stdin=subprocess.DEVNULL)
            self.assertEqual(process.wait(TIME_LIMIT_S), MACHINE)

    def test_ctrl_c_keeps_what_was_said(self):
        process = self.start("run", LLAMA, "Hello", "--raw", "--ignore-eos", "--max-tokens", "2000",
                             stdin=subprocess.DEVNULL)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertTrue((first + rest).endswith(b"\n"))


class Tokenize(CommandLineTest):
    def test_round_trip(self):
        text = "The 12 quick  foxes, 天气 \U0001F600\n\ttab <|im_start|> end\n"
        for model in (LLAMA, GEMMA):
            with self.subTest(model):
                ids = self.json("tokenize", model, "--no-bos", "--no-special", stdin=text.encode())["ids"]
                spaced = " ".join(map(str, ids))
                plain = self.kvasir("tokenize", model, "--no-bos", "--no-special", stdin=text.encode()).stdout
                self.assertEqual(plain.decode(), spaced + "\n")
                if model == LLAMA:  # the tiny SentencePiece vocabulary has no tokens for every character
                    self.assertEqual(self.kvasir("tokenize", model, "--decode", stdin=spaced.encode()).stdout,
                                     text.encode())
                    self.assertEqual(self.json("tokenize", model, "--decode", *map(str, ids))["text"], text)

    def test_bos_is_added_where_the_model_wants_it(self):
        with_bos, without = (self.json("tokenize", GEMMA, "in", *flag)["ids"] for flag in ([], ["--no-bos"]))
        self.assertEqual(with_bos[1:], without)

    def test_control_tokens_mean_themselves_unless_told_otherwise(self):
        self.assertGreater(len(self.json("tokenize", LLAMA, "<|im_end|>", "--no-special")["ids"]), 1)
        self.assertEqual(len(self.json("tokenize", LLAMA, "<|im_end|>", "--special")["ids"]), 1)
        ids = self.json("tokenize", LLAMA, "<|im_end|>")["ids"]
        self.assertEqual(len(ids), 1)
        self.assertEqual(self.json("tokenize", LLAMA, "--decode", str(ids[0]))["text"], "")
        self.assertEqual(self.json("tokenize", LLAMA, "--decode", "--special", str(ids[0]))["text"], "<|im_end|>")

    def test_files_are_read_to_the_last_byte(self):
        path = self.file("text.txt", b"one\ntwo\n")
        self.assertEqual(self.json("tokenize", LLAMA, "--file", path)["ids"],
                         self.json("tokenize", LLAMA, stdin=b"one\ntwo\n")["ids"])


class Measure(CommandLineTest):
    def interrupted(self, *args):
        """The stdout of a measurement that would take minutes, when Ctrl-C comes after its first news."""
        process = self.start(*args, "--json", stdin=subprocess.DEVNULL)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(process.returncode, INTERRUPTED, stderr)
        self.assertIn(b"interrupted after ", stderr)
        return stdout

    def test_any_batch_finds_room(self):
        for gen, batch in ((5, "2,3,4,5,7,8"), (8, "4"), (16, "2"), (30, "6")):
            with self.subTest(gen=gen, batch=batch):
                self.json("bench", LLAMA, "--prompt", "0", "--gen", str(gen), "--repeat", "1", "--batch", batch)

    def test_ctrl_c_keeps_the_windows_and_cases_that_are_done(self):
        path = self.file("text.txt", self.TEXT * 2000)
        done = json.loads(self.interrupted("eval", "ppl", LLAMA, "--file", path, "--ctx", "64"))
        self.assertGreater(done["tokens"], 0)
        logits = json.loads(self.interrupted("eval", "logits", LLAMA, "--file", path, "--ctx", "64",
                                             "--out", "logits.npy"))
        rows, columns = logits["tokens"], logits["vocab"]
        self.assertIn(f"'shape': ({rows}, {columns})".encode(), (self.folder / "logits.npy").read_bytes()[:128])
        self.assertEqual((self.folder / "logits.npy").stat().st_size, 128 + 4 * rows * columns)
        done = json.loads(self.interrupted("bench", LLAMA, "--prompt", "0", "--gen", "1000", "--repeat", "1000",
                                           "--batch", "1,1,1,1,1,1,1,1"))
        self.assertLess(len(done["results"]), 8)

    def test_windows_behind_those_of_the_tuning_are_measured(self):
        path = self.file("text.txt", self.TEXT * 12)
        args = ["eval", "kv", MODELS / "qwen3-q4_1.gguf", "--file", path, "--suite", "p2", "--policies", "q8", "--budgets", "1", "--long-windows", "0"]
        rows = {}
        for first, count in ((0, 3), (2, 1)):
            report = self.folder / f"from{first}"
            self.json(*args, "--windows", str(count), "--windows-from", str(first), "--report", report)
            lines = [line for line in (report / "rows.csv").read_text().splitlines() if line.startswith("p2,")]
            rows[first] = {line.split(",")[2]: line for line in lines}
        self.assertEqual(["2"], list(rows[2]))
        self.assertEqual(rows[0]["2"], rows[2]["2"])
        self.refusal(UNMET, *args, "--windows-from", "9000", "--report", self.folder / "none", says="--windows-from 9000: the text has")

    def test_a_bench_with_adapters_measures_both(self):
        write = [sys.executable, MODELS.parents[2] / "scripts/make_lora_adapter.py", self.folder / "style", "--hidden", "64", "--queries", "64", "--keys",
                 "32", "--wide", "64", "--layers", "2"]
        subprocess.run(write, check=True)
        for kind in ("f16", "int8"):
            found = self.json("bench", LLAMA, "--prompt", "8", "--gen", "8", "--repeat", "1", "--lora", f"s={self.folder}/style", "--lora-type", kind)
            self.assertEqual([None, ["s"], None, ["s"]], [row.get("lora") for row in found["results"]])
            plain, adapted = found["results"][2:]
            self.assertGreater(adapted["bytes_per_step"], plain["bytes_per_step"])

    TEXT = b"the quick brown fox and the lazy dog in 12 stories on the hill " * 30

    def test_perplexity(self):
        path = self.file("text.txt", self.TEXT)
        args = ["eval", "ppl", LLAMA, "--file", path, "--ctx", "64"]
        result = self.json(*args, "--chunks", "3")
        self.assertEqual(list(result), ["ppl", "stderr", "tokens", "nll_sum", "kv_bytes_share", "kv_bytes_peak",
                                        "hidden_bytes_peak", "prompt_tokens_per_s"])
        self.assertEqual(result["tokens"], 3 * 31)
        self.assertGreater(result["ppl"], 1)
        self.assertAlmostEqual(self.json(*args, "--chunks", "3", "--max-num-batched-tokens", "16")["nll_sum"],
                               result["nll_sum"], places=9)  # chunks do not change numbers
        whole = self.json(*args, "--chunks", "3", "--no-prefill-only")
        self.assertEqual(whole["nll_sum"], result["nll_sum"])
        self.assertEqual(whole["kv_bytes_peak"], 2 * result["kv_bytes_peak"])  # LLAMA has two layers
        self.assertEqual(whole["hidden_bytes_peak"], 0)
        self.assertEqual(result["hidden_bytes_peak"], 64 * 64 * 4)

    def test_logits_file(self):
        path, out = self.file("text.txt", self.TEXT), self.folder / "logits.npy"
        self.json("eval", "logits", LLAMA, "--file", path, "--ctx", "32", "--tokens", "40", "--out", out)
        content = out.read_bytes()
        self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
        header_bytes = int.from_bytes(content[8:10], "little")
        self.assertIn(b"'shape': (40, 275)", content[10:10 + header_bytes])
        self.assertEqual(len(content), 10 + header_bytes + 40 * 275 * 4)

    def test_bench_works_without_tokenizer(self):
        report = self.json("bench", NO_TOKENIZER, "--prompt", "16", "--gen", "8", "--depth", "0,20", "--batch", "1,3",
                           "--repeat", "2")
        self.assertEqual(list(report), ["machine", "build", "model", "device", "limits", "results"])
        self.assertEqual(list(report["limits"]), ["read_gb_s", "int8_gmac_s", "fp32_gflop_s"])
        shapes = [(r["test"], r["n_prompt"], r["n_gen"], r["depth"], r["batch"]) for r in report["results"]]
        self.assertEqual(shapes, [("prompt", 16, 0, 0, 1), ("generation", 0, 8, 0, 1), ("generation", 0, 8, 0, 3),
                                  ("generation", 0, 8, 20, 1), ("generation", 0, 8, 20, 3)])
        for result in report["results"]:
            speed = result["tokens_per_s"]
            self.assertEqual(len(speed["runs"]), 2)
            self.assertTrue(0 < speed["min"] <= speed["median"] <= speed["max"])
            self.assertTrue(0 < result["share_of_limit"] <= 1)

    def test_bench_takes_several_ways_of_guessing(self):
        report = self.json("bench", LLAMA, "--prompt", "8", "--gen", "64", "--batch", "1,2", "--repeat", "1", "--speculate", "off,auto")
        prompt, *generated = report["results"]
        self.assertEqual([(r["batch"], r["speculate"]) for r in generated], [(1, "off"), (1, "auto"), (2, "off"), (2, "auto")])
        self.assertNotIn("speculate", prompt)
        for off, auto in (generated[:2], generated[2:]):
            self.assertEqual(off["tokens_per_step"], 1)
            self.assertNotIn("accept_rate", off)
            self.assertGreater(auto["tokens_per_step"], 1)
            self.assertTrue(0 < auto["accept_rate"] <= 1)
            self.assertEqual(off["tokens_sha256"], auto["tokens_sha256"])
        self.assertEqual(len({r["tokens_sha256"] for r in report["results"]}), 3)
        self.refusal(USAGE, "bench", LLAMA, "--speculate", "off,always", says="--speculate")

    def test_bench_leaves_kinds_out(self):
        report = self.json("bench", NO_TOKENIZER, "--prompt", "0", "--gen", "4", "--repeat", "1")
        self.assertEqual([r["test"] for r in report["results"]], ["generation"])
        report = self.json("bench", NO_TOKENIZER, "--prompt", "8", "--gen", "0", "--repeat", "1")
        self.assertEqual([r["test"] for r in report["results"]], ["prompt"])


if __name__ == "__main__":
    unittest.main()
