#!/usr/bin/env python3
"""Trains an adapter (LoRA) of a Llama-shaped GGUF model on pairs of questions and answers, and writes a folder as PEFT does.

Usage: train_adapter.py MODEL.gguf PAIRS.jsonl OUT [--rank N] [--steps N] [--batch N] [--rate X]
Needs numpy, gguf and jax. The model's tokens and chat template come from `kvasir serve`, so what is trained is what it sees.
"""
import argparse
import json
import pathlib
import struct
import sys
import time

import gguf
import jax
import jax.numpy as jnp
import numpy as np

import kvasir_server

# GGUF's name of a matrix in a layer, and PEFT's.
MODULES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj"}
LAYER = [*MODULES, "ffn_gate", "ffn_up", "ffn_down", "attn_norm", "ffn_norm"]


class Model:
    """The weights in float32, a layer's behind each other, and the sizes."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.")}
        if fields["general.architecture"] != "llama":
            raise SystemExit(f"{path}: its architecture is {fields['general.architecture']}, this script knows llama")
        self.layers, self.heads = fields["llama.block_count"], fields["llama.attention.head_count"]
        self.kv_heads, self.epsilon = fields["llama.attention.head_count_kv"], fields["llama.attention.layer_norm_rms_epsilon"]
        self.rope_base = fields.get("llama.rope.freq_base", 10000.0)
        tensors = {tensor.name: np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32) for tensor in reader.tensors}
        self.embedding, self.norm = tensors["token_embd.weight"], tensors["output_norm.weight"]
        self.head = tensors.get("output.weight", self.embedding)
        self.stacked = {name: np.stack([tensors[f"blk.{i}.{name}.weight"] for i in range(self.layers)]) for name in LAYER}
        self.head_dim = self.stacked["attn_q"].shape[1] // self.heads


def rms(x, weight, epsilon):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rotate(x, base):
    """GGUF's order of a Llama: numbers 2i and 2i + 1 are a pair. x: [batch, tokens, heads, head_dim]."""
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    half = pairs.shape[-2]
    angles = jnp.arange(x.shape[1])[:, None] * base ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    first, second = pairs[..., 0], pairs[..., 1]
    return jnp.stack([first * cosine - second * sine, first * sine + second * cosine], -1).reshape(x.shape)


