#!/usr/bin/env python3
"""Folds scales of inputs into the tensors that make them, in a GGUF file of floats: AWQ and SmoothQuant, to be measured.

    fold_scales.py IN.gguf OUT.gguf --imatrix FILE --power A [--against-weights] [--groups qkv,ffn,o,down]

IN holds F32 alone (kvasir quantize M IN.gguf --type F32 --requantize). FILE is what --imatrix-out wrote. A scale is the root
mean square of the input to the power A; --against-weights divides it by the largest weight of the column to the power 1 - A.
Groups: the norm before attention, the norm before the feed-forward network, values before the output, up before down. Needs
numpy and gguf. Then: kvasir quantize OUT.gguf Q.gguf --type T ..., kvasir_divergence IN.gguf TEXT WINDOWS [--fast] Q.gguf.
"""
import argparse
import shutil

import gguf
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--imatrix", required=True)
    parser.add_argument("--power", type=float, required=True)
    parser.add_argument("--against-weights", action="store_true")
    parser.add_argument("--groups", default="qkv,ffn,o,down")
    args = parser.parse_args()
    shutil.copyfile(args.source, args.out)
    reader = gguf.GGUFReader(args.out, "r+")
    tensors = {tensor.name: tensor.data for tensor in reader.tensors}
    value = lambda key: reader.fields[key].parts[reader.fields[key].data[0]]
    name = bytes(value("general.architecture")).decode()
    heads, kv_heads, layers = (int(value(f"{name}.{key}")[0]) for key in ("attention.head_count", "attention.head_count_kv", "block_count"))
    sums, counts = {}, {}
    for tensor in gguf.GGUFReader(args.imatrix).tensors:
        flat = np.array(tensor.data, dtype=np.float64).reshape(-1)
        if tensor.name.endswith(".in_sum2"):
            sums[tensor.name.removesuffix(".in_sum2")] = flat
        elif tensor.name.endswith(".counts"):
            counts[tensor.name.removesuffix(".counts")] = flat[0]
    inputs_of = lambda tensor: np.sqrt(sums[tensor] / counts[tensor])

    def scales_of(inputs, weights):
        scales = np.maximum(inputs, 1e-6) ** args.power
        if args.against_weights:
            scales = scales / np.maximum(weights, 1e-6) ** (1 - args.power)
        return (scales / np.exp(np.mean(np.log(scales)))).astype(np.float32)

    def fold_norm(norm, matrices):
        scales = scales_of(inputs_of(matrices[0]), np.max([np.abs(tensors[each]).max(axis=0) for each in matrices], axis=0).astype(np.float64))
        tensors[norm][...] /= scales
        for each in matrices:
            tensors[each][...] *= scales[None, :]

    groups = args.groups.split(",")
    for layer in range(layers):
        part = lambda what: f"blk.{layer}.{what}.weight"
        if "qkv" in groups:
            fold_norm(part("attn_norm"), [part("attn_q"), part("attn_k"), part("attn_v")])
        if "ffn" in groups:
            fold_norm(part("ffn_norm"), [part("ffn_gate"), part("ffn_up")])
        if "o" in groups:  # a channel of a KV head is shared by its query heads
            values, output = tensors[part("attn_v")], tensors[part("attn_output")]
            shape = (kv_heads, heads // kv_heads, values.shape[0] // kv_heads)
            of_heads = inputs_of(part("attn_output")).reshape(shape)
            inputs = of_heads.max(axis=1) if args.against_weights else np.sqrt((of_heads ** 2).mean(axis=1))
            scales = scales_of(inputs, np.abs(output).max(axis=0).astype(np.float64).reshape(shape).max(axis=1))
            values[...] /= scales.reshape(-1)[:, None]
            output[...] *= np.repeat(scales[:, None, :], shape[1], axis=1).reshape(-1)[None, :]
        if "down" in groups:
            scales = scales_of(inputs_of(part("ffn_down")), np.abs(tensors[part("ffn_down")]).max(axis=0).astype(np.float64))
            tensors[part("ffn_up")][...] /= scales[:, None]
            tensors[part("ffn_down")][...] *= scales[None, :]
    reader.data.flush()


if __name__ == "__main__":
    main()
