#!/usr/bin/env python3
"""Writes a GGUF file with the shapes of a well-known model and random weights, to time what depends on shapes alone.

Needs numpy and the gguf package. Weights are random blocks with fixed scales, so a file of 17 GB takes a minute. The
same arguments give the same bytes.
  make_shape_model.py 8b 8b.gguf             Llama 3's 8B: dense, Q4_K with a Q6_K head
  make_shape_model.py 8x1b 8x1b.gguf         16 layers, 2048 wide, 8 experts of 8192, 2 used
  make_shape_model.py 30b-a3b 30b-a3b.gguf   Qwen 3's 30B-A3B: 48 layers, 128 experts of 768, 8 used
  make_shape_model.py nomic nomic.gguf --type Q8_0   Nomic's text encoder
"""
import argparse
import types

import gguf
import numpy as np

import make_tiny_model

SHAPES = {
    "8b": dict(arch="llama", layers=32, embedding=4096, ffn=14336, heads=32, kv_heads=8, head_dim=128, vocab=128256,
               experts=0, experts_used=0, context=8192, rope_base=5e5),
    "8x1b": dict(arch="qwen3moe", layers=16, embedding=2048, ffn=8192, heads=32, kv_heads=8, head_dim=64, vocab=49152,
                 experts=8, experts_used=2, context=8192, rope_base=1e6),
    "30b-a3b": dict(arch="qwen3moe", layers=48, embedding=2048, ffn=768, heads=32, kv_heads=4, head_dim=128, vocab=151936,
                    experts=128, experts_used=8, context=32768, rope_base=1e6),
    "nomic": dict(arch="nomic-bert", layers=12, embedding=768, ffn=3072, heads=12, kv_heads=12, head_dim=64, vocab=30522,
                  experts=0, experts_used=0, context=2048, rope_base=1e3),
}
# Bytes of a block of 256 weights, and the places of its half-precision scales.
BLOCKS = {"Q4_K": (144, (0, 2)), "Q6_K": (210, (208,)), "Q8_0": (8 * 34, range(0, 272, 34))}


class BlockSource:
    """Random blocks of one type; every tensor is a piece of the same ones, from another place."""
    SPARE_BLOCKS = 4096

    def __init__(self, weight_type, most_blocks, rng):
        self.block_bytes, scales = BLOCKS[weight_type]
        self.rng = rng
        blocks = rng.integers(0, 256, (most_blocks + self.SPARE_BLOCKS, self.block_bytes), np.uint8)
        for place in scales:  # of about 1 / 64 over the largest code
            blocks[:, place:place + 2] = np.frombuffer(np.float16(2e-4).tobytes(), np.uint8)
        self.bytes = blocks.reshape(-1)

    def take(self, num_blocks):
        begin = int(self.rng.integers(0, self.SPARE_BLOCKS)) * self.block_bytes
        return self.bytes[begin:begin + num_blocks * self.block_bytes]


class ShapeWriter:
    def __init__(self, writer, shape, weight_type, head_type, seed):
        self.writer = writer
        self.rng = np.random.default_rng(seed)
        experts = max(1, shape.experts)
        layer = max(shape.embedding * shape.ffn * experts, shape.embedding * shape.heads * shape.head_dim)
        head = shape.vocab * shape.embedding
        most = {}
        for weight, size in ((weight_type, max(layer, head)), (head_type, head)):
            most[weight] = max(most.get(weight, 0), size // 256)
        self.sources = {weight: BlockSource(weight, blocks, self.rng) for weight, blocks in most.items()}

    def matrix(self, name, shape, weight_type):
        data = self.sources[weight_type].take(int(np.prod(shape)) // 256).reshape(*shape[:-1], -1)
        self.writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[weight_type])

    def vector(self, name, length):
        self.writer.add_tensor(name, np.ones(length, np.float32))

    def norm(self, name, length):
        """With a bias."""
        self.vector(name + ".weight", length)
        self.writer.add_tensor(name + ".bias", np.zeros(length, np.float32))

    def floats(self, name, shape):
        self.writer.add_tensor(name, self.rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1])))


def add_encoder_layer(out, shape, layer, weight_type):
    prefix, width = f"blk.{layer}.", shape.embedding
    for name, rows, columns in (("attn_qkv", 3 * width, width), ("attn_output", width, width), ("ffn_gate", shape.ffn, width),
                                ("ffn_up", shape.ffn, width), ("ffn_down", width, shape.ffn)):
        out.matrix(f"{prefix}{name}.weight", (rows, columns), weight_type)
    for name in ("attn_output_norm", "layer_output_norm"):
        out.norm(prefix + name, width)


def add_encoder_metadata(writer):
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_layer_norm_eps(1e-12)
    writer.add_add_eos_token(True)


def add_layer(out, shape, layer, weight_type):
    width, query, key_value = shape.embedding, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    prefix = f"blk.{layer}."
    out.vector(prefix + "attn_norm.weight", width)
    out.vector(prefix + "ffn_norm.weight", width)
    for name, rows, columns in (("q", query, width), ("k", key_value, width), ("v", key_value, width),
                                ("output", width, query)):
        out.matrix(f"{prefix}attn_{name}.weight", (rows, columns), weight_type)
    if shape.arch == "qwen3moe":
        out.vector(prefix + "attn_q_norm.weight", shape.head_dim)
        out.vector(prefix + "attn_k_norm.weight", shape.head_dim)
    experts, suffix = ((shape.experts,), "_exps") if shape.experts else ((), "")
    if shape.experts:
        out.floats(prefix + "ffn_gate_inp.weight", (shape.experts, width))
    for name, rows, columns in (("gate", shape.ffn, width), ("up", shape.ffn, width), ("down", width, shape.ffn)):
        out.matrix(f"{prefix}ffn_{name}{suffix}.weight", (*experts, rows, columns), weight_type)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("output")
    parser.add_argument("--type", choices=BLOCKS, default="Q4_K", help="of the layers and the embedding")
    parser.add_argument("--head-type", choices=BLOCKS, default="Q6_K")
    parser.add_argument("--layers", type=int, help="fewer, for a smaller file")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    shape = types.SimpleNamespace(**SHAPES[args.shape], type=args.type, tokenizer="bpe", pre="llama-bpe",
                                  chat_template=True, rope_scaling=None, shared_layers=0)
    shape.layers = args.layers or shape.layers
    is_encoder = shape.arch == "nomic-bert"
    make_tiny_model.FILE_TYPE.setdefault(args.type, 15)
    writer = gguf.GGUFWriter(args.output, shape.arch)
    make_tiny_model.add_metadata(writer, shape)
    out = ShapeWriter(writer, shape, args.type, args.head_type, args.seed)
    out.matrix("token_embd.weight", (shape.vocab, shape.embedding), args.type)
    if is_encoder:
        add_encoder_metadata(writer)
        out.norm("token_embd_norm", shape.embedding)
        out.floats("token_types.weight", (2, shape.embedding))
    else:
        out.matrix("output.weight", (shape.vocab, shape.embedding), args.head_type)
        out.vector("output_norm.weight", shape.embedding)
    for layer in range(shape.layers):
        (add_encoder_layer if is_encoder else add_layer)(out, shape, layer, args.type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
