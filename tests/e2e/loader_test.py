"""Files as writers really leave them: what is read leniently gives the same answer, what changes it is said."""
import json
import pathlib
import re
import struct
import unittest
import urllib.request

from command_line import BAD_FILE, GEMMA, LLAMA, MACHINE, TIME_LIMIT_S, USAGE, CommandLineTest
from gguf_edit import BOOL, F32, F64, I32, I64, STRING, U16, U32, U64, U8, Gguf, array, number, string

NONE = 0xFFFFFFFF
LLAMA_BLOCKS = 2
PROMPT = "the quick brown fox jumps over it"

# Metadata that say what the fixture says, or nothing: {key: value}, None takes a key away. None of it is worth a word.
SILENT_LLAMA = [
    {"split.no": number(U16, 0), "split.count": number(U16, 0), "split.tensors.count": number(I32, 20)},
    {"split.count": number(U16, 1)},
    {"split.count": number(I32, 0)},
    {"tokenizer.ggml.padding_token_id": number(U32, NONE)},
    {"tokenizer.ggml.padding_token_id": number(I32, -1)},
    {"tokenizer.ggml.padding_token_id": number(U64, 2**64 - 1)},
    {"tokenizer.ggml.unknown_token_id": number(U32, NONE)},
    {"tokenizer.ggml.eot_token_id": number(I32, -1)},
    {"tokenizer.ggml.fim_pad_token_id": number(U32, NONE)},
    {"tokenizer.ggml.seperator_token_id": number(U32, NONE)},
    {"tokenizer.ggml.add_bos_token": number(U8, 0)},
    {"tokenizer.ggml.add_eos_token": number(I32, 0)},
    {"tokenizer.ggml.add_bos_token": None, "tokenizer.ggml.add_space_prefix": number(U8, 0)},
    {"general.name": None},
    {"general.name": number(U32, 7)},
    {"general.name": string("")},
    {"general.alignment": number(U64, 32)},
    {"general.alignment": number(F32, 32.0)},
    {"llama.block_count": number(U16, LLAMA_BLOCKS)},
    {"llama.block_count": number(I64, LLAMA_BLOCKS)},
    {"llama.block_count": number(F32, LLAMA_BLOCKS)},
    {"llama.block_count": number(F64, LLAMA_BLOCKS)},
    {"llama.vocab_size": number(U32, 999)},
    {"llama.vocab_size": None},
    {"llama.rope.scaling.factor": number(F32, 0.0)},
    {"llama.rope.scaling.factor": number(F32, 1.0)},
    {"llama.rope.scaling.factor": number(U32, 1)},
    {"llama.rope.scale_linear": number(F32, 1.0)},
    {"llama.rope.scaling.type": string("none"), "llama.rope.scaling.factor": number(F32, 8.0)},
    {"llama.rope.scaling.type": string("linear")},
    {"llama.rope.scaling.type": string("")},
    {"llama.rope.scaling.finetuned": number(BOOL, 0)},
    {"llama.rope.scaling.attn_factor": number(F32, 1.0)},
    {"llama.expert_count": number(U32, 0), "llama.expert_used_count": number(U32, 0)},
    {"llama.attention.sliding_window": number(U32, 0)},
    {"llama.attention.sliding_window": number(U32, 0xFFFFFFFF)},
    {"llama.rope.scaling.type": string("yarn"), "llama.rope.scaling.factor": number(F32, 1.0)},
    {"llama.attention.causal": number(U8, 1)},
    {"llama.attention.scale": number(F32, 0.0)},
    {"llama.logit_scale": number(F32, 1.0)},
    {"llama.attn_logit_softcapping": number(F32, 0.0)},
    {"general.sampling.temp": number(F32, 0.5)},
]
SILENT_GEMMA = [
    {"gemma3.attention.sliding_window_pattern": array(BOOL, [1, 1, 0])},
    {"gemma3.attention.sliding_window_pattern": array(U32, [1, 1, 0])},
    {"gemma3.attention.sliding_window_pattern": array(I32, [1, 1, 0, 1])},
    {"gemma3.attention.sliding_window_pattern": number(I64, 3)},
    {"gemma3.rope.freq_base_swa": number(F32, 10000.0)},
    {"gemma3.rope.local.freq_base": number(F32, 10000.0)},
    {"gemma3.final_logit_softcapping": number(F32, 0.0)},
    {"gemma3.vision.block_count": number(U32, 27), "gemma3.mm.tokens_per_image": number(U32, 256)},
]
# What loads as well, but is said.
NAMED = [
    ({"tokenizer.ggml.padding_token_id": number(U32, 275)}, "padding_token_id is 275, outside the vocabulary of 275 tokens"),
    ({"tokenizer.ggml.unknown_token_id": number(U32, 1 << 31)}, "unknown_token_id is 2147483648, outside the vocabulary"),
    ({"llama.attention.shiny_new_scale": number(F32, 3.0)}, "not taken into account: llama.attention.shiny_new_scale"),
    ({"general.sampling.mirostat": number(U32, 2)}, "general.sampling.mirostat is 2: there is no such sampler here"),
    ({"general.sampling.temp": number(F32, -1.0)}, "general.sampling.temp is -1: ignored"),
    ({"tokenizer.ggml.suppress_tokens": array(I32, [1, 2])}, "suppress_tokens names 2 tokens"),
]
# What would be computed wrongly.
REFUSED = [
    ({"llama.rope.scaling.type": string("yarn"), "llama.rope.scaling.factor": number(F32, 0.5)},
     "llama.rope.scaling.factor: must be at least 1"),
    ({"llama.rope.scaling.type": string("longrope")}, "llama.rope.scaling.original_context_length"),
    ({"llama.rope.scaling.type": string("dynamic")}, "'dynamic' is not supported"),
    ({"llama.rope.scaling.attn_factor": number(F32, -1.5)}, "llama.rope.scaling.attn_factor: must be above 0"),
    ({"llama.rope.scaling.factor": number(F32, -2.0)}, "rope.scaling.factor: must be above 0"),
    ({"llama.attention.clamp_kqv": number(F32, 50.0)}, "llama.attention.clamp_kqv: must be 0 or absent"),
    ({"llama.attention.value_scale": number(F32, 0.0625)}, "llama.attention.value_scale: must be 1 or absent"),
    ({"llama.attn_logit_softcapping": number(F32, -50.0)}, "llama.attn_logit_softcapping: must be above 0"),
    ({"llama.attention.causal": number(BOOL, 0)}, "llama.attention.causal: must be true or absent"),
    ({"llama.expert_count": number(U32, 8)}, "llama.expert_used_count"),
    ({"llama.attention.head_count_kv": array(U32, [1, 2])}, "layer 0 must have 2 as others of its kind, has 1"),
    ({"llama.block_count": number(F32, 1.5)}, "llama.block_count must be an integer"),
    ({"tokenizer.ggml.pre": string("mellum3")}, "'mellum3' is not a known pre-tokenizer"),
]


