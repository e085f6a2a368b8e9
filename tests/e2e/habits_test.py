"""What people type out of habit: other programs' flags and verbs, lists before positionals, no arguments at all."""
import socket
import unittest

from command_line import BAD_FILE, DONE, LLAMA, MACHINE, NO, NO_TOKENIZER, UNMET, USAGE, CommandLineTest

ANSWER = ("--temperature", "0", "--max-tokens", "4")
NO_GPU = "packages run on the CPU alone"
# The words, and the one line's words that name what to do.
MISTAKES = [
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
    (["run", LLAMA, "hi", "--format", "json"], "--schema"),
    (["run", LLAMA, "hi", "--json-schema", "{}"], "--schema"),
    (["run", LLAMA, "hi", "--grammar-file", "g.gbnf"], "--grammar"),
    (["run", LLAMA, "hi", "--think=false"], "leave it out"),
    (["run", LLAMA, "hi", "--nowordwrap"], "--plain"),
    (["run", LLAMA, "hi", "--no-warmup"], "leave it out"),
    (["serve", LLAMA, "--cont-batching"], "leave it out"),
    (["serve", LLAMA, "--no-context-shift"], "leave it out"),
    (["serve", LLAMA, "--slots"], "/slots"),
    (["serve", LLAMA, "--metrics"], "/metrics"),
    (["serve", LLAMA, "--chat-template-file", "x.jinja"], "--chat-template"),
    (["serve", LLAMA, "--threads-batch", "4"], "--threads"),
    (["serve", LLAMA, "--lora", "x"], "there is no such adapter"),
    (["serve", LLAMA, "--enable-auto-tool-choice"], "leave it out"),
    (["serve", LLAMA, "--tool-call-parser", "hermes"], "leave it out"),
    (["serve", LLAMA, "--reasoning-parser", "qwen3"], "leave it out"),
    (["serve", LLAMA, "--enable-prefix-caching"], "leave it out"),
    (["serve", LLAMA, "--swap-space", "4"], "leave it out"),
    (["serve", LLAMA, "--kv-disk", "2GiB"], "it was removed"),
    (["serve", LLAMA, "--kv-disk-dir", "x"], "it was removed"),
    (["serve", LLAMA, "--ssl-keyfile", "k.pem"], "--tls-key"),
    (["serve", LLAMA, "--ssl-certfile", "c.pem"], "--tls-cert"),
    (["serve", LLAMA, "--disable-log-requests"], "--access-log"),
    (["serve", LLAMA, "--host", "0.0.0.0:80"], "--port"),
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
    (["serve", LLAMA, "--temp", "0.7"], "a request says it"),
    (["serve", LLAMA, "--top-p", "0.9"], "a request says it"),
    (["serve", LLAMA, "--seed", "1"], "a request says it"),
    (["serve", LLAMA, "-n", "64"], "max_tokens of a request"),
    (["serve", LLAMA, "-tp", "2"], "one machine serves a model"),
    (["serve", LLAMA, "-to", "600"], "--idle-timeout"),
    (["serve", LLAMA, "-ts", "1,1"], NO_GPU),
    (["serve", LLAMA, "-cmoe"], NO_GPU),
    (["serve", LLAMA, "-cram", "0"], "leave it out"),
    (["serve", LLAMA, "-a", "gpt-4o"], "--served-model-name"),
    (["serve", LLAMA, "-dev", "none"], NO_GPU),
    (["serve", LLAMA, "--timeout", "600"], "--idle-timeout"),
    (["serve", LLAMA, "--no-webui"], "leave it out"),
    (["serve", LLAMA, "--threads-http", "4"], "--threads"),
    (["serve", LLAMA, "--cache-reuse", "256"], "leave it out"),
    (["serve", LLAMA, "--reasoning-budget", "0"], "a request's reasoning_budget"),
    (["serve", LLAMA, "--chat-template-kwargs", "{}"], "a request's chat_template_kwargs"),
    (["serve", LLAMA, "--api-key-file", "keys"], "kvasir keys add"),
    (["serve", LLAMA, "--rope-scaling", "linear"], "leave it out"),
    (["serve", LLAMA, "--override-kv", "a=b"], "those of its file"),
    (["serve", LLAMA, "--models-dir", "models"], "--model-dir"),
    (["serve", LLAMA, "--models-max", "2"], "--max-loaded-models"),
    (["serve", LLAMA, "--log-file", "log"], "stderr"),
    (["serve", LLAMA, "-lv", "3"], "--verbose"),
    (["serve", LLAMA, "--log-level", "debug"], "--verbose"),
    (["serve", LLAMA, "--task", "embed"], "leave it out"),
    (["serve", LLAMA, "--override-generation-config", "{}"], "a request says others"),
    (["serve", LLAMA, "--speculative-config", "{}"], "--draft-model"),
    (["serve", LLAMA, "--model-draft", "x.gguf"], "--draft-model"),
    (["serve", LLAMA, "--lora-modules", "a=b"], "--lora NAME=PATH"),
    (["serve", LLAMA, "--no-enable-prefix-caching"], "--no-prefix-cache"),
    (["serve", LLAMA, "--limit-mm-per-prompt", "image=1"], "leave it out"),
    (["serve", LLAMA, "--allowed-methods", "*"], "--cors-origin"),
    (["serve", LLAMA, "--origins", "*"], "--cors-origin"),
    (["serve", LLAMA, "--num-parallel", "4"], "--max-num-seqs"),
    (["serve", LLAMA, "--num-gpu", "1"], NO_GPU),
    (["serve", LLAMA, "--config", "x.yaml"], "kvasir config"),
    (["run", LLAMA, "hi", "-st"], "one turn"),
    (["run", LLAMA, "hi", "--no-display-prompt"], "leave it out"),
    (["run", LLAMA, "hi", "-e"], "leave it out"),
    (["run", LLAMA, "hi", "-j", "{}"], "--schema"),
    (["run", LLAMA, "hi", "-zz"], "there is no flag -zz"),
    (["bench", LLAMA, "-p", "8", "-n", "4"], "--prompt"),
    (["bench", LLAMA, "-n", "4"], "--gen"),
    (["-V"], "--version"),
    (["embedding", LLAMA], "/v1/embeddings"),
    (["llama-server", "-m", LLAMA], "kvasir serve"),
    (["ls"], "kvasir list"),
    (["models"], "kvasir list"),
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
    (["run", LLAMA, "hi", "--top-p", "2"], "--top-p must be between 0 and 1, got 2"),
    (["run", LLAMA, "hi", "--min-p", "-1"], "--min-p must be between 0 and 1, got -1"),
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
    (["run", "Qwen/Qwen3-0.6B", "hi"], "it is called hf:Qwen/Qwen3-0.6B here"),
    (["serve", "https://huggingface.co/Qwen/Qwen3-0.6B"], "it is called hf:Qwen/Qwen3-0.6B here"),
    (["pull", "https://huggingface.co/a/b/blob/main/b-Q8_0.gguf"], "it is called hf:a/b:b-Q8_0.gguf here"),
    (["pull", "hf.co/a/b:Q4_K_M"], "it is called hf:a/b:Q4_K_M here"),
    (["run", "hf.co/a/b:Q4_K_M", "hi"], "it is called hf:a/b:Q4_K_M here"),
    (["pull", "hf://a/b"], "an address is no name; a model of the hub is hf:OWNER/NAME"),
    (["pull", "hf:https://huggingface.co/a/b"], "an address is no name; a model of the hub is hf:OWNER/NAME"),
    (["pull", "hf:b"], "the owner or the name is missing"),
    (["pull", "hf:a/b:"], "no file follows the second colon"),
    (["pull", "hf:a/b@"], "no revision follows the @"),
    (["pull", "hf:a/b", "--source", "pypi"], "leave --source and --from out"),
    (["pull", "hf:a/b", "--source", "ollama"], "pypi,hf,path"),
    (["pull", "smollm2:135m", "--dry-run"], "hf:OWNER/NAME"),
    (["show", "hf:a"], "the owner or the name is missing"),
    (["rm", "hf:a/b"], "is not in the store"),
    (["rm", LLAMA], "a path is used as it is"),
    (["pull", LLAMA], "a path is used as it is"),
    (["pull", "ollama:llama3.2"], "kvasir run ollama:llama3.2"),
    (["run", "ollama:llama3.2", "hi"], "ollama pull"),
    (["run", "ollama:", "hi"], "ollama:NAME[:TAG]"),
    (["run", "ollama:a/b/c/d", "hi"], "ollama:NAME[:TAG]"),
    (["run", "ollama/llama3.2", "hi"], "it is called ollama:llama3.2 here"),
    (["run", "https://ollama.com/library/llama3.2", "hi"], "it is called ollama:llama3.2 here"),
    (["rm", "ollama:llama3.2"], "ollama rm llama3.2"),
    (["pull", "llama3"], "hf:OWNER/NAME"),
    (["run", "smollm2:360m", "hi"], "did you mean smollm2:135m?"),
    (["run", "gema3", "hi"], "did you mean gemma3:270m?"),
    (["run", LLAMA, "hi", "--quantize", "q4"], "{q8_0,q4_0,q4_k,mxfp4,bf16}"),
    (["run", LLAMA, "hi", "--quantize", "Q4_K_M"], "{q8_0,q4_0,q4_k,mxfp4,bf16}"),
    (["run", LLAMA, "hi", "--quantize", "int8"], "{q8_0,q4_0,q4_k,mxfp4,bf16}"),
    (["run", LLAMA, "hi", "--quantize"], "--quantize: a value is missing"),
    (["run", LLAMA, "hi", "--quantise", "q8_0"], "did you mean '--quantize'?"),
    (["serve", LLAMA, "--quantization", "fp8"], "it is called --quantize here"),
    (["serve", LLAMA, "--load-in-4bit"], "--quantize q4_k"),
    (["serve", LLAMA, "--dtype", "bfloat16"], "--quantize"),
    (["serve", "-hf", "a/b"], "hf:OWNER/NAME"),
    (["run", "--hf-repo", "a/b", "--hf-file", "b.gguf"], "hf:OWNER/NAME"),
    (["pull", "hf:a/b", "--token", "hf_x"], "HF_TOKEN"),
    (["pull", "hf:a/b", "--revision", "v1"], "hf:OWNER/NAME@REVISION"),
    (["pull", "hf:a/b", "--local-dir", "."], "KVASIR_HOME"),
    (["serve", LLAMA, "--trust-remote-code"], "leave it out"),
    (["serve", LLAMA, "--tokenizer", "a/b"], "leave it out"),
    (["run", LLAMA, "hi", "--num-ctx", "64"], "it is called --ctx here"),
    (["run", LLAMA, "hi", "--device", "cuda"], "this program was built without CUDA"),
    (["serve", LLAMA, "--mmproj", "m.gguf"], "leave it out"),
    (["quantize", "in.gguf", "out.gguf"], "one of --type, --bytes and --bpw"),
    (["convert", "."], "kvasir run FOLDER"),
    (["import", "mine", "model.gguf"], "by its path"),
    (["search", "qwen"], "hf:OWNER/NAME"),
    (["login"], "HF_TOKEN"),
    (["status"], "kvasir health"),
    (["logs"], "--access-log"),
    (["embed", LLAMA, "hi"], "/v1/embeddings"),
]

