"""kvasir plan: sums, limits and advice from a header, on this machine or on the hub."""
import pathlib
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, NO, NO_TOKENIZER, USAGE, CommandLineTest
from hub_server import Hub, Repository

PARTS = ("weights_bytes", "mapped_bytes", "workspace_bytes", "kv_bytes", "program_bytes")


class Plan(CommandLineTest):
    def plan(self, *args, **kwargs):
        return self.json("plan", *args, **kwargs)

    def test_the_total_is_the_sum_of_its_parts(self):
        plan = self.plan(LLAMA, "--context", "256", "--users", "2")
        self.assertEqual(plan["total_bytes"], sum(plan[part] for part in PARTS))
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["advice"], [])
        self.assertGreater(plan["decode_tokens_per_s"], 0)
        self.assertGreater(plan["prefill_tokens_per_s"], 0)
        self.assertIn(plan["bound_by"], ("bandwidth", "compute"))
        self.assertEqual(plan["kv_bytes"], 2 * 256 * plan["kv_bytes_per_token"])

    def test_kv_is_what_show_says(self):
        for model in (LLAMA, GEMMA):
            shown = self.json("show", model)[0]["kv_bytes_per_token"]
            for kind in ("q12", "f16"):
                self.assertEqual(self.plan(model, "--context", "64", "--kv-type", kind)["kv_bytes_per_token"], shown[kind])

    def test_the_largest_that_fit(self):
        roomy = self.plan(LLAMA, "--context", "512")
        memory = roomy["total_bytes"] + 3 * 512 * roomy["kv_bytes_per_token"] + (1 << 20)
        plan = self.plan(LLAMA, "--context", "512", "--memory", memory)
        self.assertLess(plan["max_users"], 4096)
        self.assertTrue(self.plan(LLAMA, "--context", "512", "--users", plan["max_users"], "--memory", memory)["fits"])
        more = self.plan(LLAMA, "--context", "512", "--users", plan["max_users"] + 64, "--memory", memory, expect=NO)
        self.assertFalse(more["fits"])

    def test_what_does_not_fit_gets_advice(self):
        plan = self.plan(LLAMA, "--context", "2048", "--users", "512", "--memory", "60MiB", "--kv-type", "f32", expect=NO)
        kinds = [line.split(":")[0].split(" (")[0] for line in plan["advice"]]
        order = ["shorter prompts", "a smaller KV format", "a KV budget", "smaller weights", "fewer users", "more memory"]
        self.assertEqual(kinds, [kind for kind in order if kind in kinds])
        self.assertEqual(kinds[-1], "more memory")
        said = self.kvasir("plan", LLAMA, "--context", "2048", "--users", "512", "--memory", "1MiB", expect=NO).stdout.decode()
        self.assertIn("does not fit into 1.00 MiB", said)

    def test_a_server_starts_with_the_budget_that_it_names(self):
        plan = self.plan(LLAMA, "--context", "256", "--users", "4")
        process = self.start("serve", LLAMA, "--port", "0", "--ctx", "256", "--max-num-seqs", "4", "--memory",
                             plan["budget_bytes"], "--json")
        self.assertIn(b"url", process.stdout.readline(), process.stderr)

    def test_weights_that_are_quantised_while_loading(self):
        stored = self.plan(LLAMA, "--context", "64")["weights_bytes"]
        self.assertLess(self.plan(LLAMA, "--context", "64", "--quantize", "q8_0")["weights_bytes"], stored)

    def test_prompt_and_answer_make_the_context(self):
        self.assertEqual(self.plan(LLAMA, "--prompt", "100", "--gen", "28")["context_tokens"], 128)
        self.refusal(USAGE, "plan", LLAMA, "--context", "100", "--prompt", "100", "--gen", "1", says="101 tokens, got 100")
        self.refusal(USAGE, "plan", LLAMA, "--context", "1000000", says="context: the model was trained for 2048 tokens")

    def test_a_model_without_tokenizer_and_files_that_are_none(self):
        self.assertTrue(self.plan(NO_TOKENIZER, "--context", "64")["fits"])
        self.refusal(BAD_FILE, "plan", "no-such.gguf", says="no such file")
        self.refusal(BAD_FILE, "plan", self.file("empty.gguf", b""), says="the file is empty")

    def test_people_get_a_table(self):
        said = self.kvasir("plan", LLAMA, "--context", "256", "--users", "2").stdout.decode()
        for part in ("for 2 users of 256 tokens", "weights", "KV cache", "total", "fits into", "kvasir serve "):
            self.assertIn(part, said)


class OnTheHub(CommandLineTest):
    """A model that is not here yet: the headers are fetched, and no weights."""
    def setUp(self):
        super().setUp()
        self.model = pathlib.Path(LLAMA).read_bytes()
        self.hub = Hub({"owner/model": Repository({"tiny.gguf": self.model})})
        self.addCleanup(self.hub.close)

    def environment(self, **changes):
        env = {name: value for name, value in super().environment().items() if not name.lower().endswith("_proxy")}
        return env | {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder / "hf")} | changes

    def test_it_is_as_after_the_download(self):
        before = self.json("plan", "hf:owner/model", "--context", "256")
        here = self.json("plan", LLAMA, "--context", "256")
        for part in ("weights_bytes", "mapped_bytes", "workspace_bytes", "kv_bytes"):
            self.assertEqual(before[part], here[part], part)
        self.assertFalse((self.folder / "home").exists())


if __name__ == "__main__":
    unittest.main()
