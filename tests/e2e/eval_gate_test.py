"""kvasir eval gate: a change passes only where every layer that was asked for is measured and holds."""
import json
import pathlib
import signal
import sys
import unittest

from command_line import BAD_FILE, GEMMA, INTERRUPTED, LLAMA, MODELS, NO, UNMET, USAGE, CommandLineTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from make_lora_adapter import write_adapter  # noqa: E402

SIZES = {"hidden": 64, "queries": 64, "keys": 32, "wide": 64, "layers": 2}  # of the tiny model
TEXT = b"the quick brown fox and the lazy dog in 12 stories, told anew. " * 60
TASKS = "".join(json.dumps({"question": f"What is {i} + 1?", "answer": f"It is <<{i}+1={i + 1}>>{i + 1}.\n#### {i + 1}"}) + "\n"
                for i in range(40)).encode()
SCHEMAS = "".join(json.dumps({"name": f"s{i}", "schema": {"enum": [i, i + 10]}, "tests": []}) + "\n" for i in range(6)).encode()
WHOLE = ["--kv-policy", "ladder", "--kv-budget", "1.0"]
SMALL = ["--ctx", "512", "--windows", "4", "--num-questions", "6", "--num-schemas", "6", "--max-tokens", "16", "--least-items", "4",
         "--needle-tokens", "1024", "--needle-depths", "1"]


class EvalGate(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", TEXT)
        self.tasks = self.file("tasks.jsonl", TASKS)
        self.schemas = self.file("schemas.jsonl", SCHEMAS)

    def gate(self, *flags, expect, model=LLAMA, against="exact"):
        return self.json("eval", "gate", model, "--against", against, *SMALL, *flags, expect=expect)

    def layer(self, report, name):
        found = next(layer for layer in report["layers"] if layer["name"] == name)
        return found, {check["name"]: check for check in found["checks"]}

    def test_a_whole_budget_is_bit_for_bit_the_reference(self):
        report = self.gate(*WHOLE, "--layers", "basic,task,structured", "--file", self.text, "--tasks", self.tasks, "--schemas", self.schemas,
                           expect=0)
        self.assertTrue(report["passed"])
        self.assertEqual(["basic", "task", "structured"], [layer["name"] for layer in report["layers"]])
        for name, kl in (("basic", "p1 kl"), ("basic", "p2 kl"), ("task", "forced_kl"), ("task", "forced_worst_kl")):
            check = self.layer(report, name)[1][kl]
            self.assertEqual((0.0, 0.0, True), (check["value"], check["limit"], check["holds"]), check)
        right = self.layer(report, "structured")[1]["guided_right"]
        self.assertEqual((1.0, 6), (right["value"], right["items"]), right)
        self.assertTrue(all({"name", "limit", "less_is_better", "counts"} <= set(check) for layer in report["layers"] for check in layer["checks"]))

    def test_a_loss_fails_and_says_where(self):
        report = self.gate("--kv-policy", "window", "--kv-budget", "0.05", "--layers", "basic", "--file", self.text, expect=NO)
        layer, checks = self.layer(report, "basic")
        self.assertEqual("failed", layer["verdict"])
        self.assertGreater(checks["p2 kl"]["value"], checks["p2 kl"]["limit"])
        self.assertFalse(checks["p2 kl"]["holds"])

    def test_a_layer_without_its_file_is_no_pass(self):
        report = self.gate(*WHOLE, "--layers", "basic,task", "--file", self.text, expect=NO)
        self.assertFalse(report["passed"])
        self.assertTrue(self.layer(report, "basic")[0]["passed"])
        self.assertEqual(("unknown", False), tuple(self.layer(report, "task")[0][key] for key in ("verdict", "passed")))
        self.assertIn("--tasks", self.layer(report, "task")[0]["reason"])

    def test_what_the_reference_cannot_do_does_not_count(self):
        # A model of random weights finds no code and calls no tool.
        report = self.gate(*WHOLE, "--layers", "long", "--file", self.text, expect=NO)
        layer, checks = self.layer(report, "long")
        self.assertFalse(layer["passed"])
        for kind in ("needle-late", "needle-aware", "needle-keys", "recall", "citations", "calls_not_offered"):
            self.assertFalse(checks[kind]["counts"], checks[kind])
            self.assertNotIn("holds", checks[kind])

    def test_fast_and_another_file_are_changes_too(self):
        flags = ["--layers", "basic", "--file", self.text]
        fast, checks = self.layer(self.gate("--fast", *flags, expect=None, model=MODELS / "qwen3-q4_1.gguf"), "basic")
        self.assertGreater(checks["p2 kl"]["value"], 0.0)
        copy = self.file("copy.gguf", pathlib.Path(LLAMA).read_bytes())
        report = self.gate(*flags, expect=0, against=copy)
        self.assertEqual("its file", report["change"])
        self.assertEqual(0.0, self.layer(report, "basic")[1]["p2 kl"]["value"])

    def test_an_adapter_is_a_change(self):
        adapter = write_adapter(self.folder / "style", SIZES, rank=4, seed=1, spread=0.2)
        flags = ["--layers", "basic", "--file", self.text, "--lora", adapter]
        self.assertGreater(self.layer(self.gate(*flags, expect=NO), "basic")[1]["p2 kl"]["value"], 0.01)
        off = self.gate(*flags, "--lora-scale", "0", expect=0)
        self.assertEqual(0.0, self.layer(off, "basic")[1]["p2 kl"]["value"])

    def test_the_report_stays_in_its_folder(self):
        report = self.gate(*WHOLE, "--layers", "basic", "--file", self.text, "--report", self.folder / "new" / "report", expect=0)
        self.assertEqual(report, json.loads((self.folder / "new" / "report" / "gate.json").read_text()))
        self.assertIn("passed, score 1.000", (self.folder / "new" / "report" / "gate.txt").read_text())

    def test_faults_are_one_line(self):
        gate = ["eval", "gate", LLAMA, "--against"]
        self.refusal(USAGE, *gate, "exact", "--file", self.text, says="nothing is changed")
        self.refusal(USAGE, *gate, "exact", "--fast", *WHOLE, says="one change at a time")
        self.refusal(USAGE, *gate, "exact", *WHOLE, "--kv-forecast", "none", says="changes nothing without --kv-policy ladder-learned")
        self.refusal(BAD_FILE, *gate, "exact", "--kv-policy", "ladder-learned", "--kv-budget", "0.3", "--kv-forecast", "none",
                     says="none: there is no such file")
        self.refusal(USAGE, *gate, "exact", *WHOLE, "--layers", "basics", says="did you mean 'basic'?")
        self.refusal(UNMET, *gate, GEMMA, "--layers", "basic", "--file", self.text, says="--against: the models have other tokens")
        bad = self.file("bad.jsonl", b"{}\n")
        self.refusal(BAD_FILE, *gate, "exact", *WHOLE, "--layers", "task", "--tasks", bad, says="tasks: line 1")
        self.refusal(BAD_FILE, *gate, "exact", *WHOLE, "--layers", "structured", "--schemas", bad, says="schemas: line 1")

    def test_what_is_measured_when_it_is_interrupted_is_kept(self):
        text = self.file("long.txt", TEXT * 200)
        process = self.start("eval", "gate", LLAMA, "--against", "exact", *WHOLE, "--file", text, "--windows", "100000", "--json")
        self.assertIn(b"basic", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
        self.assertEqual(INTERRUPTED, process.returncode)
        report = json.loads(stdout)
        self.assertFalse(report["passed"])
        self.assertEqual("interrupted", report["layers"][0]["reason"])


if __name__ == "__main__":
    unittest.main()
