"""usage.kv: an answer says what its KV policy kept, in each API; it is what the KV log has."""
import json
import sqlite3
import unittest
import urllib.request

from command_line import GEMMA, LLAMA, TIME_LIMIT_S, USAGE, CommandLineTest

TEXT = "the quick brown fox and the lazy dog in 12 stories " * 4
BUDGET = {"kv_budget": 0.3, "kv_quality": "best_effort", "temperature": 0, "ignore_eos": True}
MESSAGES = [{"role": "user", "content": TEXT}]


class KvUsage(CommandLineTest):
    def serve(self, model, *flags):
        process = self.start("serve", model, "--port", "0", "--kv-log", "kv.db", "--access-log", "access.jsonl",
                             "--no-prefix-cache", "--kv-type", "f16", *flags)
        lines = [process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        self.process = process

    def stop(self):
        self.process.terminate()
        self.process.wait(TIME_LIMIT_S)

    def post(self, path, **body):
        return self.ask(path, **body)[0]

    def ask(self, path, **body):
        """The answer's text, and its warning."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return answer.read().decode(), answer.headers.get("X-Kvasir-Warning", "")

    def whole(self, path, **body):
        return json.loads(self.post(path, **body))

    def streamed(self, path, **body):
        lines = self.post(path, stream=True, **body).splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line != "data: [DONE]"]

    def logged(self):
        """(bytes, share, dropped, dropped share) of each sequence, from the rows of its last step."""
        with sqlite3.connect(self.folder / "kv.db") as log:
            rows = log.execute("""
                SELECT q.bytes_share, s.bytes_after,
                  (SELECT sum(bytes) + 16 * sum(cells) FROM step_formats WHERE step = s.id),
                  (SELECT sum(cells) FROM step_formats WHERE step = s.id),
                  (SELECT coalesce(sum(f.cells), 0) FROM step_formats f JOIN formats n ON n.id = f.format
                     WHERE f.step = s.id AND n.name = 'gone')
                FROM sequences q JOIN steps s ON s.id = (SELECT max(id) FROM steps WHERE sequence = q.id AND planned)
                ORDER BY q.id""").fetchall()
        for share, after, *_ in rows:
            self.assertEqual(share, after)
        return [(num_bytes, share, dropped, dropped / cells) for share, _, num_bytes, cells, dropped in rows]

    def check(self, said):
        self.stop()
        rows = self.logged()
        self.assertEqual(len(rows), len(said))
        for kv, (num_bytes, share, dropped, dropped_share) in zip(said, rows):
            self.assertEqual(list(kv), ["bytes", "share", "dropped", "dropped_share"])
            self.assertAlmostEqual(kv["share"], share, places=12)
            self.assertEqual(kv["dropped"], dropped)
            self.assertAlmostEqual(kv["dropped_share"], dropped_share, places=12)
            self.assertLessEqual(abs(kv["bytes"] - num_bytes), 0.2 * num_bytes)
            self.assertLess(kv["share"], 0.9)
        self.assertGreater(max(kv["dropped"] for kv in said), 0)

    def test_each_api_says_what_the_log_has(self):
        self.serve(LLAMA)
        said = [
            self.whole("/v1/completions", prompt=TEXT, max_tokens=24, **BUDGET)["usage"],
            self.streamed("/v1/completions", prompt=TEXT, max_tokens=24, stream_options={"include_usage": True},
                          **BUDGET)[-1]["usage"],
            self.whole("/v1/chat/completions", messages=MESSAGES, max_tokens=24, **BUDGET)["usage"],
            self.streamed("/v1/chat/completions", messages=MESSAGES, max_tokens=24,
                          stream_options={"include_usage": True}, **BUDGET)[-1]["usage"],
            self.whole("/v1/responses", input=TEXT, max_output_tokens=24, **BUDGET)["usage"],
            self.streamed("/v1/responses", input=TEXT, max_output_tokens=24, **BUDGET)[-1]["response"]["usage"],
            self.whole("/v1/messages", messages=MESSAGES, max_tokens=24, **BUDGET)["usage"],
            [event for event in self.streamed("/v1/messages", messages=MESSAGES, max_tokens=24, **BUDGET)
             if event["type"] == "message_delta"][-1]["usage"],
            self.whole("/completion", prompt=TEXT, n_predict=24, **BUDGET),
            self.streamed("/completion", prompt=TEXT, n_predict=24, **BUDGET)[-1],
        ]
        self.check([usage["kv"] for usage in said])
        lines = [json.loads(line) for line in (self.folder / "access.jsonl").read_text().splitlines()]
        self.assertEqual([line["kv"] for line in lines], [usage["kv"] for usage in said])

    def test_kv_max_lost_share_bounds_what_goes_in_each_api(self):
        self.serve(LLAMA)
        asked = [("/v1/completions", {"prompt": TEXT, "max_tokens": 24}),
                 ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 24}),
                 ("/v1/responses", {"input": TEXT, "max_output_tokens": 24}),
                 ("/v1/messages", {"messages": MESSAGES, "max_tokens": 24}),
                 ("/completion", {"prompt": TEXT, "n_predict": 24})]
        shares = [1, 0.25, 0]
        dropped = {share: [] for share in shares}
        for share in shares:
            for path, body in asked:
                answer, warning = self.ask(path, **body, **BUDGET, kv_max_lost_share=share)
                answer = json.loads(answer)
                kv = (answer if path == "/completion" else answer["usage"])["kv"]
                dropped[share].append(kv["dropped"])
                if share == 0:
                    self.assertIn("and kv_max_lost_share keeps what later tokens may read", warning)
        self.stop()
        with sqlite3.connect(self.folder / "kv.db") as log:
            logged = [share for share, in log.execute("SELECT max_lost_share FROM sequences ORDER BY id")]
        self.assertEqual(logged, [share for share in shares for _ in asked])
        self.assertEqual(dropped[0], [0] * len(asked))
        for all_may_go, some_may in zip(dropped[1], dropped[0.25]):
            self.assertLess(some_may, all_may_go)

    def test_what_the_server_may_lose_is_of_its_quality(self):
        self.serve(LLAMA, "--kv-budget", "0.3", "--kv-quality", "best_effort", "--kv-max-lost", "0")
        own = {"prompt": TEXT, "max_tokens": 24, "temperature": 0, "ignore_eos": True}
        self.assertEqual(self.whole("/v1/completions", **own)["usage"]["kv"]["dropped"], 0)
        kv = self.whole("/v1/completions", **own, kv_quality="best_effort")["usage"]["kv"]
        self.assertGreater(kv["dropped"], 0)

    def test_without_a_budget_there_is_none_and_a_short_one_is_measured(self):
        self.serve(LLAMA)
        self.assertNotIn("kv", self.whole("/v1/completions", prompt=TEXT, max_tokens=4)["usage"])
        kv = self.whole("/v1/completions", prompt="a", max_tokens=2, **BUDGET)["usage"]["kv"]
        self.assertGreater(kv["bytes"], 0)
        self.assertGreater(kv["share"], 0.9)
        self.assertEqual(kv["dropped"], 0)

    def test_a_budget_that_a_short_prompt_does_not_keep_is_said(self):
        self.serve(LLAMA)
        asked = {"/v1/completions": {"prompt": "ab", "max_tokens": 2},
                 "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2},
                 "/v1/responses": {"input": "a", "max_output_tokens": 2},
                 "/v1/messages": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2}}
        for path, body in asked.items():
            for stream in (False, True):
                _, warning = self.ask(path, stream=stream, **body, **BUDGET)
                self.assertRegex(warning, r"kv_budget: the KV cache has \d+% of its size in f16, the budget is 30%: "
                                          r"the last 16 tokens stay as they are")
                self.assertEqual(self.ask(path, stream=stream, **body)[1], "")
        _, warning = self.ask("/v1/completions", prompt="ab", max_tokens=2, **BUDGET | {"kv_budget": "4KiB"})
        self.assertIn("KiB, the budget is 4.00 KiB", warning)
        _, warning = self.ask("/v1/completions", prompt=TEXT * 3, max_tokens=2, **BUDGET)
        self.assertEqual(warning, "")
        said = self.kvasir("run", LLAMA, "--raw", "ab", "-n", "2", "--kv-budget", "0.3").stderr
        self.assertRegex(said, r"kvasir: --kv-budget: the KV cache has \d+% of its size in f16, the budget is 30%: .* gate")
        self.assertNotIn("--kv-budget", self.kvasir("run", LLAMA, "--raw", "ab", "-n", "2").stderr)

    def test_choices_are_added_up(self):
        self.serve(LLAMA)
        usage = self.whole("/v1/completions", prompt=TEXT, max_tokens=24, n=3, **BUDGET)["usage"]
        self.stop()
        rows = self.logged()
        self.assertEqual(len(rows), 3)
        self.assertEqual(usage["kv"]["dropped"], sum(row[2] for row in rows))

    def test_run_says_it_too(self):
        prompt = self.file("prompt.txt", TEXT.encode())
        words = ("run", GEMMA, "--raw", "--file", prompt, "--max-tokens", "24", "--ignore-eos", "--temperature", "0")
        self.assertNotIn("kv", self.json(*words))
        answer = self.json(*words, "--kv-budget", "0.3", "--kv-quality", "best_effort", "--kv-log", "kv.db")
        lossy = self.json(*words, "--kv-budget", "0.1", "--kv-quality", "best_effort")
        bounded = self.json(*words, "--kv-budget", "0.1", "--kv-max-lost", "0")
        self.assertGreater(lossy["kv"]["dropped"], 0)
        self.assertEqual(bounded["kv"]["dropped"], 0)
        refused = self.kvasir(*words, "--kv-max-lost", "2", expect=USAGE).stderr
        self.assertRegex(refused, "^kvasir: --kv-max-lost: [^\n]*\n$")
        [(_, share, dropped, _)] = self.logged()
        self.assertAlmostEqual(answer["kv"]["share"], share, places=12)
        self.assertEqual(answer["kv"]["dropped"], dropped)
        self.assertEqual(answer["kv"]["share"], answer["memory"]["kv_bytes_share"])


if __name__ == "__main__":
    unittest.main()
