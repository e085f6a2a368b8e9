#!/usr/bin/env python3
"""Writes a GGUF model as a folder as the hub has them: config.json, safetensors, tokenizer and template.

Weights are widened to F32, or rounded to BF16. Families: llama, qwen2, qwen3, gemma3. Needs numpy and the gguf
package. The tokenizer is written where make_tokenizer_folder.py knows it.
  make_model_folder.py model.gguf FOLDER --type BF16 --shards 3
"""
import argparse
import json
import pathlib
import re
import struct

import gguf
import numpy as np

import make_tokenizer_folder

NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
               "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
               "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
               "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA_NAMES = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"}
KEYS = {"embedding_length": "hidden_size", "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim", "context_length": "max_position_embeddings",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps", "rope.freq_base": "rope_theta",
        "attention.sliding_window": "sliding_window", "attention.sliding_window_pattern": "sliding_window_pattern"}
MODEL_TYPES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3_text"}


def contents(reader):
    return {name: field.contents() for name, field in reader.fields.items()}


def config_of(values):
    architecture = values["general.architecture"]
    if architecture not in MODEL_TYPES:
        raise SystemExit(f"make_model_folder.py: {architecture} is not known here")
    config = {"model_type": MODEL_TYPES[architecture]}
    config["architectures"] = ["AutoModelForCausalLM"]
    for key, name in KEYS.items():
        if f"{architecture}.{key}" in values:
            config[name] = values[f"{architecture}.{key}"]
    scaling = values.get(f"{architecture}.rope.scaling.type")
    if scaling == "linear":
        config["rope_scaling"] = {"rope_type": "linear", "factor": values[f"{architecture}.rope.scaling.factor"]}
    elif scaling not in (None, "none"):
        raise SystemExit(f"make_model_folder.py: RoPE scaling {scaling} is not known here")
    if architecture == "gemma3":
        width = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
        scale = values.get("gemma3.attention.scale")
        config["query_pre_attn_scalar"] = round(scale ** -2) if scale else width
        config["hidden_activation"] = "gelu_pytorch_tanh"
    else:
        config["hidden_act"] = "silu"
    for name in ("bos", "eos"):
        if f"tokenizer.ggml.{name}_token_id" in values:
            config[f"{name}_token_id"] = values[f"tokenizer.ggml.{name}_token_id"]
    return config


def folder_name(name, architecture):
    module, parameter = name.rsplit(".", 1)
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)", module)
    if not layer:
        return f"{NAMES[module]}.{parameter}"
    names = {**LAYER_NAMES, **(GEMMA_NAMES if architecture == "gemma3" else {})}
    return f"model.layers.{layer[1]}.{names[layer[2]]}.{parameter}"


def weights_of(tensor, architecture, config):
    """As the folder has them: RoPE by halves, and Gemma's norms around 0."""
    weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    part = tensor.name.split(".")[-2]
    if architecture == "llama" and part in ("attn_q", "attn_k"):
        heads = config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"]
        pairs = weights.reshape(heads, weights.shape[0] // heads // 2, 2, *weights.shape[1:])
        weights = pairs.swapaxes(1, 2).reshape(weights.shape)
    if architecture == "gemma3" and part.endswith("norm"):
        weights = weights - 1
    return np.ascontiguousarray(weights, np.float32)


def to_bytes(weights, kind):
    if kind == "F32":
        return weights.tobytes()
    bits = weights.view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()


def write_safetensors(path, tensors, kind):
    header, data, place = {"__metadata__": {"format": "pt"}}, [], 0
    for name, weights in tensors.items():
        data.append(to_bytes(weights, kind))
        header[name] = {"dtype": kind, "shape": list(weights.shape), "data_offsets": [place, place + len(data[-1])]}
        place += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def write_weights(folder, tensors, kind, num_shards):
    if num_shards == 1:
        write_safetensors(folder / "model.safetensors", tensors, kind)
        return
    names, index = list(tensors), {}
    for shard in range(num_shards):
        file = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        own = names[shard * len(names) // num_shards:(shard + 1) * len(names) // num_shards]
        write_safetensors(folder / file, {name: tensors[name] for name in own}, kind)
        index.update(dict.fromkeys(own, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--type", choices=["F32", "BF16"], default="F32")
    parser.add_argument("--shards", type=int, default=1)
    arguments = parser.parse_args()
    reader = gguf.GGUFReader(arguments.model)
    values = contents(reader)
    architecture, config = values["general.architecture"], config_of(values)
    tensors = {folder_name(tensor.name, architecture): weights_of(tensor, architecture, config)
               for tensor in reader.tensors}
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    config["vocab_size"] = tensors["model.embed_tokens.weight"].shape[0]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    (arguments.folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_weights(arguments.folder, tensors, arguments.type, arguments.shards)
    try:
        metadata = make_tokenizer_folder.Metadata(arguments.model)
        files = {"tokenizer.json": make_tokenizer_folder.tokenizer_json(metadata),
                 "tokenizer_config.json": make_tokenizer_folder.tokenizer_config(metadata)}
    except make_tokenizer_folder.Unsupported as error:
        print(f"no tokenizer: {error}")
        return
    for name, content in files.items():
        (arguments.folder / name).write_text(json.dumps(content, ensure_ascii=False))


if __name__ == "__main__":
    main()
