"""Wrong usage, bad files and limits: one line on stderr and the right exit code, never a crash."""
import os
import pathlib
import re
import unittest

import gguf_edit
from command_line import BAD_FILE, LLAMA, MACHINE, NO_TOKENIZER, TIME_LIMIT_S, UNMET, USAGE, CommandLineTest
from gguf_edit import F32, I32, STRING, U32, Gguf


class WrongUsage(CommandLineTest):
    def test_unknown_verb_suggests_the_nearest(self):
        self.refusal(USAGE, "rnu", says="there is no verb 'rnu'; did you mean 'run'?")
        self.refusal(USAGE, "smollm2:135m", says="a model goes behind one: kvasir run smollm2:135m")
        self.refusal(USAGE, "--port", "80", "serve", "m", says="--port comes behind its verb: kvasir serve --port")
        self.refusal(USAGE, "run", "m", "hi", "there", "friend", says="a prompt of several words stands in quotes")
        self.refusal(USAGE, "keys", says="one of add")
        self.refusal(USAGE, "--threads", "2", "rnu", says="there is no verb 'rnu'; did you mean 'run'?")
        self.refusal(USAGE, "eval", "pll", says="there is no verb 'eval pll'; did you mean 'ppl'?")

    def test_unknown_flag_suggests_the_nearest(self):
        self.refusal(USAGE, "run", LLAMA, "hi", "--max-token", "3", says="did you mean '--max-tokens'?")
        self.refusal(USAGE, "list", "--treads=3", says="did you mean '--threads'?")

    def test_missing_arguments(self):
        for args in (["run"], ["bench"], ["tokenize"], ["eval"], ["eval", "ppl"], ["serve"], ["completion"]):
            with self.subTest(args):
                self.refusal(USAGE, *args)

    def test_bad_values(self):
        for args, says in [
            (["run", LLAMA, "hi", "--max-tokens", "many"], "max-tokens"),
            (["run", LLAMA, "hi", "--max-tokens", "-2"], "max-tokens"),
            (["run", LLAMA, "hi", "--temperature", "-1"], "temperature"),
            (["run", LLAMA, "hi", "--temperature", "inf"], "--temperature: takes a finite number, not 'inf'"),
            (["run", LLAMA, "hi", "--temperature", "nan"], "finite"),
            (["run", LLAMA, "hi", "--seed", "-2"], "--seed: takes a whole number"),
            (["run", LLAMA, "hi", "--seed", "99999999999999999999999"], "99999999999999999999999"),
            (["run", LLAMA, "hi", "--max-num-seqs", "0"], "takes a whole number from 1 to 4096, not '0'"),
            (["run", LLAMA, "hi", "--ctx", "-1"], "takes a whole number from 0 to 16777216, not '-1'"),
            (["run", LLAMA, "hi", "--top-p", "1.5"], "--top-p must be between 0 and 1, got 1.5"),
            (["run", LLAMA, "hi", "--kv-type", "f8"], "kv-type"),
            (["run", LLAMA, "hi", "--memory", "lots"], "memory"),
            (["run", LLAMA, "hi", "--kv-disk", "64MiB"], "there is no flag --kv-disk; it was removed"),
            (["run", LLAMA, "hi", "--threads", "-2"], "threads"),
            (["run", LLAMA, "hi", "--isa", "sse"], "isa"),
            (["run", LLAMA, "hi", "--ctx", "1000000"], "ctx: the model was trained for"),
            (["run", LLAMA, "hi", "--file", LLAMA], "file"),
            (["run", LLAMA, "--json"], "empty"),
            (["serve", LLAMA, "--port", "70000"], "--port: takes a whole number from 0 to 65535, not '70000'"),
            (["bench", LLAMA, "--prompt", "0", "--gen", "0"], "nothing to measure"),
            (["bench", LLAMA, "--batch", "0"], "batch"),
            (["eval", "ppl", LLAMA, "--file", LLAMA, "--ctx", "1"], "ctx"),
            (["tokenize", LLAMA, "--decode", "1", "two"], "two"),
            (["tokenize", LLAMA, "--decode", "275"], "275"),
            (["completion", "tcsh"], "tcsh"),
        ]:
            with self.subTest(args):
                self.refusal(USAGE, *args, says=says)


