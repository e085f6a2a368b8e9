"""serve --kv-learn: requests that keep all of their KV are learned from; others may refuse."""
import json
import re
import shutil
import sqlite3
import time
import unittest
import urllib.request

from command_line import BAD_FILE, GEMMA, LLAMA, TIME_LIMIT_S, USAGE, CommandLineTest

TEXT = "the quick brown fox and the lazy dog in 12 stories "
LEARNED = {"kv_policy": "ladder-learned", "kv_budget": 0.3, "kv_quality": "best_effort"}
LONG = 1600  # bytes, which are tokens: a step of 512, and its horizon of 512 more


class KvLearn(CommandLineTest):
    def serve(self, *flags, model=LLAMA):
        self.process = self.start("serve", model, "--port", "0", *flags)
        lines = [self.process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(self.process.stderr.read().decode())
        self.addCleanup(self.process.wait, TIME_LIMIT_S)
        self.addCleanup(self.process.terminate)

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return answer.read().decode(), answer.headers

    def complete(self, number, **more):
        prompt = (f"{number} " + TEXT * 40)[:LONG]
        answer, headers = self.call("/v1/completions", {"prompt": prompt, "max_tokens": 8, "seed": number, "ignore_eos": True, **more})
        return json.loads(answer)["usage"], headers

    def learning(self, num_sequences=0):
        """What the server says of its learning, once it has learned from so many sequences."""
        end = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < end:
            rows = [row for row in json.loads(self.call("/v1/kv_policies")[0]) if "learning" in row]
            self.assertEqual([row["policy"] for row in rows], ["ladder-learned"])
            if rows[0]["learning"]["sequences"] >= num_sequences:
                return rows[0]["learning"]
            time.sleep(0.05)
        return self.fail(f"{rows}: {num_sequences} were to be learned from")

    def metric(self, name):
        found = re.search(rf'^kvasir_{name}{{model="[^"]*"}} (\S+)$', self.call("/metrics")[0], re.MULTILINE)
        return float(found[1])

    def calibrated(self):
        """The calibration of model.gguf, with a forecast that is the same for all blocks."""
        self.kvasir("calibrate-kv", "model.gguf", "--file", self.file("text.txt", (TEXT * 60).encode()))
        kept = json.loads((self.folder / "model.gguf.kv.json").read_text())
        heads = len(kept["kv_head_weights"])
        kept["kv_forecast"] = {"input_weights": [0] * (7 * 16), "hidden_biases": [0] * (16 * heads), "output_weights": [0] * 16,
                               "output_biases": [0] * heads}
        return kept

    def test_shadows_keep_all_of_their_kv_and_are_learned_from(self):
        self.serve("--kv-learn", "learned.json", "--kv-shadow-share", "1", "--kv-learn-cpu", "1", "--kv-log", "kv.db")
        plain = self.complete(1)[0]
        self.assertNotIn("kv_shadow", plain)
        for number in range(3):
            usage, headers = self.complete(number, **LEARNED)
            self.assertIs(usage["kv_shadow"], True)
            self.assertEqual(usage["kv"]["dropped"], 0)
            self.assertEqual(headers.get("X-Kvasir-Warning", ""), "")
        said = self.learning(3)
        self.assertEqual((said["state"], said["version"], said["sequences"], said["promotions"]), ("collects", 0, 3, 0))
        self.assertGreater(said["rows"], 3 * 16)
        self.assertEqual(self.metric("kv_learn_sequences_total"), 3)
        self.assertEqual(self.metric("kv_learn_rows_total"), said["rows"])
        self.assertEqual(self.metric("kv_forecast_version"), 0)
        # Those that refuse, are exact, have another policy or draw several answers.
        for more in ({**LEARNED, "kv_learn": False}, {**LEARNED, "kv_quality": "exact"}, {**LEARNED, "kv_policy": "ladder"}, {**LEARNED, "n": 2}):
            self.assertNotIn("kv_shadow", self.complete(7, **more)[0])
        self.complete(8, **LEARNED)
        self.assertEqual(self.learning(4)["sequences"], 4)
        self.assertFalse((self.folder / "learned.json").exists(), "nothing was promoted")
        self.process.terminate()
        self.process.wait(TIME_LIMIT_S)
        with sqlite3.connect(self.folder / "kv.db") as log:
            rows = log.execute("SELECT policy, forecast_version FROM sequences").fetchall()
        self.assertEqual(rows.count(("full-cache-shadow", 0)), 4)
        self.assertEqual(rows.count(("ladder-learned", 0)), 3)

    def test_a_share_of_none_chooses_none(self):
        self.serve("--kv-learn", "learned.json", "--kv-shadow-share", "0")
        self.assertNotIn("kv_shadow", self.complete(1, **LEARNED)[0])
        self.assertEqual(self.learning()["sequences"], 0)

    def test_without_the_flag_nothing_is_said(self):
        self.serve()
        self.assertNotIn("kv_shadow", self.complete(1, **LEARNED)[0])
        self.assertEqual(self.call("/v1/kv_policies")[0], "[]")
        self.assertNotIn("kvasir_kv_learn", self.call("/metrics")[0])

    def test_learning_goes_on_from_a_file_and_from_no_other(self):
        shutil.copy(LLAMA, self.folder / "model.gguf")
        kept = self.calibrated()
        learned = {"version": 4, "rows": 100, "sequences": 200, "cost_ratio": 0.9}
        (self.folder / "learned.json").write_text(json.dumps(kept | {"kv_learned": learned}))
        self.serve("--kv-learn", "learned.json", "--kv-log", "kv.db", "--kv-shadow-share", "0", model="model.gguf")
        self.assertEqual(self.learning()["version"], 4)
        self.assertEqual(self.metric("kv_forecast_version"), 4)
        self.complete(1, **LEARNED)
        self.process.terminate()
        self.process.wait(TIME_LIMIT_S)
        with sqlite3.connect(self.folder / "kv.db") as log:
            self.assertEqual(log.execute("SELECT policy, forecast_version FROM sequences").fetchall(), [("ladder-learned", 4)])
        serve = ("serve", "model.gguf", "--port", "0", "--kv-learn")
        for text, says in (("{", "no JSON"), (json.dumps(kept | {"model": "1-0"}), "of another model"),
                           (json.dumps(kept | {"kv_learned": learned | {"version": -1}}), "kv_learned is not whole"),
                           (json.dumps({"kv_format_costs": {}}), "it has no forecast")):
            (self.folder / "other.json").write_text(text)
            self.refusal(BAD_FILE, *serve, "other.json", says=says)

    def test_a_killed_server_leaves_its_file_and_the_next_goes_on(self):
        shutil.copy(LLAMA, self.folder / "model.gguf")
        learned = json.dumps(self.calibrated() | {"kv_learned": {"version": 4, "rows": 100, "sequences": 200, "cost_ratio": 0.9}})
        file = self.folder / "learned.json"
        file.write_text(learned)
        before = set(self.folder.iterdir())
        for _ in range(2):
            self.serve("--kv-policy", "ladder-learned", "--kv-budget", "0.3", "--kv-learn", "learned.json", "--kv-shadow-share", "1",
                       "--kv-learn-cpu", "1", model="model.gguf")
            self.assertEqual(self.learning()["version"], 4)
            for number in range(3):
                self.complete(number, **LEARNED)
            self.learning(1)  # and more wait
            self.process.kill()
            self.process.wait(TIME_LIMIT_S)
            self.assertEqual(file.read_text(), learned)
            self.assertEqual({path for path in self.folder.iterdir() if path.suffix != ""}, {path for path in before if path.suffix != ""})

    def test_a_server_without_the_policy_says_that_nothing_is_learned(self):
        shutil.copy(LLAMA, self.folder / "model.gguf")
        kept = self.calibrated()
        (self.folder / "forecast.json").write_text(json.dumps(kept))
        learns = ("--kv-learn", "learned.json", "--kv-forecast", "forecast.json")
        of_forecast, of_learning = b"--kv-forecast: it changes nothing without --kv-policy ladder-learned", b"--kv-learn: nothing is learned without"
        for flags in ((), ("--kv-policy", "ladder", "--kv-budget", "0.3"), ("--kv-policy", "ladder-learned")):
            said = self.warnings("model.gguf", *learns, *flags)
            self.assertEqual((said.count(of_forecast), said.count(of_learning), said.count(b"warning")), (1, 1, 2), said)
        for flags in (("--kv-policy", "ladder-learned", "--kv-budget", "0.3"),
                      ("--kv-policy", "ladder", "--kv-budget", "0.3", "--kv-shadow", "0.5", "--kv-canary", "ladder-learned")):
            self.assertNotIn(b"warning", self.warnings("model.gguf", *learns, *flags))
        run = ("run", "model.gguf", "hi", "--raw", "--max-tokens", "1", "--kv-forecast", "forecast.json")
        said = "kvasir: --kv-forecast: it changes nothing without --kv-policy ladder-learned and --kv-budget\n"
        self.assertEqual(self.kvasir(*run).stderr.count(said), 1)
        self.assertNotIn("--kv-forecast", self.kvasir(*run, "--kv-policy", "ladder-learned", "--kv-budget", "0.3").stderr)
        text = self.file("text.txt", (TEXT * 60).encode())
        self.refusal(USAGE, "eval", "kv", "model.gguf", "--file", text, "--report", "report", "--policies", "ladder", "--kv-forecast", "forecast.json",
                     says="--kv-forecast: it changes nothing without ladder-learned among --policies")

    def warnings(self, *flags):
        """What a server says on stderr."""
        self.serve(*flags[1:], model=flags[0])
        self.process.terminate()
        return self.process.communicate(timeout=TIME_LIMIT_S)[1]

    def test_flags_that_mean_nothing_are_refused(self):
        self.refusal(USAGE, "serve", LLAMA, "--kv-shadow-share", "0.5", says="--kv-shadow-share")
        self.refusal(USAGE, "serve", LLAMA, "--kv-learn-cpu", "0.5", says="--kv-learn-cpu")
        self.refusal(USAGE, "serve", LLAMA, "--kv-learn", "", says="--kv-learn")
        for flag, value in (("--kv-shadow-share", "nan"), ("--kv-shadow-share", "2"), ("--kv-learn-cpu", "0"), ("--kv-learn-cpu", "inf")):
            self.refusal(USAGE, "serve", LLAMA, "--kv-learn", "learned.json", flag, value, says=flag)
        self.refusal(USAGE, "serve", LLAMA, GEMMA, "--kv-learn", "learned.json", says="--kv-learn: it goes with one model, 2 are served")


if __name__ == "__main__":
    unittest.main()
