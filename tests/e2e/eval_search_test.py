"""kvasir eval search: each way to search runs, is repeatable, and what it counts is true."""
import json
import unittest

from command_line import BAD_FILE, LLAMA, USAGE, CommandLineTest

TASKS = "".join(json.dumps({"prompt": f"Once upon a time {i}", "answer": ".*", "check": "regex"}) + "\n" for i in range(2))
NEVER = json.dumps({"prompt": "Once", "answer": "no such text", "check": "exact"}) + "\n"
SHORT = ["--max-tokens", "12"]


class EvalSearch(CommandLineTest):
    def search(self, tasks, *flags):
        return self.json("eval", "search", LLAMA, "--tasks", self.file("tasks.jsonl", tasks.encode()), *SHORT, *flags)["results"]

    def test_every_method_runs_and_is_repeatable(self):
        flags = ["--methods", "greedy,best_of,vote,beam,revise,tree", "--budgets", "2"]
        rows = self.search(TASKS, *flags)
        self.assertEqual(["greedy", "best_of", "vote", "beam", "revise", "tree"], [row["method"] for row in rows])
        for row in rows:
            self.assertEqual((2, 1.0), (row["items"], row["solved"]), row)
            self.assertGreaterEqual(row["search_tokens"], row["tokens"])
        again = self.search(TASKS, *flags)
        for one, other in zip(rows, again):
            self.assertEqual({**one, "seconds": 0}, {**other, "seconds": 0})

    def test_more_budget_draws_more(self):
        rows = self.search(TASKS, "--methods", "best_of", "--budgets", "1,4")
        self.assertGreater(rows[1]["search_tokens"], rows[0]["search_tokens"])

    def test_what_is_not_solved_counts(self):
        row = self.search(NEVER, "--methods", "greedy")[0]
        self.assertEqual((1, 0.0), (row["items"], row["solved"]))
        self.assertGreater(row["solved_high"], 0.5)

    def test_faults_are_one_line(self):
        self.refusal(BAD_FILE, "eval", "search", LLAMA, "--tasks", self.file("bad", b"{}\n"), says="tasks: line 1")
        self.refusal(USAGE, "eval", "search", LLAMA, "--tasks", self.file("t", NEVER.encode()), "--methods", "beams", says="did you mean 'beam'?")


if __name__ == "__main__":
    unittest.main()