# What is wrong whatever the model is: said before it is looked for. There is no such model.
NONE = "none.gguf"
BEFORE_THE_MODEL = [
    (["run", NONE, "hi", "--top-p", "5"], "--top-p must be between 0 and 1, got 5"),
    (["run", NONE, "hi", "--min-p", "1.5"], "--min-p must be between 0 and 1, got 1.5"),
    (["run", NONE, "hi", "--temperature", "-1"], "--temperature must be finite and 0 or greater, got -1"),
    (["run", NONE, "hi", "--repetition-penalty", "0"], "--repetition-penalty must be finite and above 0, got 0"),
    (["run", NONE, "hi", "--presence-penalty", "3"], "--presence-penalty must be between -2 and 2, got 3"),
    (["run", NONE, "hi", "--frequency-penalty", "-3"], "--frequency-penalty must be between -2 and 2, got -3"),
    (["run", NONE, "hi", "--schema", "none.json"], "none.json"),
    (["run", NONE, "hi", "--schema", "broken.json"], "--schema: "),
    (["run", NONE, "hi", "--regex", "(a"], "--regex: "),
    (["run", NONE, "hi", "--grammar", "broken.gbnf"], "--grammar: "),
    (["run", NONE, "hi", "--choice", "a,,b"], "--choice: a choice is empty"),
    (["run", NONE, "hi", "--chat-template", "none.jinja"], "none.jinja"),
    (["run", NONE, "hi", "--kv-forecast", "none.json"], "none.json: there is no such file"),
    (["run", NONE, "hi", "--memory", "much"], "--memory"),
    (["serve", NONE, "--api-keys", "none.txt"], "--api-keys: none.txt"),
    (["serve", NONE, "--tls-cert", "none.pem", "--tls-key", "none.pem"], "--tls-"),
    (["serve", NONE, "--tls-cert", "none.pem"], "--tls-key"),
    (["serve", NONE, "--kv-learn", "broken.json"], "broken.json: "),
    (["serve", NONE, "--kv-learn", "none/learned.json"], "none/learned.json"),
    (["serve", NONE, "--access-log", "none/log"], "--access-log: none/log"),
    (["serve", NONE, "--state-dir", "broken.json"], "--state-dir: "),
    (["serve", NONE, "--cors-origin", "localhost:3000"], "--cors-origin"),
    (["serve", NONE, "--base-path", "llm"], "--base-path must be like /llm"),
    (["serve", NONE, "--host", "256.1.1.1"], "--host 256.1.1.1"),
    (["serve", NONE, "--port", "{taken}"], "--port: cannot listen on 127.0.0.1 port {taken}"),
    (["serve", NONE, "--port", "0", "--grpc-port", "{taken}"], "--grpc-port: cannot listen on 127.0.0.1 port {taken}"),
    (["serve", NONE, "--request-memory", "1K"], "--request-memory must be at least"),
    (["serve", NONE, "--guide-memory", "1K"], "--guide-memory must be at least"),
    (["serve", NONE, "--state-bytes", "1K"], "--state-bytes must be at least"),
    (["serve", NONE, "--max-request-line-bytes", "20000"], "--max-request-line-bytes must be at most --max-header-bytes"),
    (["serve", NONE, "--public-prefix", "none.txt"], "none.txt"),
    (["serve", NONE, "--otlp-endpoint", "collector"], "--otlp-endpoint"),
    (["batch", NONE, "none.jsonl", "out.jsonl"], "none.jsonl"),
    (["eval", "ppl", NONE, "--file", "none.txt"], "none.txt"),
    (["eval", "logits", NONE, "--file", "text.txt", "--out", "none/out.npy"], "--out: none/out.npy"),
    (["bench", NONE, "--prompt", "0", "--gen", "0"], "nothing to measure"),
    (["calibrate-kv", NONE, "--file", "none.txt"], "none.txt"),
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

    def test_help_of_a_verb_that_is_not_there_is_no_help(self):
        self.refusal(USAGE, "help", "srve", says="did you mean 'serve'?")
        self.refusal(USAGE, "help", "chat", says="kvasir run MODEL")

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

    def test_what_no_model_would_make_right_is_said_before_it_is_loaded(self):
        for name, content in {"broken.json": b"{", "broken.gbnf": b"root ::= nowhere", "text.txt": b"hi"}.items():
            self.file(name, content)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            for words, says in BEFORE_THE_MODEL:
                with self.subTest(words):
                    done = self.kvasir(*(word.replace("{taken}", port) for word in words), expect=None)
                    self.assertIn(done.returncode, (USAGE, BAD_FILE, UNMET, MACHINE))
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertIn(says.replace("{taken}", port), done.stderr)
                    self.assertNotIn(NONE, done.stderr)

    def test_folders_that_are_not_the_models(self):
        here = self.folder / "hub"
        here.mkdir()
        for name, content, asked, says in [
            ("model.gguf", b"GGUF", here, "did you mean"),
            ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}", here / "model.safetensors", "a model is the folder"),
            ("pytorch_model.bin", b"PK\x03\x04", here / "pytorch_model.bin", "PyTorch"),
            ("page.gguf", b"<!DOCTYPE html>", here / "page.gguf", "web page"),
            ("lfs.gguf", b"version https://git-lfs.github.com/spec/v1", here / "lfs.gguf", "git lfs pull"),
            ("empty.gguf", b"", here / "empty.gguf", "the file is empty"),
        ]:
            with self.subTest(name):
                (here / name).write_bytes(content)
                self.refusal(BAD_FILE, "run", asked, "hi", says=says)
        (here / "config.json").write_text('{"model_type": "llama"}')
        self.refusal(BAD_FILE, "run", here / "config.json", "hi", says="a JSON text")

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
