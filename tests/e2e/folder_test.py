"""A model folder as the hub has it, at the command line: every command takes it, and each fault is one line."""
import json
import pathlib
import random
import struct
import sys
import unittest

from command_line import BAD_FILE, LLAMA, CommandLineTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import make_tokenizer_folder  # noqa: E402

WIDTH, FFN, HEADS, LAYERS = 32, 48, 2, 2
PROMPT = "the quick brown fox jumps over it"


def tensors_of(vocab_size):
    """Names and shapes of a tied model of the Llama shape."""
    shapes = {"model.embed_tokens.weight": (vocab_size, WIDTH), "model.norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes |= {prefix + name + ".weight": shape for name, shape in (
            ("input_layernorm", (WIDTH,)), ("post_attention_layernorm", (WIDTH,)),
            ("self_attn.q_proj", (WIDTH, WIDTH)), ("self_attn.k_proj", (WIDTH, WIDTH)),
            ("self_attn.v_proj", (WIDTH, WIDTH)), ("self_attn.o_proj", (WIDTH, WIDTH)),
            ("mlp.gate_proj", (FFN, WIDTH)), ("mlp.up_proj", (FFN, WIDTH)), ("mlp.down_proj", (WIDTH, FFN)))}
    return shapes


def write_safetensors(path, shapes, repeated=None, overlap=False):
    source, header, data = random.Random(1), [], b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(source.gauss(0, 0.3) for _ in range(count)))
        place = [len(data) - 4, len(data) - 4 + len(values)] if overlap and data else [len(data), len(data) + len(values)]
        header.append((name, {"dtype": "F32", "shape": shape, "data_offsets": place}))
        data += values
    if repeated:
        header.append((repeated, {"dtype": "F32", "shape": [0], "data_offsets": [len(data), len(data)]}))
    text = ("{" + ",".join(f"{json.dumps(name)}:{json.dumps(entry)}" for name, entry in header) + "}").encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class FolderTest(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "tiny"
        self.model.mkdir()
        metadata = make_tokenizer_folder.Metadata(LLAMA)
        tokenizer = make_tokenizer_folder.tokenizer_json(metadata)
        self.write("tokenizer.json", tokenizer)
        self.write("tokenizer_config.json", make_tokenizer_folder.tokenizer_config(metadata))
        self.config = {"model_type": "llama", "hidden_size": WIDTH, "intermediate_size": FFN,
                       "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "max_position_embeddings": 512}
        self.write("config.json", self.config)
        self.shapes = tensors_of(len(tokenizer["model"]["vocab"]))
        write_safetensors(self.model / "model.safetensors", self.shapes)

    def write(self, name, content):
        (self.model / name).write_text(json.dumps(content))

    def fault(self, says):
        """The folder does not run, and one line says why."""
        self.refusal(BAD_FILE, "run", self.model, PROMPT, "--max-tokens", "4", says=says)

    def test_every_command_takes_it(self):
        shown = self.json("show", self.model)[0]
        self.assertEqual(shown["runs"], "yes", shown["reasons"])
        self.assertEqual((shown["name"], shown["architecture"], shown["num_layers"]), ("tiny", "llama", LAYERS))
        self.assertTrue(shown["chat_template"])
        ids = self.json("tokenize", self.model, PROMPT)["ids"]
        self.assertEqual(ids, self.json("tokenize", LLAMA, PROMPT)["ids"])
        answer = self.json("run", self.model, PROMPT, "--max-tokens", "6", "--temperature", "0", "--raw")
        self.assertEqual(answer["completion_tokens"], len(answer["token_ids"]))
        again = self.json("run", f"{self.model}/", PROMPT, "--max-tokens", "6", "--temperature", "0", "--raw")
        self.assertEqual(again["token_ids"], answer["token_ids"])

    def test_quantising_at_load_says_the_type(self):
        benched = self.json("bench", self.model, "--prompt", "8", "--gen", "0", "--repeat", "1", "--quantize",
                               "q8_0")
        self.assertIn("Q8_0", json.dumps(benched["model"]))

    def test_quantize_makes_a_file_of_it(self):
        out = self.folder / "tiny.gguf"
        said = self.json("quantize", self.model, out, "--type", "F32", "--no-verify")
        self.assertEqual({"F32"}, {tensor["type"] for tensor in said["tensors"]})
        ids = self.json("tokenize", self.model, PROMPT)["ids"]
        self.assertEqual(ids, self.json("tokenize", out, PROMPT)["ids"])
        answers = [self.json("run", model, PROMPT, "--raw", "--max-tokens", "8", "--temperature", "0")["token_ids"]
                   for model in (self.model, out)]
        self.assertEqual(answers[0], answers[1])
        small = self.json("quantize", self.model, self.folder / "small.gguf", "--type", "Q8_0")
        self.assertLess(small["verify"]["kl"], 0.01)

    def test_generation_config_gives_the_sampling(self):
        self.write("generation_config.json", {"temperature": 0.25, "top_k": 3})
        metadata = self.json("show", self.model, "--metadata")[0]["metadata"]
        self.assertEqual((metadata["general.sampling.temp"], metadata["general.sampling.top_k"]), (0.25, 3))

    def test_a_template_of_its_own_wins(self):
        (self.model / "chat_template.jinja").write_text("{{ 'own' }}")
        metadata = self.json("show", self.model, "--metadata")[0]["metadata"]
        self.assertEqual(metadata["tokenizer.chat_template"], "{{ 'own' }}")

    def test_faults_of_the_files(self):
        path = self.model / "model.safetensors"
        write_safetensors(path, self.shapes, repeated="model.norm.weight")
        self.fault("tensor model.norm.weight: appears twice")
        write_safetensors(path, self.shapes | {"model.norm.weight": (WIDTH + 1,)})
        self.fault("tensor output_norm.weight: must be 1 x 32, is 1 x 33")
        write_safetensors(path, self.shapes | {"model.odd.weight": (WIDTH,)})
        self.fault("tensor model.odd.weight: not part of a llama")
        write_safetensors(path, self.shapes, overlap=True)
        self.fault("inside the tensor before it")
        write_safetensors(path, self.shapes)
        path.write_bytes(path.read_bytes()[:-1])
        self.fault("is the download incomplete?")
        path.rename(self.model / "pytorch_model.bin")
        self.fault("pickle file")
        write_safetensors(self.model / "model-00001-of-00002.safetensors", self.shapes)
        self.fault("but no model.safetensors.index.json")
        names = {name: "model-00001-of-00002.safetensors" for name in self.shapes}
        names["model.norm.weight"] = "model-00002-of-00002.safetensors"
        self.write("model.safetensors.index.json", {"weight_map": names})
        self.fault("has the tensor model.norm.weight")
        (self.model / "model-00001-of-00002.safetensors").unlink()
        self.fault("model-00001-of-00002.safetensors is missing")
        self.write("model.safetensors.index.json", {"weight_map": names | {"model.norm.weight": "pytorch_model.bin"}})
        self.fault("pytorch_model.bin of tensor model.norm.weight is no safetensors file")

    def test_a_shard_of_another_model_is_no_part_of_this(self):
        stray = "model-00002-of-00007.safetensors"
        write_safetensors(self.model / stray, self.shapes)
        self.fault(f"has {stray} beside model.safetensors, and no index that names it")
        (self.model / "model.safetensors").rename(self.model / "model-00001-of-00001.safetensors")
        self.write("model.safetensors.index.json",
                   {"weight_map": {name: "model-00001-of-00001.safetensors" for name in self.shapes}})
        self.fault(f"has {stray}, which model.safetensors.index.json does not name")
        (self.model / stray).unlink()
        self.assertEqual(self.json("show", self.model)[0]["runs"], "yes")

    def test_a_folder_that_does_not_run_is_described_with_every_reason(self):
        self.write("config.json", self.config | {"hidden_act": "relu", "logits_multiplier": 2, "odd_scale": 3})
        write_safetensors(self.model / "model.safetensors", self.shapes | {"model.odd.weight": (WIDTH,)})
        self.fault("hidden_act must be silu")
        shown = self.json("show", self.model)[0]
        self.assertEqual((shown["runs"], shown["architecture"], shown["num_layers"]), ("no", "llama", LAYERS))
        self.assertEqual(shown["num_tensors"], len(self.shapes) + 1)
        for says, reason in zip(("hidden_act must be silu", "logits_multiplier is 2", "odd_scale is 3",
                                 "tensor model.odd.weight: not part of a llama"), shown["reasons"], strict=True):
            self.assertIn(says, reason)
        self.refusal(BAD_FILE, "plan", self.model, says="hidden_act must be silu")

    def test_a_folder_of_an_unknown_family_is_described(self):
        self.write("config.json", self.config | {"model_type": "qwen3_5_moe"})
        shown = self.json("show", self.model)[0]
        self.assertEqual((shown["runs"], shown["architecture"], shown["nearest"]), ("no", "qwen35moe", "qwen3"))
        self.assertEqual((shown["num_layers"], shown["context_length_tokens"]), (LAYERS, 512))
        self.assertIn("model_type 'qwen3_5_moe' is not supported", shown["reasons"][0])
        self.write("config.json", self.config | {"model_type": "nothing", "quantization_config": {"quant_method": "odd"}})
        reasons = self.json("show", self.model)[0]["reasons"]
        for says, reason in zip(("model_type 'nothing'", "weights of odd"), reasons, strict=True):
            self.assertIn(says, reason)

    def test_faults_of_the_configuration(self):
        self.write("config.json", self.config | {"logits_multiplier": 2})
        self.fault("logits_multiplier is 2")
        self.write("config.json", self.config | {"hidden_act": "relu"})
        self.fault("hidden_act must be silu")
        self.write("config.json", self.config | {"model_type": "nothing"})
        self.fault("model_type 'nothing' is not supported")
        (self.model / "config.json").unlink()
        self.fault("is a folder without config.json")


if __name__ == "__main__":
    unittest.main()