class BadFiles(CommandLineTest):
    def refuse_model(self, model, says, expect=BAD_FILE):
        for verb in (["run", model, "hi"], ["tokenize", model, "hi"], ["bench", model], ["show", model]):
            with self.subTest(verb):
                self.refusal(expect, *verb, says=says)

    def test_missing(self):
        self.refuse_model(str(self.folder / "nothing.gguf"), "nothing.gguf")
        self.refuse_model("no-such-model", "no-such-model")
        self.refuse_model("", "no model is called ''")

    def test_catalogue_model_that_was_not_pulled(self):
        for verb in ("tokenize", "bench", "show"):  # `run` and `serve` pull it
            words = [verb, "smollm2:135m", *(["hi"] if verb == "tokenize" else [])]
            with self.subTest(words):
                self.refusal(BAD_FILE, *words, says="kvasir pull smollm2:135m")

    def test_empty(self):
        self.refuse_model(self.file("empty.gguf", b""), "empty.gguf")

    def test_wrong_magic(self):
        self.refuse_model(self.file("text.gguf", b"this is no model " * 100), "not a GGUF file")
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 145000000\n"
        self.refuse_model(self.file("pointer.gguf", pointer), "git lfs pull")
        self.refuse_model(self.file("page.gguf", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>"), "web page")

    def test_folder(self):
        self.refuse_model(str(self.folder), str(self.folder))

    def test_truncated_anywhere(self):
        whole = pathlib.Path(LLAMA).read_bytes()
        for size in range(4096, len(whole), 65536):
            with self.subTest(size):
                self.refusal(BAD_FILE, "run", self.file("cut.gguf", whole[:size]), "hi")

    def test_no_permission(self):
        self.obey_permissions()
        path = self.file("locked.gguf", pathlib.Path(LLAMA).read_bytes())
        os.chmod(path, 0)
        self.refuse_model(path, "locked.gguf")

    def test_link_to_itself(self):
        path = self.folder / "loop.gguf"
        path.symlink_to(path)
        self.refuse_model(str(path), "loop.gguf")

    def refuse_edited(self, says, tensors=None, **metadata):
        """Refuses the fixture with other metadata (the dots of a key are written __) or tensors."""
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        for key, value in metadata.items():
            gguf.metadata[key.replace("__", ".")] = value
        gguf.tensors = tensors(gguf.tensors) if tensors else gguf.tensors
        said = self.refusal(BAD_FILE, "run", self.file("edited.gguf", gguf.content()), "hi", says=says)
        self.assertLess(len(said), 1000)

    def test_text_of_the_file_cannot_steer_the_terminal(self):
        evil = "foo\x1b[31m\nbar"
        shown = r"foo\x1b[31m\x0abar"
        self.refuse_edited(shown, general__architecture=gguf_edit.string(evil))
        self.refuse_edited("xxx...", general__architecture=gguf_edit.string("x" * 100_000))
        self.refuse_edited(shown, llama__rope__scaling__type=gguf_edit.string(evil))
        self.refuse_edited(shown, tokenizer__ggml__model=gguf_edit.string(evil))
        self.refuse_edited(shown, tokenizer__ggml__pre=gguf_edit.string(evil))
        self.refuse_edited(r"unexpected character '\x1b'", tokenizer__chat_template=gguf_edit.string("{{" + evil))
        self.refuse_edited(shown, tensors=lambda tensors: tensors + [(evil.encode(), tensors[-1][1])])

    def test_vocabulary_of_the_wrong_type(self):
        for key, value, says in [
            ("token_type", gguf_edit.string("x"), "token_type must be an integer array, but it is a string"),
            ("token_type", gguf_edit.array(F32, [1.5] * 275), "token_type must be an integer array, but it is a number"),
            ("tokens", gguf_edit.array(I32, [1] * 275), "tokens must be a string array, but it is an integer array"),
            ("merges", gguf_edit.array(I32, [1]), "merges must be a string array, but it is an integer array"),
            ("scores", gguf_edit.array(STRING, ["1"]), "scores must be a number array, but it is a string array"),
        ]:
            with self.subTest(key):
                self.refuse_edited(says, **{"tokenizer__ggml__" + key: value})

    def test_vocabulary_of_the_wrong_size(self):
        tokens = Gguf(pathlib.Path(LLAMA).read_bytes()).strings("tokenizer.ggml.tokens")
        self.refuse_edited("rows, 275, has 276", tokenizer__ggml__tokens=gguf_edit.array(STRING, tokens + ["more"]))

    def test_sliding_window_of_a_nonsensical_length(self):
        self.refuse_edited("llama.attention.sliding_window", llama__attention__sliding_window=gguf_edit.number(I32, -2))

    def test_weights_too_large_to_compute_with(self):
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        gguf.fill("output_norm.weight", 64, 3e38)
        path, text = self.file("huge.gguf", gguf.content()), self.file("text.txt", b"the quick brown fox " * 40)
        self.refusal(BAD_FILE, "run", path, "hi", says="NaN or infinity")
        scoring = ["eval", "ppl", path, "--file", text, "--ctx", "32"]
        self.refusal(BAD_FILE, *scoring, says="NaN or infinity")
        self.refusal(BAD_FILE, *scoring, "--no-prefill-only", says="NaN or infinity")
        gguf.fill("output_norm.weight", 64, 1.0)
        gguf.fill("blk.0.attn_norm.weight", 64, 3e38)  # found in the first layer's pass
        path = self.file("huge.gguf", gguf.content())
        self.refusal(BAD_FILE, "eval", "ppl", path, "--file", text, "--ctx", "32", says="NaN or infinity")

    def test_no_tokenizer(self):
        self.refusal(BAD_FILE, "run", NO_TOKENIZER, "hi", says="tokenizer")
        self.refusal(BAD_FILE, "tokenize", NO_TOKENIZER, "hi", says="tokenizer")

    def test_input_files(self):
        for args in (["run", LLAMA], ["tokenize", LLAMA], ["eval", "ppl", LLAMA]):
            with self.subTest(args):
                self.refusal(BAD_FILE, *args, "--file", "nothing.txt", says="nothing.txt")
                self.refusal(BAD_FILE, *args, "--file", str(self.folder), says=str(self.folder))

    def test_input_without_end(self):
        with open("/dev/zero", "rb") as zeros:
            process = self.start("tokenize", LLAMA, stdin=zeros)
            self.assertEqual(process.wait(TIME_LIMIT_S), BAD_FILE)
            self.assertIn(b"standard input: the limit is 256 MiB", process.stderr.read())
        for args in (["run", LLAMA], ["tokenize", LLAMA], ["eval", "ppl", LLAMA]):
            with self.subTest(args):
                self.refusal(BAD_FILE, *args, "--file", "/dev/zero",
                             says="/dev/zero: the limit is 256 MiB, this has more than 268435456 bytes")
        self.refusal(BAD_FILE, "run", LLAMA, "hi", "--chat-template", "/dev/zero", says="the limit is 1.00 MiB")

    def test_broken_chat_template(self):
        template = self.file("broken.jinja", b"{% for message in messages %}")
        for args in (["run", LLAMA, "hi"], ["serve", LLAMA]):
            said = self.refusal(BAD_FILE, *args, "--chat-template", template, says="broken.jinja: chat template, line 1: ")
            self.assertEqual(said.count("chat template"), 1)
            self.assertEqual(said.count("broken.jinja"), 1)

    def test_a_chat_template_that_refuses_is_named_once(self):
        template = self.file("strict.jinja", b"{{ raise_exception('no such role') }}")
        said = self.refusal(USAGE, "run", LLAMA, "hi", "--chat-template", template, says="line 1: no such role")
        self.assertEqual(said.count("chat template"), 1)


class BeyondLimits(CommandLineTest):
    def test_prompt_beyond_the_context(self):
        long_prompt = self.file("long.txt", b"word " * 4000)
        said = self.refusal(UNMET, "run", LLAMA, "--raw", "--file", long_prompt, says="2048")
        self.assertIn("context", said)

    def test_answer_beyond_the_context(self):
        cut = self.kvasir("run", LLAMA, "hi", "--ctx", "64", "--max-tokens", "64")
        self.assertRegex(cut.stderr, r"--max-tokens: 64 was cut to \d+, what the context of 64 tokens has left \(--ctx\)")
        self.refusal(UNMET, "run", LLAMA, "hi " * 64, "--ctx", "64", says="64")

    def test_text_shorter_than_a_window(self):
        self.refusal(UNMET, "eval", "ppl", LLAMA, "--file", self.file("short.txt", b"short"), says="512")

    def test_too_little_memory(self):
        self.refusal(MACHINE, "run", LLAMA, "hi", "--memory", "100K", says="memory")
        for words in (("run", LLAMA, "hi", "--max-tokens", "4"), ("bench", LLAMA, "--prompt", "4", "--gen", "2")):
            said = self.kvasir(*words, "--memory", "100K", expect=MACHINE).stderr
            enough = re.search(r"in 100 KiB; --memory (\d+)MiB would do$", said.strip())
            self.assertTrue(enough, said)
            self.kvasir(*words, "--memory", enough[1] + "MiB")

    def test_more_memory_than_the_machine_has(self):
        for words in (("run", LLAMA, "hi"), ("serve", LLAMA, "--port", "0")):
            done = self.kvasir(*words, "--memory", "100T", expect=MACHINE)
            self.assertRegex(done.stderr, r"^kvasir: memory: 100 TiB is more than the [\d.]+ [KMG]iB of this machine\n$")

    def test_output_that_cannot_be_written(self):
        text = self.file("text.txt", b"the and in on " * 100)
        self.refusal(MACHINE, "eval", "logits", LLAMA, "--file", text, "--ctx", "16", "--out", "/no/such/folder/x.npy",
                     says="/no/such/folder/x.npy")
        self.refusal(MACHINE, "eval", "logits", LLAMA, "--file", text, "--ctx", "16", "--out", "/dev/full",
                     says="No space left on device")


if __name__ == "__main__":
    unittest.main()
