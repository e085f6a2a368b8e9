"""What people type out of habit: other programs' flags and verbs, lists before positionals, no arguments at all."""
import unittest

from command_line import BAD_FILE, DONE, LLAMA, MACHINE, NO, NO_TOKENIZER, UNMET, USAGE, CommandLineTest

ANSWER = ("--temperature", "0", "--max-tokens", "4")
NO_GPU = "there is no GPU backend yet"
# The words, and the one line's words that name what to do.
MISTAKES = [
    (["run", LLAMA, "hi", "-ngl", "99"], NO_GPU),
    (["serve", LLAMA, "-ngl", "99"], NO_GPU),
    (["serve", LLAMA, "--n-gpu-layers", "99"], NO_GPU),
    (["serve", LLAMA, "--gpu-layers=99"], NO_GPU),
    (["serve", LLAMA, "--tensor-parallel-size", "2"], "leave it out"),
    (["serve", LLAMA, "--gpu-memory-utilization", "0.9"], "--memory"),
    (["run", LLAMA, "hi", "-fa", "on"], "leave it out"),
    (["serve", LLAMA, "--flash-attn"], "leave it out"),
    (["bench", LLAMA, "-b", "512"], "--max-num-batched-tokens"),
    (["serve", LLAMA, "--batch-size", "512"], "--max-num-batched-tokens"),
    (["serve", LLAMA, "--ubatch-size", "512"], "--max-num-batched-tokens"),
    (["serve", LLAMA, "-np", "4"], "--max-num-seqs"),
    (["serve", LLAMA, "--parallel", "4"], "--max-num-seqs"),
    (["serve", LLAMA, "-ctk", "q8_0"], "--kv-type"),
    (["serve", LLAMA, "--cache-type-v", "q8_0"], "--kv-type"),
    (["serve", LLAMA, "--kv-cache-dtype", "fp8"], "--kv-budget"),
    (["run", LLAMA, "-f", "prompt.txt"], "--file"),
    (["run", LLAMA, "-i"], "is a conversation"),
    (["run", LLAMA, "-cnv"], "is a conversation"),
    (["run", LLAMA, "-sys", "You are terse."], "--system"),
    (["run", LLAMA, "--system-prompt", "You are terse."], "--system"),
    (["run", LLAMA, "-no-cnv", "hi"], "--raw"),
    (["run", LLAMA, "hi", "--repeat-penalty", "1.1"], "--repetition-penalty"),
    (["run", LLAMA, "hi", "-s", "1"], "--seed"),
    (["run", LLAMA, "hi", "-r", "User:"], "--stop"),
    (["serve", LLAMA, "--api-key", "secret"], "kvasir keys add"),
    (["serve", LLAMA, "--api-prefix", "/llm"], "--base-path"),
    (["serve", LLAMA, "--root-path", "/llm"], "--base-path"),
    (["serve", LLAMA, "--alias", "gpt-4o"], "--served-model-name"),
    (["serve", LLAMA, "--keepalive", "5m"], "stays loaded"),
    (["serve", LLAMA, "--jinja"], "leave it out"),
    (["serve", LLAMA, "--mlock"], "leave it out"),
    (["serve", LLAMA, "--embeddings"], "/v1/embeddings"),
    (["serve", LLAMA, "--allowed-origins", "*"], "--cors-origin"),
    (["serve", LLAMA, "--max-seq-len", "2048"], "--max-model-len"),
    (["serve", LLAMA, "--max-model-length", "2048"], "did you mean '--max-model-len'?"),
    (["serve", LLAMA, "--prot", "8000"], "did you mean '--port'?"),
    (["serve", LLAMA, "--hosts", "0.0.0.0"], "did you mean '--host'?"),
    (["serve", LLAMA, "--api-keyz", "x"], "did you mean '--api-keys'?"),
    (["serve", LLAMA, "--cors-origins", "*"], "did you mean '--cors-origin'?"),
    (["run", LLAMA, "hi", "--temprature", "1"], "did you mean '--temperature'?"),
    (["run", LLAMA, "hi", "--top_k", "1"], "did you mean '--top-k'?"),
    (["run", LLAMA, "hi", "--max_tokens", "1"], "did you mean '--max-tokens'?"),
    (["ls"], "kvasir list"),
    (["models"], "kvasir list"),
    (["ps"], "/v1/operations"),
    (["stop"], "Ctrl-C"),
    (["start", LLAMA], "kvasir serve"),
    (["server", "-m", LLAMA], "kvasir serve"),
    (["chat", LLAMA], "kvasir run"),
    (["generate", LLAMA, "hi"], "kvasir run"),
    (["complete", LLAMA, "hi"], "--raw"),
    (["download", "smollm2"], "kvasir pull"),
    (["install", "smollm2"], "kvasir pull"),
    (["remove", "smollm2"], "kvasir rm"),
    (["delete", "smollm2"], "kvasir rm"),
    (["info", LLAMA], "kvasir show"),
    (["inspect", LLAMA], "kvasir show"),
    (["create", "mine", "-f", "Modelfile"], "by its path"),
    (["cp", "a", "b"], "by its path"),
    (["push", "a"], "nothing is uploaded"),
    (["perplexity", LLAMA], "kvasir eval ppl"),
    (["benchmark", LLAMA], "kvasir bench"),
    (["run-batch", "in", "out"], "kvasir batch"),
    (["runn", LLAMA], "did you mean 'run'?"),
    (["serv", LLAMA], "did you mean 'serve'?"),
    (["bnech", LLAMA], "did you mean 'bench'?"),
    (["run"], "MODEL is required"),
    (["serve"], "MODEL"),
    (["bench"], "MODEL is required"),
    (["serve", LLAMA, "--port", "http"], "--port: takes a whole number"),
    (["serve", LLAMA, "--port", "123456"], "--port: takes a whole number from 0 to 65535"),
    (["serve", LLAMA, "--host", "256.1.1.1"], "256.1.1.1"),
    (["serve", LLAMA, "--cors-origin", "localhost:3000"], "https://chat.example"),
    (["serve", LLAMA, "--cors-origin", "http://localhost:3000/"], "ends before the path"),
    (["serve", LLAMA, "--base-path", "llm"], "like /llm"),
    (["serve", LLAMA, "--base-path", "/llm/"], "like /llm"),
    (["serve", LLAMA, "--tls-cert", "c.pem"], "--tls-key"),
    (["serve", LLAMA, "--kv-budget", "150%"], "kv-budget"),
    (["serve", LLAMA, "--kv-policy", "best"], "kv-policy"),
    (["serve", LLAMA, "--max-queue", "0"], "--max-queue: takes a whole number from 1"),
    (["serve", LLAMA, "--queue-timeout", "10m"], "--queue-timeout: takes a whole number"),
    (["run", LLAMA, "hi", "--ctx", "8k"], "--ctx: takes a whole number"),
    (["run", LLAMA, "hi", "--temp", "hot"], "temp"),
    (["run", LLAMA, "hi", "--seed", "random"], "--seed: takes a whole number"),
    (["--threads", "many", "run", LLAMA, "hi"], "--threads: takes a whole number"),
    (["--memory", "8 gigs", "run", LLAMA, "hi"], "memory"),
    (["--isa", "cuda", "run", LLAMA, "hi"], "isa"),
    (["serve", LLAMA, "--model-path", LLAMA], "the model comes first"),
    (["run", LLAMA, "hi", "--max-token", "4"], "did you mean '--max-tokens'?"),
    (["run", LLAMA, "hi", "--topp", "0.9"], "did you mean '--top-p'?"),
    (["run", LLAMA, "hi", "--temp=hot"], "temp"),
    (["run", LLAMA, "hi", "--top-p", "2"], "top_p"),
    (["run", LLAMA, "hi", "--min-p", "-1"], "min_p"),
    (["run", LLAMA, "hi", "--kv-budget", "0"], "kv-budget"),
    (["run", LLAMA, "hi", "--kv-type", "q4_0"], "kv-type"),
    (["run", LLAMA, "hi", "--ctx", "99999"], "trained for"),
    (["run", LLAMA, "hi", "--file", "prompt.txt"], "--prompt"),
    (["run", LLAMA, "hi", "--special", "--no-special"], "--no-special"),
    (["run", LLAMA, "hi", "--memory", "1K"], "MiB would do"),
    (["run", LLAMA, "hi", "--memory", "500T"], "of this machine"),
    (["run", LLAMA, "hi", "--isa", "sse"], "isa"),
    (["serve", LLAMA, "--port", "-1"], "--port: takes a whole number from 0 to 65535"),
    (["serve", LLAMA, "--port"], "--port: a value is missing"),
    (["run", LLAMA, "hi", "-n", "3", "--max-tokens", "4"], "--max-tokens: given 2 times, once is enough"),
    (["run", LLAMA, "hi", "--n-predict", "3"], "it is called --max-tokens here"),
    (["run", LLAMA, "hi", "--max-new-tokens", "3"], "it is called --max-tokens here"),
    (["serve", LLAMA, "--host", "http://0.0.0.0"], "http://0.0.0.0"),
    (["serve", LLAMA, "--api-keys", "none.txt"], "none.txt"),
    (["serve", LLAMA, "--drain-timeout", "30s"], "--drain-timeout: takes a whole number"),
    (["serve", LLAMA, "--waiting-policy", "lifo"], "waiting-policy"),
    (["serve", LLAMA, "--metrics-alias", "tgi"], "metrics-alias"),
    (["bench", LLAMA, "--prompt", "short"], "--prompt: takes a whole number"),
    (["bench", LLAMA, "--repeat", "0"], "--repeat: takes a whole number from 1"),
    (["bench", LLAMA, "--prompt", "0", "--gen", "0"], "nothing to measure"),
    (["bench", LLAMA, "--depth", "99999"], "trained for"),
    (["eval", "perplexity", LLAMA], "kvasir eval ppl"),
    (["eval", "ppl", LLAMA], "--file is required"),
    (["eval", "ppl", LLAMA, "--file", "none.txt"], "none.txt"),
    (["tokenize", LLAMA, "--decode", "one"], "one"),
    (["keys", "remove", "ann"], "kvasir keys revoke"),
    (["keys", "add", "ann"], "--file is required"),
    (["batch", LLAMA, "in.jsonl"], "OUT is required"),
    (["batch", LLAMA, "none.jsonl", "out.jsonl"], "none.jsonl"),
    (["pull", "gpt-4o"], "gpt-4o"),
    (["rm", "gpt-4o"], "gpt-4o"),
    (["completion", "powershell"], "bash,zsh"),
    (["kv", "explain", "none.db"], "none.db"),
    (["config", "--prot", "1"], "--prot"),
]