def forward(model, weights, adapter, scale, tokens):
    batch, length = tokens.shape
    groups = model.heads // model.kv_heads
    mask = jnp.tril(jnp.ones((length, length), bool))

    def layer(x, inputs):
        w, a = inputs

        def linear(name, y):
            changed = y @ w[name].T
            return changed + scale * ((y @ a[name]["A"].T) @ a[name]["B"].T) if name in a else changed

        y = rms(x, w["attn_norm"], model.epsilon)
        q = rotate(linear("attn_q", y).reshape(batch, length, model.heads, -1), model.rope_base)
        k = rotate(linear("attn_k", y).reshape(batch, length, model.kv_heads, -1), model.rope_base)
        v = linear("attn_v", y).reshape(batch, length, model.kv_heads, -1)
        k, v = jnp.repeat(k, groups, 2), jnp.repeat(v, groups, 2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(model.head_dim)
        shares = jax.nn.softmax(jnp.where(mask, scores, -1e30), -1)
        x = x + linear("attn_output", jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(batch, length, -1))
        y = rms(x, w["ffn_norm"], model.epsilon)
        return x + linear("ffn_down", jax.nn.silu(linear("ffn_gate", y)) * linear("ffn_up", y)), None

    x, _ = jax.lax.scan(jax.checkpoint(layer), weights["embedding"][tokens], (weights["layers"], adapter))
    return rms(x, weights["norm"], model.epsilon) @ weights["head"].T


def read_pairs(model_path, pairs_path):
    """Of each pair the token ids, and the number of those before the answer."""
    pairs = []
    with kvasir_server.Server(model_path) as server:
        for line in open(pairs_path):
            messages = json.loads(line)["messages"]
            question = server.post("/tokenize", {"messages": messages[:-1], "add_generation_prompt": True})["tokens"]
            whole = server.post("/tokenize", {"messages": messages, "add_generation_prompt": False})["tokens"]
            if whole[:len(question)] == question:  # else the template writes past turns in another way
                pairs.append((whole, len(question)))
    return pairs


def batches(pairs, size, length, seed):
    draw = np.random.default_rng(seed)
    while True:
        tokens, counts = np.zeros((size, length), np.int32), np.zeros((size, length), np.float32)
        for row, place in enumerate(draw.choice(len(pairs), size, replace=False)):
            ids, begin = pairs[place]
            ids = ids[:length]
            tokens[row, :len(ids)] = ids
            counts[row, begin - 1:len(ids) - 1] = 1  # rows whose next token is the answer's
        yield tokens, counts


def unpermuted(b, heads):
    """Rows of Q and K as PEFT has them: GGUF has turned halves of a head into pairs."""
    rows, rank = b.shape
    return b.reshape(heads, rows // heads // 2, 2, rank).swapaxes(1, 2).reshape(rows, rank)


def write_peft(folder, model, adapter, rank, alpha):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header, data = {}, bytearray()
    for name, module in MODULES.items():
        for half in "AB":
            for i in range(model.layers):
                numbers = np.asarray(adapter[name][half][i])
                if half == "B" and name in ("attn_q", "attn_k"):
                    numbers = unpermuted(numbers, model.heads if name == "attn_q" else model.kv_heads)
                begin = len(data)
                data += numbers.astype(np.float16).tobytes()
                header[f"base_model.model.model.layers.{i}.{module}.lora_{half}.weight"] = {
                    "dtype": "F16", "shape": list(numbers.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": [module.split(".")[1] for module in MODULES.values()]}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("pairs")
    parser.add_argument("out")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model = Model(arguments.model)
    weights = {"embedding": model.embedding, "norm": model.norm, "head": model.head, "layers": model.stacked}
    weights = jax.tree.map(jnp.asarray, weights)
    draw = np.random.default_rng(arguments.seed)
    adapter = {name: {"A": jnp.asarray(draw.normal(0, model.stacked[name].shape[2] ** -0.5, (model.layers, arguments.rank, model.stacked[name].shape[2])), jnp.float32),
                      "B": jnp.zeros((model.layers, model.stacked[name].shape[1], arguments.rank), jnp.float32)} for name in MODULES}
    alpha = 2 * arguments.rank
    scale = alpha / arguments.rank

    def loss(adapter, weights, tokens, counts):
        likelihoods = jax.nn.log_softmax(forward(model, weights, adapter, scale, tokens)[:, :-1])
        chosen = jnp.take_along_axis(likelihoods, tokens[:, 1:, None], 2)[..., 0]
        return -(chosen * counts[:, :-1]).sum() / counts.sum()

    @jax.jit
    def update(adapter, first, second, weights, tokens, counts, step, rate):
        value, slope = jax.value_and_grad(loss)(adapter, weights, tokens, counts)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
        adapter = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9 ** step)) / (jnp.sqrt(v / (1 - 0.99 ** step)) + 1e-8), adapter, first, second)
        return adapter, first, second, value

    first = second = jax.tree.map(jnp.zeros_like, adapter)
    began = time.monotonic()
    source = batches(read_pairs(arguments.model, arguments.pairs), arguments.batch, arguments.length, arguments.seed)
    for step in range(1, arguments.steps + 1):
        tokens, counts = next(source)
        rate = arguments.rate * min(1.0, step / 10) * 0.5 * (1 + np.cos(np.pi * step / arguments.steps))
        adapter, first, second, value = update(adapter, first, second, weights, tokens, counts, step, rate)
        if step % 5 == 0 or step == 1:
            print(f"step {step} of {arguments.steps}: loss {float(value):.3f}, {time.monotonic() - began:.0f} s", flush=True)
    write_peft(arguments.out, model, adapter, arguments.rank, alpha)
    return 0


if __name__ == "__main__":
    sys.exit(main())
