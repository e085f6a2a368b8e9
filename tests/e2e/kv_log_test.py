"""--kv-log writes what a KV policy did; `kv explain` says it again."""
import os
import sqlite3
import unittest

from command_line import BAD_FILE, GEMMA, MACHINE, USAGE, CommandLineTest

POLICY = ["--kv-budget", "0.3", "--kv-quality", "best_effort", "--temperature", "0"]
LOSSLESS = ["--temperature", "0"]


class KvLog(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.log = str(self.folder / "kv.db")
        self.prompt = self.file("prompt.txt", b"the quick brown fox and the lazy dog in 12 stories " * 5)

    def run_logged(self, *flags):
        return self.json("run", GEMMA, "--raw", "--file", self.prompt, "--max-tokens", "24", "--ignore-eos", *flags,
                         "--kv-log", self.log)

    def rows(self, sql):
        with sqlite3.connect(self.log) as database:
            return database.execute(sql).fetchall()

    def test_the_answer_is_the_same_and_the_bytes_agree(self):
        answer = self.run_logged(*POLICY)
        plain = self.json("run", GEMMA, "--raw", "--file", self.prompt, "--max-tokens", "24", "--ignore-eos", *POLICY)
        self.assertEqual(answer["token_ids"], plain["token_ids"])
        [(last,)] = self.rows("SELECT bytes_after FROM steps WHERE planned ORDER BY id DESC LIMIT 1")
        self.assertAlmostEqual(last, answer["memory"]["kv_bytes_share"], places=12)
        [(tokens, share)] = self.rows("SELECT tokens, bytes_share FROM sequences")
        self.assertAlmostEqual(share, last, places=12)
        self.assertEqual(tokens, answer["prompt_tokens"] + answer["completion_tokens"] - 1)
        self.assertEqual(self.rows("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL"), [(1,)])

    def test_explain_lists_sequences_steps_and_actions(self):
        self.run_logged(*POLICY)
        self.run_logged(*POLICY)
        listed = self.json("kv", "explain", self.log)
        self.assertEqual([s["seq"] for s in listed], [1, 2])
        self.assertEqual(listed[0]["policy"], "ladder")
        self.assertAlmostEqual(listed[0]["budget"], 0.3)

        explained = self.json("kv", "explain", self.log, "--seq", "2")
        self.assertEqual(list(explained), ["sequence", "steps", "regret", "reasons"])
        self.assertEqual(len(explained["steps"]), listed[1]["num_steps"])
        self.assertEqual(sum(s["num_actions"] for s in explained["steps"]), listed[1]["num_actions"])
        busiest = max(explained["steps"], key=lambda s: s["num_actions"])

        at_token = self.json("kv", "explain", self.log, "--seq", "2", "--token", busiest["token"])
        [step] = at_token["steps"]
        self.assertEqual(len(step["actions"]), busiest["num_actions"])
        action = step["actions"][0]
        self.assertEqual(list(action), ["layer", "head", "block", "first_token", "from", "to", "reason", "shared",
                                        "forecast", "loss_per_byte"])
        self.assertEqual(action["reason"], "least-loss")
        self.assertIn("lose the least per byte", at_token["reasons"]["least-loss"])
        self.assertTrue(0 <= action["forecast"] <= 1)

        before = self.json("kv", "explain", self.log, "--seq", "2", "--token", busiest["token"] - 1)
        self.assertEqual(before["steps"][0]["token"], busiest["token"])  # what was done next
        block = self.json("kv", "explain", self.log, "--seq", "2", "--token", busiest["token"], "--block",
                          action["block"])
        self.assertEqual({a["block"] for a in block["steps"][0]["actions"]}, {action["block"]})
        history = self.json("kv", "explain", self.log, "--seq", "2", "--block", action["block"])
        self.assertEqual(history["steps"][0]["actions"][0]["from"], "f16")
        self.assertIn(busiest["token"], [s["token"] for s in history["steps"]])

    def test_text_says_the_same(self):
        self.run_logged(*POLICY)
        said = self.kvasir("kv", "explain", self.log).stdout.decode()
        self.assertIn("ladder", said)
        self.assertIn("--seq SEQ", said)
        [(token, block)] = self.rows("SELECT s.token, a.block FROM actions a JOIN steps s ON s.id = a.step LIMIT 1")
        said = self.kvasir("kv", "explain", self.log, "--seq", "1").stdout.decode()
        self.assertIn("cells whose attention is known", said)
        said = self.kvasir("kv", "explain", self.log, "--seq", "1", "--token", token).stdout.decode()
        self.assertIn(f"at {token} tokens: ", said)
        self.assertIn(f"{16 * block}-{16 * block + 15}", said)
        self.assertIn("least-loss: of all steps down", said)
        said = self.kvasir("kv", "explain", self.log, "--seq", "1", "--token", token, "--block", block).stdout.decode()
        self.assertIn("LAYER  HEAD", said)

    def test_without_a_lossy_policy_there_is_nothing_to_say(self):
        self.run_logged(*LOSSLESS)
        self.assertEqual(self.json("kv", "explain", self.log), [])
        self.assertIn("No KV policy has acted yet", self.kvasir("kv", "explain", self.log).stdout.decode())

    def test_every_verb_that_has_policies_logs(self):
        text = self.file("text.txt", b"the quick brown fox and the lazy dog in 12 stories on the hill " * 30)
        self.json("eval", "ppl", GEMMA, "--file", text, "--ctx", "128", "--chunks", "2", "--kv-budget", "0.4",
                  "--max-num-batched-tokens", "64", "--kv-log", self.log)
        self.json("bench", GEMMA, "--prompt", "0", "--gen", "32", "--depth", "64", "--repeat", "1",
                  "--kv-budget", "0.4", "--kv-log", self.log)
        self.assertEqual(self.rows("SELECT count(*) FROM runs"), [(2,)])
        [(num_sequences,)] = self.rows("SELECT count(*) FROM sequences")
        self.assertGreaterEqual(num_sequences, 4)

    def test_refusals(self):
        diary = self.file("diary.txt", b"not a database" * 100)
        self.refusal(BAD_FILE, "kv", "explain", str(self.folder / "none.db"), says="No such file")
        self.refusal(BAD_FILE, "kv", "explain", diary, says="is no KV log")
        self.refusal(BAD_FILE, "run", GEMMA, "hi", "--kv-log", diary, says="is no KV log")
        self.refusal(MACHINE, "run", GEMMA, "hi", "--kv-log", "/nowhere/kv.db", says="/nowhere/kv.db: cannot be opened")
        os.mkfifo(self.folder / "pipe")
        self.refusal(MACHINE, "run", GEMMA, "hi", "--kv-log", "pipe", says="pipe: cannot be opened")
        self.refusal(MACHINE, "run", GEMMA, "hi", "--kv-log", "/dev/null", says="/dev/null: cannot be written")
        self.run_logged(*POLICY)
        self.refusal(USAGE, "kv", "explain", self.log, "--seq", "7", says="has no sequence 7")
        self.refusal(USAGE, "kv", "explain", self.log, "--seq", "1", "--token", "100000", says="acted last at")
        self.refusal(USAGE, "kv", "explain", self.log, "--token", "5", says="needs --seq")
        self.refusal(USAGE, "kv", "explain", self.log, "--block", "5", says="needs --seq")
        self.refusal(USAGE, "kv", "explain", self.log, "--seq", "0", says="--seq")
        self.refusal(USAGE, "kv", "explain")
        self.refusal(USAGE, "kv")

    def test_a_log_that_was_cut_off_is_told_as_far_as_it_got(self):
        self.run_logged(*POLICY)
        with sqlite3.connect(self.log) as database:
            database.execute("UPDATE runs SET ended_at = NULL")
            database.execute("UPDATE sequences SET tokens = NULL, bytes_share = NULL")
            database.execute("DELETE FROM blocks")
        self.assertIsNone(self.json("kv", "explain", self.log)[0]["tokens"])
        self.kvasir("kv", "explain", self.log, "--seq", "1")

    def test_names_in_the_log_cannot_steer_the_terminal(self):
        self.run_logged(*POLICY)
        with sqlite3.connect(self.log) as database:
            database.execute("UPDATE sequences SET client_id = 'evil' || char(27) || '[31m', policy = char(27)")
            database.execute("UPDATE reasons SET meaning = char(27) || '[2J'")
            [(token,)] = database.execute("SELECT token FROM steps ORDER BY actions DESC LIMIT 1").fetchall()
        for flags in ([], ["--seq", "1"], ["--seq", "1", "--token", str(token)]):
            self.assertNotIn(b"\x1b", self.kvasir("kv", "explain", self.log, *flags).stdout)


if __name__ == "__main__":
    unittest.main()