class Greeting(CommandLineTest):
    def test_bare_and_help_greet(self):
        for words in ([], ["help"]):
            done = self.kvasir(*words)
            self.assertIn(b"kvasir run smollm2:135m", done.stdout)
            self.assertEqual(done.stderr, "")

    def test_help_of_a_verb_is_wrapped_grouped_and_has_examples(self):
        for words in (["help", "serve"], ["serve", "--help"]):
            text = self.kvasir(*words).stdout.decode()
            self.assertIn("LIMITS:", text)
            self.assertIn("Examples:", text)
            described = [line for line in text.splitlines() if line.startswith(" " * 30)]
            self.assertTrue(described)
            self.assertLessEqual(max(map(len, described)), 100)

    def test_errors_name_the_verbs_own_help(self):
        self.refusal(USAGE, "run", says="(see kvasir run --help)")
        self.refusal(USAGE, "eval", "ppl", says="(see kvasir eval ppl --help)")
        self.refusal(USAGE, "rnu", says="(see kvasir --help)")


class Habits(CommandLineTest):
    def answer(self, *words):
        return self.kvasir("run", *words).stdout

    def test_short_flags_of_llama_cpp(self):
        expected = self.answer(LLAMA, "hi", *ANSWER)
        self.assertEqual(self.answer("-m", LLAMA, "-p", "hi", "-n", "4", "--temp", "0", "-t", "1", "-c", "64"), expected)
        self.assertEqual(self.answer("--model", LLAMA, "--prompt", "hi", *ANSWER), expected)

    def test_lists_take_one_value_a_flag(self):
        expected = self.answer(LLAMA, "hi", *ANSWER, "--stop", "e")
        self.assertEqual(self.answer(LLAMA, "--stop", "e", "hi", *ANSWER), expected)
        self.assertEqual(self.answer("--stop", "e", LLAMA, "hi", *ANSWER), expected)
        self.assertEqual(self.answer(LLAMA, "--stop", "e", "--stop", "zz", "hi", *ANSWER), expected)
        self.kvasir("bench", "--prompt", "4,8", LLAMA, "--gen", "0", "--repeat", "1")
        self.kvasir("bench", "--batch", "1", "--prompt", "4", "--gen", "2", "--repeat", "1", LLAMA)

    def test_every_mistake_gives_one_line_that_helps(self):
        for words, says in MISTAKES:
            with self.subTest(words):
                done = self.kvasir(*words, expect=None)
                self.assertNotIn(done.returncode, (DONE, None))
                self.assertIn(done.returncode, (NO, USAGE, BAD_FILE, UNMET, MACHINE))
                self.assertEqual(done.stdout, b"")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)

    def test_files_that_cannot_be_used(self):
        for words, says in [
            (["run", "no-such.gguf", "hi"], "no such file"),
            (["run", "smolm2", "hi"], "did you mean smollm2:135m?"),
            (["run", str(self.folder), "hi"], "folder"),
            (["run", NO_TOKENIZER, "hi"], "no tokenizer"),
            (["run", LLAMA, "--file", "no-such.txt"], "no-such.txt"),
            (["show", "no-such.gguf"], "no such file"),
        ]:
            with self.subTest(words):
                done = self.kvasir(*words, expect=None)
                self.assertIn(done.returncode, (NO, USAGE, BAD_FILE))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
