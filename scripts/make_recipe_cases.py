#!/usr/bin/env python3
"""Writes tests/cases/recipes.txt: the types that llama-quantize chooses for models of several shapes.

    make_recipe_cases.py LLAMA_QUANTIZE [OUT]

LLAMA_QUANTIZE is the program of llama.cpp (bench/peers/install.sh builds its source; target llama-quantize). Needs numpy
and the gguf package. A line of the output is a model ("M": architecture, layers, query heads to a KV head, experts, tied),
a recipe ("R": name, with importance) or a tensor ("T": name, row length, rows, experts, type).
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = ["Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS",
           "MXFP4_MOE", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q2_0", "TQ2_0", "TQ1_0", "Q1_0", "F16", "BF16",
           "IQ3_S", "IQ3_M"]
WITH_IMPORTANCE = ["Q5_0", "Q4_0", "IQ4_NL", "IQ4_XS", "Q2_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ3_XS", "IQ3_XXS",
                   "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS"]
# architecture, layers, heads, KV heads, experts, tied, hidden, feed-forward
MODELS = [("llama", 9, 8, 2, 0, True, 256, 576), ("llama", 17, 4, 4, 0, False, 320, 512),
          ("qwen3moe", 8, 8, 4, 8, False, 256, 256), ("qwen3moe", 5, 8, 2, 16, False, 256, 64)]
LINE = re.compile(r"\]\s+(\S+)\s+- \[\s*(\d+),\s*(\d+),\s*(\d+),\s*\d+\], type =\s*(\w+), size =.*?(?:\((\w+)\))?$")


def write_model(path, arch, layers, heads, kv_heads, experts, tied, hidden, ffn):
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(layers)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(32)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(ffn)
    head = hidden // heads

    def add(name, *shape):
        writer.add_tensor(name, np.zeros(shape, np.float32))

    add("token_embd.weight", 32, hidden)
    add("output_norm.weight", hidden)
    if not tied:
        add("output.weight", 32, hidden)
    for layer in range(layers):
        name = f"blk.{layer}."
        add(name + "attn_norm.weight", hidden)
        add(name + "attn_q.weight", heads * head, hidden)
        add(name + "attn_k.weight", kv_heads * head, hidden)
        add(name + "attn_v.weight", kv_heads * head, hidden)
        add(name + "attn_output.weight", hidden, heads * head)
        add(name + "ffn_norm.weight", hidden)
        if experts:
            add(name + "ffn_gate_inp.weight", experts, hidden)
            add(name + "ffn_gate_exps.weight", experts, ffn, hidden)
            add(name + "ffn_up_exps.weight", experts, ffn, hidden)
            add(name + "ffn_down_exps.weight", experts, hidden, ffn)
        else:
            add(name + "ffn_gate.weight", ffn, hidden)
            add(name + "ffn_up.weight", ffn, hidden)
            add(name + "ffn_down.weight", hidden, ffn)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_importance(path, model):
    writer = gguf.GGUFWriter(path, "imatrix")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["none"])
    writer.add_uint32("imatrix.chunk_count", 1)
    writer.add_uint32("imatrix.chunk_size", 1)
    for tensor in gguf.GGUFReader(model).tensors:
        if len(tensor.shape) < 2 or not tensor.name.startswith("blk."):
            continue
        experts = int(tensor.shape[2]) if len(tensor.shape) > 2 else 1
        writer.add_tensor(tensor.name + ".in_sum2", np.ones((experts, int(tensor.shape[0])), np.float32))
        writer.add_tensor(tensor.name + ".counts", np.ones((experts, 1), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def types_of(program, model, recipe, importance):
    command = [program, "--dry-run", *(["--imatrix", importance] if importance else []), model, recipe]
    done = subprocess.run(command, capture_output=True, text=True)
    if "no tensor type fallback is defined" in done.stderr:
        return
    if done.returncode != 0:
        raise SystemExit(f"make_recipe_cases: {' '.join(map(str, command))}: {done.stderr[-800:]}")
    for line in (done.stdout + done.stderr).splitlines():
        if found := LINE.search(line.strip()):
            name, length, rows, experts, old, new = found.groups()
            yield name, length, rows, experts, (new or old).upper()


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "tests/cases/recipes.txt"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for number, shape in enumerate(MODELS):
            model, importance = f"{folder}/{number}.gguf", f"{folder}/{number}.imatrix.gguf"
            write_model(model, *shape)
            write_importance(importance, model)
            arch, layers, heads, kv_heads, experts, tied, *_ = shape
            lines.append(f"M {arch} {layers} {heads // kv_heads} {experts} {int(tied)}")
            for recipe, with_importance in [(r, False) for r in RECIPES] + [(r, True) for r in WITH_IMPORTANCE]:
                found = list(types_of(program, model, recipe, importance if with_importance else None))
                if not found:  # it makes no such file of this shape
                    print(f"{arch} {recipe}: left out")
                    continue
                lines.append(f"R {recipe} {int(with_importance)}")
                lines += [" ".join(("T", *map(str, tensor))) for tensor in found if "norm" not in tensor[0]]
    out.write_text("\n".join(lines) + "\n")
    print(f"{out}: {len(lines)} lines")


if __name__ == "__main__":
    main()
