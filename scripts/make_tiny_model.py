#!/usr/bin/env python3
"""Writes a tiny random model as GGUF: real structure, random weights, a few hundred KB.

Needs numpy and the gguf package. The same arguments give the same bytes.
  make_tiny_model.py --arch qwen3 --type Q8_0 tiny.gguf
"""
import argparse

import gguf
import numpy as np

import k_quants

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]
FILE_TYPE = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q4_K": 15, "Q5_K": 17,
             "Q6_K": 18, "BF16": 32}
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6  # token types as GGUF numbers them
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
          "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--arch", choices=["llama", "qwen2", "qwen3", "qwen3moe", "gemma3", "gemma4"],
                        default="llama")
    parser.add_argument("--type", choices=TYPES, default="F32", help="of the weight matrices")
    parser.add_argument("--second-type", choices=TYPES, help="of attn_v and ffn_down (default: as --type)")
    parser.add_argument("--embedding-type", choices=TYPES, help="of token_embd and output (default: as --type)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--embedding", type=int, help="width of the residual stream (256 for K types, else 64)")
    parser.add_argument("--ffn", type=int, help="width of the feed-forward layer (256 for K types, else 96)")
    parser.add_argument("--experts", type=int, help="of each layer, ffn wide (8 for qwen3moe, else 0: dense layers)")
    parser.add_argument("--experts-used", type=int, default=2, help="by each token")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--head-dim", type=int, help="llama and qwen2: embedding / heads; else 32 (64 for K types)")
    parser.add_argument("--local-head-dim", type=int, help="gemma4: of window layers (default: half of the others')")
    parser.add_argument("--shared-layers", type=int, default=3, help="gemma4: without keys and values of their own")
    parser.add_argument("--per-layer", type=int, default=32, help="gemma4: width of each layer's own embeddings")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--vocab", type=int, default=283, help="tokens; beyond the tokenizer's own they are unused ones")
    parser.add_argument("--tokenizer", choices=["bpe", "spm", "none"], help="default: spm for gemma, else bpe")
    parser.add_argument("--pre", choices=["gpt-2", "llama-bpe", "smollm", "qwen2"], help="BPE pre-tokeniser")
    parser.add_argument("--no-tokenizer", dest="tokenizer", action="store_const", const="none")
    parser.add_argument("--no-chat-template", dest="chat_template", action="store_false")
    parser.add_argument("--untied", action="store_true", help="an output matrix apart from the embedding")
    parser.add_argument("--rope-scaling", choices=["linear", "llama3"])
    parser.add_argument("--rope-base", type=float, help="default: 1000000 for gemma, else 10000")
    parser.add_argument("--sliding-window", type=int, default=32, help="gemma: tokens a window layer sees")
    parser.add_argument("--window-pattern", type=int, help="gemma3: every n-th layer is global (file silent: 6)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    wide = any(t and t.endswith("_K") for t in (args.type, args.second_type, args.embedding_type))
    args.second_type = args.second_type or args.type
    args.embedding_type = args.embedding_type or args.type
    args.embedding = args.embedding or (256 if wide else 64)
    args.ffn = args.ffn or (256 if wide else 96)
    args.experts = args.experts if args.experts is not None else 8 if args.arch == "qwen3moe" else 0
    if args.arch in ("llama", "qwen2"):
        args.head_dim = args.head_dim or args.embedding // args.heads
    else:
        args.head_dim = args.head_dim or (64 if wide else 32)
    args.local_head_dim = args.local_head_dim or args.head_dim // 2
    # The layers that have a window: all but the second, and the last, which shares the second's keys and values.
    args.is_local = [args.arch == "gemma4" and i not in (1, args.layers - 1) for i in range(args.layers)]
    args.shared_layers = args.shared_layers if args.arch == "gemma4" else 0
    is_gemma = args.arch in ("gemma3", "gemma4")
    args.tokenizer = args.tokenizer or ("spm" if is_gemma else "bpe")
    args.pre = args.pre or {"llama": "llama-bpe", "gemma3": "gpt-2", "gemma4": "gpt-2"}.get(args.arch, "qwen2")
    args.rope_base = args.rope_base or (1e6 if is_gemma else 1e4)
    return args


def byte_characters():
    """GPT-2's printable stand-in for each byte."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in visible]
    table = {b: chr(b) for b in visible} | {b: chr(256 + i) for i, b in enumerate(hidden)}
    return [table[b] for b in range(256)]


def add_bpe_tokenizer(writer, args):
    merges = ["Ġ t", "h e", "i n", "r e", "o n", "Ġt he", "Ġ a", "e r", "n d", "Ġa nd", "1 2", "Ġ Ġ"]
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = specials + byte_characters() + [m.replace(" ", "") for m in merges]
    types = [CONTROL] * len(specials) + [NORMAL] * (len(tokens) - len(specials))
    pad(tokens, types, args.vocab)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(args.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    if args.chat_template:
        writer.add_chat_template(CHATML)


def add_spm_tokenizer(writer, args):
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"]
    pieces = ["▁", "t", "h", "e", "▁t", "he", "▁the", "i", "n", "in", "s", "is"]
    tokens = specials + [f"<0x{b:02X}>" for b in range(256)] + pieces
    types = [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * len(pieces)
    scores = [0.0] * (len(tokens) - len(pieces)) + [-float(i) for i in range(len(pieces))]
    pad(tokens, types, args.vocab)
    scores += [-1000.0] * (len(tokens) - len(scores))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


def pad(tokens, types, vocab):
    if vocab < len(tokens):
        raise SystemExit(f"--vocab {vocab} is too small: the tokenizer needs {len(tokens)}")
    for i in range(vocab - len(tokens)):
        tokens.append(f"<unused{i}>")
        types.append(UNUSED)


def add_metadata(writer, args):
    writer.add_name(f"tiny {args.arch} {args.type}")
    writer.add_license("apache-2.0")
    writer.add_file_type(FILE_TYPE[args.type])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(args.context)
    writer.add_embedding_length(args.embedding)
    writer.add_block_count(args.layers)
    first_shared = args.layers - args.shared_layers
    widths = [args.ffn * (2 if i >= first_shared else 1) for i in range(args.layers)]
    writer.add_feed_forward_length(widths if args.shared_layers else args.ffn)
    writer.add_head_count(args.heads)
    writer.add_head_count_kv(args.kv_heads)
    writer.add_layer_norm_rms_eps(1e-6 if args.arch in ("gemma3", "gemma4", "qwen3", "qwen3moe") else 1e-5)
    writer.add_rope_freq_base(args.rope_base)
    writer.add_vocab_size(args.vocab)
    if args.head_dim * args.heads != args.embedding or args.arch in ("qwen3", "qwen3moe", "gemma3", "gemma4"):
        writer.add_key_length(args.head_dim)
        writer.add_value_length(args.head_dim)
    if args.experts:
        writer.add_expert_count(args.experts)
        writer.add_expert_used_count(args.experts_used)
        writer.add_expert_feed_forward_length(args.ffn)
    if args.arch == "llama":
        writer.add_rope_dimension_count(args.head_dim)
    if args.arch == "gemma3":
        writer.add_sliding_window(args.sliding_window)
        if args.window_pattern:
            writer.add_sliding_window_pattern(args.window_pattern)
    if args.arch == "gemma4":
        writer.add_sliding_window(args.sliding_window)
        writer.add_sliding_window_pattern(args.is_local)
        writer.add_key_length_swa(args.local_head_dim)
        writer.add_value_length_swa(args.local_head_dim)
        writer.add_rope_dimension_count(args.head_dim)
        writer.add_rope_dimension_count_swa(args.local_head_dim)
        writer.add_shared_kv_layers(args.shared_layers)
        writer.add_embedding_length_per_layer_input(args.per_layer)
    if args.rope_scaling == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(4.0)
    if args.tokenizer == "bpe":
        add_bpe_tokenizer(writer, args)
    elif args.tokenizer == "spm":
        add_spm_tokenizer(writer, args)
    else:
        writer.add_tokenizer_model("no_vocab")


def llama3_frequency_factors(args):
    """Divisors of the rope frequencies: long waves by 8, short ones by 1, a smooth step between."""
    factor, low, high, trained = 8.0, 1.0, 4.0, args.context / 8
    waves = 2 * np.pi * args.rope_base ** (np.arange(0, args.head_dim, 2) / args.head_dim)
    smooth = ((trained / waves - low) / (high - low)).clip(0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


class TensorWriter:
    def __init__(self, writer, seed):
        self.writer = writer
        self.rng = np.random.default_rng(seed)

    def matrix(self, name, rows, k, weight_type, gain=1.0, experts=0):
        """With experts: a matrix for each, one after the other."""
        shape = (experts * rows, k) if experts else (rows, k)
        weights = self.rng.standard_normal(shape, np.float32) * np.float32(gain / np.sqrt(k))
        if weight_type in k_quants.ENCODERS:
            data = k_quants.encode(weight_type, weights)
        else:
            data = gguf.quants.quantize(weights, gguf.GGMLQuantizationType[weight_type])
        if experts:
            name = name.replace(".weight", "_exps.weight")
            data = data.reshape(experts, rows, -1)
        raw = None if weight_type in ("F32", "F16") else gguf.GGMLQuantizationType[weight_type]
        self.writer.add_tensor(name, data, raw_dtype=raw)

    def vector(self, name, length, center, spread):
        self.writer.add_tensor(name, (center + spread * self.rng.standard_normal(length)).astype(np.float32))


def proportional_frequency_factors(args):
    """A quarter of the pairs turn, the others stand still."""
    factors = np.full(args.head_dim // 2, 1e30, np.float32)
    factors[:args.head_dim // 8] = 1.0
    return factors


def add_per_layer_tables(out, args):
    columns = args.layers * args.per_layer
    out.matrix("per_layer_token_embd.weight", args.vocab, columns, args.embedding_type, gain=np.sqrt(columns) / 8)
    out.matrix("per_layer_model_proj.weight", columns, args.embedding, "BF16")
    out.vector("per_layer_proj_norm.weight", args.per_layer, 1.0, 0.1)


def add_attention(out, args, layer):
    prefix, width = f"blk.{layer}.attn_", args.embedding
    head_dim = args.local_head_dim if args.is_local[layer] else args.head_dim
    query, key_value = args.heads * head_dim, args.kv_heads * head_dim
    has_keys = layer < args.layers - args.shared_layers
    out.matrix(prefix + "q.weight", query, width, args.type, gain=0.5 if args.arch == "gemma4" else 2.0)
    if has_keys:
        out.matrix(prefix + "k.weight", key_value, width, args.type, gain=2.0)
        out.matrix(prefix + "v.weight", key_value, width, args.second_type)
    out.matrix(prefix + "output.weight", width, query, args.type)
    if args.arch == "qwen2":
        out.vector(prefix + "q.bias", query, 0.0, 0.2)
        out.vector(prefix + "k.bias", key_value, 0.0, 0.2)
        out.vector(prefix + "v.bias", key_value, 0.0, 0.2)
    if args.arch in ("qwen3", "qwen3moe", "gemma3", "gemma4"):
        # Gemma 4 does not divide its scores by the root of the width.
        center = head_dim ** -0.25 if args.arch == "gemma4" else 1.0
        out.vector(prefix + "q_norm.weight", head_dim, center, 0.1 * center)
        if has_keys:
            out.vector(prefix + "k_norm.weight", head_dim, center, 0.1 * center)


def add_tensors(writer, args):
    out = TensorWriter(writer, args.seed)
    width = args.embedding
    out.matrix("token_embd.weight", args.vocab, width, args.embedding_type, gain=np.sqrt(width) / 8)
    if args.untied:
        out.matrix("output.weight", args.vocab, width, args.embedding_type, gain=4.0)
    out.vector("output_norm.weight", width, 1.0, 0.1)
    if args.rope_scaling == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_frequency_factors(args))
    if args.arch == "gemma4":
        writer.add_tensor("rope_freqs.weight", proportional_frequency_factors(args))
        add_per_layer_tables(out, args)
    for layer in range(args.layers):
        prefix = f"blk.{layer}."
        out.vector(prefix + "attn_norm.weight", width, 1.0, 0.1)
        add_attention(out, args, layer)
        if args.arch in ("gemma3", "gemma4"):
            out.vector(prefix + "post_attention_norm.weight", width, 1.0, 0.1)
            out.vector(prefix + "post_ffw_norm.weight", width, 1.0, 0.1)
        out.vector(prefix + "ffn_norm.weight", width, 1.0, 0.1)
        if args.experts:
            out.matrix(prefix + "ffn_gate_inp.weight", args.experts, width, "F32", gain=2.0)
        ffn = args.ffn * (2 if layer >= args.layers - args.shared_layers else 1)
        out.matrix(prefix + "ffn_gate.weight", ffn, width, args.type, experts=args.experts)
        out.matrix(prefix + "ffn_up.weight", ffn, width, args.type, experts=args.experts)
        out.matrix(prefix + "ffn_down.weight", width, ffn, args.second_type, experts=args.experts)
        if args.arch == "gemma4":
            out.matrix(prefix + "inp_gate.weight", args.per_layer, width, args.type)
            out.matrix(prefix + "proj.weight", width, args.per_layer, args.type)
            out.vector(prefix + "post_norm.weight", width, 1.0, 0.1)
            out.vector(prefix + "layer_output_scale.weight", 1, 0.8, 0.1)


def main():
    args = parse_arguments()
    writer = gguf.GGUFWriter(args.output, args.arch)
    add_metadata(writer, args)
    add_tensors(writer, args)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