def uint_of(value):
    return struct.unpack("<I", value[4:8])[0]


class Loader(CommandLineTest):
    def edited(self, fixture, changes, name="edited.gguf", retype=None):
        gguf = Gguf(pathlib.Path(fixture).read_bytes())
        for key, value in changes.items():
            if value is None:
                gguf.metadata.pop(key, None)
            else:
                gguf.metadata[key] = value
        if retype:
            gguf.tensors = [(n, rest[:-12] + struct.pack("<I", retype) + rest[-8:] if i == 1 else rest)
                            for i, (n, rest) in enumerate(gguf.tensors)]
        return self.file(name, gguf.content())

    def answer(self, model, *flags):
        """The greedy answer's tokens, and what else was said while it came."""
        done = self.kvasir("run", model, PROMPT, "--raw", "--temperature", "0", "--max-tokens", "12", "--json", *flags)
        said = [line for line in done.stderr.splitlines() if line.startswith("kvasir: ")]
        return done.stdout.split(b'"token_ids"')[1].split(b"]")[0], said

    def check_silent(self, fixture, cases):
        expected, _ = self.answer(fixture)
        for changes in cases:
            with self.subTest(changes):
                self.assertEqual(self.answer(self.edited(fixture, changes)), (expected, []))

    def test_values_that_mean_the_same_are_read_in_silence(self):
        self.check_silent(LLAMA, SILENT_LLAMA)
        self.check_silent(GEMMA, SILENT_GEMMA)

    def test_a_value_for_each_layer_is_one_value_when_all_are_equal(self):
        metadata = Gguf(pathlib.Path(LLAMA).read_bytes()).metadata
        for key in ("llama.attention.head_count", "llama.attention.head_count_kv", "llama.feed_forward_length"):
            value = uint_of(metadata[key])
            for element_type in (U32, I32, F32):
                self.check_silent(LLAMA, [{key: array(element_type, [value] * LLAMA_BLOCKS)}])

    def test_what_follows_from_other_keys_may_be_missing(self):
        self.check_silent(LLAMA, [{f"llama.{key}": None for key in (
            "attention.key_length", "attention.value_length", "rope.dimension_count", "vocab_size")}])

    def test_what_may_matter_is_named(self):
        expected, _ = self.answer(LLAMA)
        for changes, says in NAMED:
            with self.subTest(says):
                model = self.edited(LLAMA, changes)
                tokens, said = self.answer(model)
                self.assertEqual(tokens, expected)
                self.assertEqual(len(said), 1, said)
                self.assertIn(says, said[0])
                self.assertEqual(self.answer(model, "--quiet")[1], [])
                described = self.json("show", model)[0]
                self.assertEqual(described["runs"], "yes")
                self.assertEqual(len(described["notices"]), 1)
                self.assertIn(says, described["notices"][0])

    def test_what_would_be_computed_wrongly_is_refused(self):
        for changes, says in REFUSED:
            with self.subTest(says):
                model = self.edited(LLAMA, changes)
                self.refusal(BAD_FILE, "run", model, PROMPT, says=says)
                described = self.json("show", model)[0]
                self.assertEqual(described["runs"], "no")
                self.assertTrue(any(says in reason for reason in described["reasons"]), described["reasons"])

    def test_an_encoder_that_says_neither_bos_nor_eos_is_refused_with_the_flag_that_says_it(self):
        encoder = pathlib.Path(__file__).resolve().parents[1] / "goldens/bert/model.gguf"
        tokens = ["<s>", "</s>", "<unk>"] + [f"\u2581t{i}" for i in range(253)]
        unigram = {"tokenizer.ggml.model": string("t5"), "tokenizer.ggml.tokens": array(STRING, tokens),
                   "tokenizer.ggml.scores": array(F32, [0.0] * 256),
                   "tokenizer.ggml.token_type": array(I32, [3, 3, 2] + [1] * 253),
                   "tokenizer.ggml.bos_token_id": number(U32, 0), "tokenizer.ggml.eos_token_id": number(U32, 1),
                   "tokenizer.ggml.unknown_token_id": number(U32, 2)}
        silent = self.edited(encoder, unigram)
        says = "--add-special-tokens yes (or no) says so"
        self.refusal(BAD_FILE, "run", silent, PROMPT, "--raw", says=says)
        self.assertTrue(any(says in reason for reason in self.json("show", silent)[0]["reasons"]))
        generates_none = "it is an encoder"  # so far it came
        for model, flags in ((silent, ["--add-special-tokens", "yes"]), (silent, ["--add-special-tokens", "no"]),
                             (self.edited(encoder, unigram | {"tokenizer.ggml.add_eos_token": number(BOOL, 0)}), [])):
            done = self.kvasir("run", model, PROMPT, "--raw", *flags, expect=None)
            self.assertIn(generates_none, done.stderr)

    def test_a_factor_without_a_type_is_linear(self):
        typed = self.edited(LLAMA, {"llama.rope.scaling.type": string("linear"), "llama.rope.scaling.factor": number(F32, 8.0)})
        expected = self.answer(typed)
        self.assertNotEqual(expected, self.answer(LLAMA))
        for changes in ({"llama.rope.scaling.factor": number(F32, 8.0)}, {"llama.rope.scaling.factor": number(U32, 8)},
                        {"llama.rope.scale_linear": number(F32, 8.0)},
                        {"llama.rope.scaling.type": string("linear"), "llama.rope.scale_linear": number(F32, 8.0)}):
            with self.subTest(changes):
                self.assertEqual(self.answer(self.edited(LLAMA, changes)), expected)

    def test_a_missing_pre_tokenizer_is_named_once(self):
        model = self.edited(LLAMA, {"tokenizer.ggml.pre": None})
        said = self.kvasir("run", model, "hi", "--max-tokens", "1").stderr
        self.assertEqual(said.count("the pre-tokenizer is a guess"), 1, said)
        self.assertIn("tokens may differ from the model's own", said)
        shown = self.kvasir("show", model).stdout.decode()
        self.assertEqual(shown.count("the pre-tokenizer is a guess"), 1, shown)

    def test_tekken_loads_with_the_architecture_llama(self):
        for pre in ("tekken", "gpt-4o", "qwen35", "deepseek-coder", "deepseek-v3", "deepseek-llm", "falcon", "seed-coder"):
            with self.subTest(pre):
                tokens, said = self.answer(self.edited(LLAMA, {"tokenizer.ggml.pre": string(pre)}))
                self.assertEqual(said, [])
                self.assertIn(b",", tokens)

    def test_gemma3_without_windows_sees_everything_with_all_layers(self):
        absent = self.answer(self.edited(GEMMA, {"gemma3.attention.sliding_window": None}))
        self.assertEqual(absent, self.answer(self.edited(GEMMA, {"gemma3.attention.sliding_window": number(U32, 0)})))
        every = {"gemma3.attention.sliding_window_pattern": number(U32, 1)}
        self.assertEqual(absent, self.answer(self.edited(GEMMA, every)))
        flags = {"gemma3.attention.sliding_window_pattern": array(BOOL, [0, 0, 0])}
        self.assertEqual(absent, self.answer(self.edited(GEMMA, flags)))
        self.answer(self.edited(GEMMA, {"gemma3.attention.sliding_window_pattern": number(U32, 0)}))

    def test_a_context_beyond_the_machine_is_cut_to_what_fits(self):
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        trained = 10485760
        gguf.metadata["llama.context_length"] = number(U32, trained)
        path = self.file("long.gguf", gguf.content())
        run = ["--memory", "200M", "run", path, PROMPT, "--max-tokens", "4"]
        said = self.kvasir(*run).stderr.splitlines()
        notes = [line for line in said if line.startswith("kvasir: context: ")]
        self.assertEqual(len(notes), 1, said)
        fitting, model = re.fullmatch(r"kvasir: context: (\d+) tokens fit into the memory, the model was trained for (\d+)"
                                      r" \(--memory\)", notes[0]).groups()
        self.assertEqual(int(model), trained)
        self.assertTrue(1000 < int(fitting) < trained)
        self.assertNotIn("context:", self.kvasir(*run, "--ctx", "4096").stderr)
        self.refusal(MACHINE, *run, "--ctx", trained, says=f"ctx: {trained} tokens were asked for, ")
        self.refusal(USAGE, *run, "--ctx", trained + 1, says=f"the model was trained for {trained} tokens")

    def test_show_gives_every_reason_and_succeeds(self):
        model = self.edited(LLAMA, {"general.architecture": string("mamba"), "tokenizer.ggml.model": string("plamo2"),
                                    "tokenizer.chat_template": string("{% if %}")}, retype=19)
        described = self.json("show", model)[0]
        self.assertEqual(described["runs"], "no")
        reasons = "\n".join(described["reasons"])
        for part in ("'mamba' is not supported", "weights of IQ1_S are not supported (tensor ",
                     "tokenizer.ggml.model 'plamo2' is not supported", "chat template"):
            self.assertIn(part, reasons)
        self.assertEqual(len(described["reasons"]), 4, reasons)
        shown = self.kvasir("show", model).stdout.decode()
        self.assertRegex(shown, r"(?m)^runs +no$")
        self.assertEqual(shown.count("\n                - "), 4, shown)
        self.assertRegex(self.kvasir("show", LLAMA).stdout.decode(), r"(?m)^runs +yes$")

    def test_show_finds_tensors_that_do_not_fit(self):
        gguf = Gguf(pathlib.Path(LLAMA).read_bytes())
        gguf.tensors = [(b"blk.0.strange" if name == b"blk.0.attn_q.weight" else name, rest) for name, rest in gguf.tensors]
        described = self.json("show", self.file("strange.gguf", gguf.content()))[0]
        self.assertEqual(described["reasons"][0], "tensor blk.0.attn_q.weight: missing")
        self.assertIn("tensor blk.0.strange: not part of this architecture", described["reasons"][1])
        self.assertEqual(len(described["reasons"]), 2)

    def test_the_file_advises_how_to_sample(self):
        greedy, _ = self.answer(LLAMA)
        model = self.edited(LLAMA, {"general.sampling.temp": number(F32, 0.0)})
        done = self.kvasir("run", model, PROMPT, "--raw", "--max-tokens", "12", "--json")
        self.assertEqual(done.stdout.split(b'"token_ids"')[1].split(b"]")[0], greedy)
        hot = self.kvasir("run", model, PROMPT, "--raw", "--max-tokens", "12", "--json", "--temperature", "2", "--seed", "1")
        self.assertNotEqual(hot.stdout.split(b'"token_ids"')[1].split(b"]")[0], greedy)

    def ask(self, path, **body):
        """The text of an answer of at most 12 tokens, by any of the APIs."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            found = json.load(answer)
        if "choices" in found:
            return found["choices"][0].get("text") or found["choices"][0]["message"]["content"]
        return (found.get("content") or found["output"][0]["content"])[0]["text"]

    def test_all_apis_sample_as_the_file_advises(self):
        model = self.edited(LLAMA, {"general.sampling.temp": number(F32, 0.0)})
        process = self.start("serve", model, "--port", "0")
        self.url = [process.stdout.readline().decode() for _ in range(3)][1].split()[0]
        chat = {"messages": [{"role": "user", "content": "the"}], "max_tokens": 12}
        for path, body in [
            ("/v1/chat/completions", chat),
            ("/v1/completions", {"prompt": PROMPT, "max_tokens": 12}),
            ("/v1/responses", {"input": "the", "max_output_tokens": 16}),
            ("/v1/messages", chat | {"model": "edited"}),
        ]:
            with self.subTest(path):
                greedy = self.ask(path, **body, temperature=0)
                self.assertEqual(self.ask(path, **body), greedy)
                self.assertEqual(self.ask(path, **body, temperature=None), greedy)
                hot = {self.ask(path, **body, temperature=1, top_p=1) for _ in range(4)}
                self.assertNotEqual(hot, {greedy})


if __name__ == "__main__":
    unittest.main()
