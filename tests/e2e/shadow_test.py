"""serve --kv-shadow: answers are scored again; a KV policy that breaks its promise is held back."""
import json
import time
import unittest
import urllib.error
import urllib.request

from command_line import GEMMA, LLAMA, NO_TOKENIZER, TIME_LIMIT_S, USAGE, CommandLineTest

TEXT = "the quick brown fox and the lazy dog in 12 stories "
COARSE = {"kv_policy": "window", "kv_budget": 0.1, "kv_quality": "best_effort"}


class Shadows(CommandLineTest):
    def serve(self, model, *flags):
        process = self.start("serve", model, "--port", "0", *flags)
        lines = [process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        self.addCleanup(process.wait, TIME_LIMIT_S)
        self.addCleanup(process.terminate)

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return answer.read().decode()

    def status(self, path, body):
        try:
            self.call(path, body)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())["error"]["message"]
        return 200, ""

    def complete(self, number, **more):
        return json.loads(self.call("/v1/completions", {"prompt": f"{number} " + TEXT * 6, "max_tokens": 24, "seed": number,
                                                        "ignore_eos": True, **more}))

    def policies(self, num_scored):
        """The rows by policy, once so many answers have been scored."""
        end = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < end:
            rows = {row["policy"]: row for row in json.loads(self.call("/v1/kv_policies"))}
            if sum(row["scored"] + row["unknown"] for row in rows.values()) >= num_scored:
                return rows
            time.sleep(0.05)
        return self.fail(f"{rows}: {num_scored} were to be scored")

    def test_exact_answers_diverge_by_nothing(self):
        for model in LLAMA, GEMMA:
            self.serve(model, "--kv-shadow", "1")
            for number in range(8):
                self.complete(number)
            row = self.policies(8)["none"]
            self.assertEqual((row["scored"], row["unknown"], row["mean_kl"], row["top1"]), (8, 0, 0, 1))
            self.assertIn('kvasir_quality_shadow_kl_sum{model=', self.call("/metrics"))

    def test_a_bad_policy_is_held_back_and_says_so(self):
        self.serve(LLAMA, "--kv-shadow", "1", "--kv-shadow-kl", "0.0001")
        for number in range(200):
            usage = self.complete(number, **COARSE)["usage"]
            row = self.policies(number + 1)["window"]
            if row["state"] == "held_back":
                break
            self.assertNotIn("kv_downgraded", usage)
        self.assertEqual(row["state"], "held_back", row)
        self.assertIs(self.complete(1000, **COARSE)["usage"]["kv_downgraded"], True)
        rows = self.policies(number + 2)
        self.assertEqual(rows["window"]["downgraded"], 1)
        self.assertEqual(rows["ladder"]["scored"], 1)
        self.assertIn('kvasir_quality_held_back{model="llama-f32",policy="window",quality="best_effort",budget="0.1"} 1', self.call("/metrics"))
        code, says = self.status("/v1/kv_policies/resume", {"policy": "window"})
        self.assertEqual(code, 400)
        self.assertIn("500 clean shadows", says)
        self.assertNotIn("kv_downgraded", self.complete(1001, **{**COARSE, "kv_budget": 0.3})["usage"], "a larger budget has a promise of its own")
        self.assertEqual(self.status("/v1/kv_policies/resume", {"policy": "snapkv"})[0], 404)
        self.assertEqual(self.status("/v1/kv_policies/resume", {})[0], 400)

    def test_a_log_has_each_and_its_slices(self):
        log = str(self.folder / "kv.db")
        self.serve(LLAMA, "--kv-shadow", "1", "--kv-log", log)
        for number in range(4):
            self.complete(number, **COARSE)
        self.complete(4, prompt="a short one")
        self.policies(5)
        end = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < end and sum(row["scored"] + row["unknown"] for row in self.json("kv", "shadows", log)) < 5:
            time.sleep(0.05)
        exact, coarse = self.json("kv", "shadows", log)
        self.assertEqual((exact["policy"], exact["quality"], exact["kl_mean"], exact["log_ratio_mean"], exact["top1"]), ("none", "exact", 0, 0, 1))
        self.assertEqual((coarse["policy"], coarse["quality"], coarse["budget"], coarse["scored"]), ("window", "best_effort", 0.1, 4))
        self.assertGreater(coarse["kl_mean"], 0)
        slices = self.json("kv", "shadows", log, "--by", "cached")
        self.assertEqual(sum(row["scored"] for row in slices), 5)
        said = self.kvasir("kv", "shadows", log, "--by", "answer").stdout.decode()
        self.assertIn("16-63", said)
        self.refusal(USAGE, "kv", "shadows", log, "--by", "size", says="--by")

    def test_another_model_scores(self):
        self.serve(LLAMA, "--kv-shadow", "1", "--shadow-against", LLAMA)
        self.complete(1)
        row = self.policies(1)["none"]
        self.assertEqual((row["quality"], row["promised_kl"], row["mean_kl"]), ("gate", 0.01, 0))

    def test_a_policy_of_one_format_is_one(self):
        """It is lossy whatever the budget is: beams refuse it, and shadows know it."""
        self.serve(LLAMA, "--kv-shadow", "1")
        code, says = self.status("/v1/completions", {"prompt": "hello", "max_tokens": 3, "use_beam_search": True, "n": 2, "kv_policy": "kivi-4"})
        self.assertEqual(code, 400)
        self.assertIn("use_beam_search", says)

    def test_without_shadows_nothing_is_listed(self):
        self.serve(LLAMA)
        self.complete(1, **COARSE)
        self.assertEqual(self.call("/v1/kv_policies"), "[]")
        self.assertNotIn("kvasir_quality", self.call("/metrics"))

    def test_flags_that_mean_nothing_are_refused(self):
        self.refusal(USAGE, "serve", LLAMA, "--kv-auto-resume", says="--kv-auto-resume: it needs --kv-shadow")
        self.refusal(USAGE, "serve", LLAMA, "--shadow-against", LLAMA, says="--shadow-against: it needs --kv-shadow")
        self.refusal(USAGE, "serve", LLAMA, "--kv-canary", "uniform", says="--kv-canary: it needs --kv-shadow")
        self.refusal(USAGE, "serve", LLAMA, "--kv-shadow", "1", "--kv-canary", "ladder", says="--kv-canary: ladder serves already")
        self.refusal(USAGE, "serve", LLAMA, "--kv-shadow", "1", "--kv-canary", "window", says="--kv-canary: it needs a policy")
        self.refusal(USAGE, "serve", LLAMA, "--kv-shadow", "2", says="--kv-shadow")
        for flag in "--kv-shadow", "--kv-shadow-kl", "--kv-max-lost":
            self.refusal(USAGE, "serve", LLAMA, flag, "nan", says=flag)
        done = self.kvasir("serve", LLAMA, "--kv-shadow", "1", "--shadow-against", NO_TOKENIZER, expect=USAGE)
        self.assertIn("kvasir: shadow-against: one of the two models has no tokenizer", done.stderr)
        self.refusal(USAGE, "serve", LLAMA, GEMMA, "--kv-shadow", "1", "--shadow-against", LLAMA, says="it goes with one model, 2 are served")


if __name__ == "__main__":
    unittest.main()
