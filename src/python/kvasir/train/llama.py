"""The Llama architecture: RMSNorm, RoPE by halves, grouped queries, SwiGLU. Parameters have the hub's names."""
from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import nn

from ..errors import ModelError
from .fake_quant import Linear


@dataclasses.dataclass(frozen=True)
class LlamaConfig:
    """The shape of a model, by the names of config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    max_position_embeddings: int = 2048
    tie_word_embeddings: bool = True
    bos_token_id: int | None = None
    eos_token_id: int | None = None

    @classmethod
    def of_json(cls, config: dict[str, Any]) -> LlamaConfig:
        """Of a config.json. ModelError: another architecture, or what this one does not compute."""
        if config.get("model_type") != "llama":
            raise ModelError(f"config.json: model_type must be llama, got {config.get('model_type')}")
        for name in ("rope_scaling", "attention_bias", "mlp_bias"):
            if config.get(name):
                raise ModelError(f"config.json: {name} must not be there, got {config[name]}")
        heads = config["num_attention_heads"]
        told = {"num_key_value_heads": heads, "head_dim": config["hidden_size"] // heads, "tie_word_embeddings": False,
                **{name: value for name, value in config.items() if value is not None}}
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: told[name] for name in names if name in told})

    def to_json(self) -> dict[str, Any]:
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
                "torch_dtype": "float32", **{name: value for name, value in dataclasses.asdict(self).items()
                                             if value is not None}}


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return scaled * self.weight


class Rotation:
    """The angles of RoPE for positions from 0 on: [length, head_dim] each."""

    def __init__(self, config: LlamaConfig, length: int) -> None:
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        angles = torch.outer(torch.arange(length, dtype=torch.float64), config.rope_theta**-exponents)
        both = torch.cat([angles, angles], dim=-1)
        self.cos, self.sin = both.cos().float(), both.sin().float()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-second, first], dim=-1) * self.sin


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.q_proj = Linear(config.hidden_size, self.heads * self.head_dim)
        self.k_proj = Linear(config.hidden_size, self.kv_heads * self.head_dim)
        self.v_proj = Linear(config.hidden_size, self.kv_heads * self.head_dim)
        self.o_proj = Linear(self.heads * self.head_dim, config.hidden_size)

    def forward(self, x: torch.Tensor, rotation: Rotation, mask: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape

        def heads_of(values: torch.Tensor, count: int) -> torch.Tensor:
            return values.view(batch, length, count, self.head_dim).transpose(1, 2)

        queries = rotation(heads_of(self.q_proj(x), self.heads))
        keys = rotation(heads_of(self.k_proj(x), self.kv_heads))
        values = heads_of(self.v_proj(x), self.kv_heads)
        # The queries of a group stand one behind the other, beside the one key that they share.
        group = self.heads // self.kv_heads
        grouped = queries.reshape(batch, self.kv_heads, group * length, self.head_dim)
        scores = grouped @ keys.transpose(2, 3) / math.sqrt(self.head_dim)
        scores = scores.view(batch, self.kv_heads, group, length, length) + mask
        mixed = scores.softmax(-1).view(batch, self.kv_heads, group * length, length) @ values
        mixed = mixed.view(batch, self.heads, length, self.head_dim).transpose(1, 2)
        out: torch.Tensor = self.o_proj(mixed.reshape(batch, length, self.heads * self.head_dim))
        return out


class Mlp(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size)

    def neurons(self, x: torch.Tensor) -> torch.Tensor:
        """What enters down_proj."""
        return nn.functional.silu(self.gate_proj(x)) * self.up_proj(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down_proj(self.neurons(x))
        return out


class Block(nn.Module):
    """One transformer block: [windows, length, hidden_size] in and out."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = Mlp(config)

    def attended(self, x: torch.Tensor) -> torch.Tensor:
        """The residual stream behind attention."""
        length = x.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        out: torch.Tensor = x + self.self_attn(self.input_layernorm(x), Rotation(self.config, length), mask)
        return out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attended(x)
        out: torch.Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Decoder(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Block(config) for _ in range(config.num_hidden_layers)])
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """A model of the Llama layout. `texts`: the tokenizer's files, by name, as export() writes them."""

    def __init__(self, config: LlamaConfig, texts: dict[str, str] | None = None) -> None:
        super().__init__()
        self.config = config
        self.texts = dict(texts or {})
        self.model = Decoder(config)
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size)

    @property
    def blocks(self) -> list[Block]:
        return [block for block in self.model.layers if isinstance(block, Block)]

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.model.embed_tokens(token_ids)
        return out

    @property
    def head_matrix(self) -> torch.Tensor:
        """[vocab_size, hidden_size]."""
        return self.model.embed_tokens.weight if self.config.tie_word_embeddings else self.lm_head.weight

    def normalised(self, hidden: torch.Tensor) -> torch.Tensor:
        """The last block's output, as the head reads it."""
        out: torch.Tensor = self.model.norm(hidden)
        return out

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of the last block's output."""
        return nn.functional.linear(self.normalised(hidden), self.head_matrix)

    def hidden(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[windows, length] ids to the last block's output, [windows, length, hidden_size]."""
        hidden = self.embed(token_ids)
        for block in self.blocks:
            hidden = block(hidden)
        return hidden

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[windows, length] ids to [windows, length, vocab_size] logits."""
        return self.head(self.hidden(token_ids))
