"""A GGUF file of the Llama architecture by the hub's names, with its tokenizer as the hub's files."""
from __future__ import annotations

import json
import pathlib
from typing import Any

import gguf
import numpy as np
import torch

from .. import quant
from ..errors import ModelError
from .llama import LlamaConfig

#: By the names of GGUF: those of the hub.
MODULES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
_CONTROL = 3  # token types as GGUF numbers them
_USER_DEFINED = 4
_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def _bytes(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split(pattern: str) -> list[dict[str, Any]]:
    return [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, _bytes(False)]


#: How texts are split before merges, by the names of GGUF.
_PRE_TOKENIZERS: dict[str, list[dict[str, Any]]] = {
    "smollm": [{"type": "Digits", "individual_digits": True}, _bytes(True)],
    "gpt-2": [_bytes(True)],
    "qwen2": _split(_WORDS % ""),
    "llama-bpe": _split(_WORDS % "{1,3}"),
}

def hub_name(name: str) -> str:
    """"blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight". ModelError: a tensor that no Llama has."""
    parts = name.split(".")
    module = MODULES.get(parts[-2]) if len(parts) in (2, 4) else None
    if module is None or parts[-1] != "weight":
        raise ModelError(f"{name}: a Llama model has no such tensor")
    return f"{module}.weight" if len(parts) == 2 else f"model.layers.{parts[1]}.{module}.weight"


def by_halves(rows: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Rows of queries or keys whose RoPE turns neighbours, as GGUF has them, to those that turn halves."""
    return rows.view(-1, head_dim // 2, 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def by_neighbours(rows: torch.Tensor, head_dim: int) -> torch.Tensor:
    """by_halves() back."""
    return rows.view(-1, 2, head_dim // 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def turns_neighbours(reader: gguf.GGUFReader, name: str) -> bool:
    """Whether this matrix, by the hub's name, makes what RoPE turns, and its rows stand as by_neighbours() gives them."""
    return ("q_proj" in name or "k_proj" in name) and _value(reader, "llama.rope.style") != "halves"


def read(path: pathlib.Path) -> tuple[LlamaConfig, dict[str, torch.Tensor], dict[str, str]]:
    """Shape, float32 tensors by the hub's names, the tokenizer's files. ModelError: another architecture or tokenizer."""
    reader = gguf.GGUFReader(path)
    config = _config_of(reader)
    tensors = {}
    for tensor in reader.tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        rows = (int(np.prod(shape[:-1])), shape[-1])
        data = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1)
        values = torch.from_numpy(quant.decode(data, tensor.tensor_type.name, rows)).reshape(shape)
        name = hub_name(tensor.name)
        tensors[name] = by_halves(values, config.head_dim) if turns_neighbours(reader, name) else values
    return config, tensors, _texts_of(reader)


def _value(reader: gguf.GGUFReader, name: str, default: Any = None) -> Any:
    field = reader.get_field(name)
    return default if field is None else field.contents()


def _config_of(reader: gguf.GGUFReader) -> LlamaConfig:
    architecture = _value(reader, "general.architecture")
    if architecture != "llama":
        raise ModelError(f"general.architecture: must be llama, got {architecture}")
    if _value(reader, "llama.rope.scaling.type", "none") != "none" or any(t.name == "rope_freqs.weight" for t in reader.tensors):
        raise ModelError("llama.rope.scaling: must not be there")
    heads, hidden = _value(reader, "llama.attention.head_count"), _value(reader, "llama.embedding_length")
    embedding = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    return LlamaConfig(
        vocab_size=int(embedding.shape[1]), hidden_size=hidden, intermediate_size=_value(reader, "llama.feed_forward_length"),
        num_hidden_layers=_value(reader, "llama.block_count"), num_attention_heads=heads,
        num_key_value_heads=_value(reader, "llama.attention.head_count_kv", heads),
        head_dim=_value(reader, "llama.attention.key_length", hidden // heads),
        # Nine digits stand for a float32; json would print it as a double.
        rms_norm_eps=float(f"{_value(reader, 'llama.attention.layer_norm_rms_epsilon'):.9g}"),
        rope_theta=_value(reader, "llama.rope.freq_base", 10000.0),
        max_position_embeddings=_value(reader, "llama.context_length"),
        tie_word_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors),
        bos_token_id=_value(reader, "tokenizer.ggml.bos_token_id"), eos_token_id=_value(reader, "tokenizer.ggml.eos_token_id"))


def _texts_of(reader: gguf.GGUFReader) -> dict[str, str]:
    kind = _value(reader, "tokenizer.ggml.model")
    if kind is None or kind == "none":
        return {}
    pre = _value(reader, "tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise ModelError(f"tokenizer.ggml.pre: must be one of {', '.join(_PRE_TOKENIZERS)}, got {kind} {pre}")
    tokens, types = _value(reader, "tokenizer.ggml.tokens"), _value(reader, "tokenizer.ggml.token_type")
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": types[i] == _CONTROL} for i, token in enumerate(tokens) if types[i] in (_CONTROL, _USER_DEFINED)]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _PRE_TOKENIZERS[pre]}, "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": pre == "llama-bpe",
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": _value(reader, "tokenizer.ggml.merges")},
    }
    about: dict[str, Any] = {"add_bos_token": bool(_value(reader, "tokenizer.ggml.add_bos_token", False)), "add_prefix_space": False}
    template = _value(reader, "tokenizer.chat_template")
    if template is not None:
        about["chat_template"] = template
    for role, key in {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}.items():
        number = _value(reader, f"tokenizer.ggml.{key}_token_id")
        if number is not None:
            about[role] = tokens[number]
    return {"tokenizer.json": json.dumps(tokenizer, ensure_ascii=False),
            "tokenizer_config.json": json.dumps(about, ensure_ascii=False)}
