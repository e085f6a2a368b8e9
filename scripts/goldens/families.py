"""The goldens: one tiny configuration per architecture, in the names of transformers' configuration classes.

Values differ from every default that matters, so an engine that ignores a key gives other logits. Windows and original
contexts are far below the prompt's 320 tokens.
"""
import dataclasses

VOCAB = 256
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 20000.0}


@dataclasses.dataclass(frozen=True)
class Family:
    model_type: str  # of the configuration class
    config: dict
    embedding_scale: float = 1.0  # of the random token embeddings
    bias_spread: float = 0.3  # where biases add up, smaller ones do not drown what differs from token to token
    dense: tuple = ()  # widths of an encoder's layers behind the pooling
    encoder: bool = False  # hidden states and a pooled embedding instead of logits
    labels: int = 0  # of an encoder that is a cross-encoder: the classifier's logits instead of an embedding
    fixed: dict = dataclasses.field(default_factory=dict)  # set on the configuration after it has been made
    gguf: dict = dataclasses.field(default_factory=dict)  # options of convert.py


def sizes(layers, hidden=32, ffn=64, heads=4, kv_heads=2, head_dim=16, **more):
    """What nearly all configurations have. A head_dim of None leaves it to the class: hidden / heads."""
    config = dict(vocab_size=VOCAB, hidden_size=hidden, intermediate_size=ffn, num_hidden_layers=layers,
                  num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=1024,
                  rms_norm_eps=0.01, rope_parameters=dict(DEFAULT_ROPE), bos_token_id=1, eos_token_id=2,
                  pad_token_id=0)
    if head_dim is not None:
        config["head_dim"] = head_dim
    config.update(more)
    return {key: value for key, value in config.items() if value != "absent"}


def layer_types(*kinds):
    names = {"w": "sliding_attention", "f": "full_attention"}
    return [names[kind] for kind in kinds]


def yarn(theta, factor, **more):
    """With eight pairs the ramp's borders are rounded to whole ones: these betas lie where they show."""
    return {"rope_type": "yarn", "rope_theta": theta, "factor": factor, "original_max_position_embeddings": 64,
            "beta_fast": 2.2, "beta_slow": 1.0} | more


def narrow(layers, **more):
    """For classes whose heads share the hidden size among them."""
    return sizes(layers, **{"heads": 2, "kv_heads": 1, "head_dim": None} | more)


def experts(layers, count_key, **more):
    return sizes(layers, **{count_key: 8, "num_experts_per_tok": 2, "ffn": 32} | more)


def encoded(layers, **more):
    return narrow(layers, **{"kv_heads": "absent", "rms_norm_eps": "absent", "rope_parameters": "absent",
                             "layer_norm_eps": 0.01, "max_position_embeddings": 352} | more)


# Where GGUF files do not name the base, it is this one.
UNNAMED_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 128}
GEMMA_ROPE = {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50000.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
GEMMA4_ROPE = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                  "rope_theta": 100000.0},
               "sliding_attention": {"rope_type": "default", "rope_theta": 30000.0}}
LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 128,
            "partial_rotary_factor": 0.75, "short_factor": [1.0, 1.05, 1.1, 1.2, 1.4, 1.7],
            "long_factor": [1.1, 1.3, 1.8, 2.6, 4.0, 6.5]}
# The converter knows the configuration of before transformers 5 alone.
NOMIC_GGUF = {"tokenizer": "WordPiece", "config": {
    "n_positions": 8192, "max_trained_positions": 2048, "activation_function": "swiglu", "causal": False,
    "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "prenorm": False,
    "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None}}

FAMILIES = {
    # Dense decoders.
    "llama": Family("llama", sizes(2, ffn=96, rope_parameters=LLAMA3_ROPE, tie_word_embeddings=False)),
    "llama-bias": Family("llama", sizes(2, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "qwen2": Family("qwen2", narrow(2, hidden=64, ffn=32, heads=4, kv_heads=2, tie_word_embeddings=True)),
    "qwen3": Family("qwen3", sizes(3, tie_word_embeddings=False)),
    "gemma3": Family("gemma3_text", sizes(
        6, ffn=32, sliding_window=40, query_pre_attn_scalar=16, layer_types=layer_types(*"wwwwwf"),
        rope_parameters=GEMMA_ROPE), embedding_scale=0.3),
    "gemma2": Family("gemma2", sizes(
        3, sliding_window=40, query_pre_attn_scalar=16, layer_types=layer_types(*"wfw"), attn_logit_softcapping=8.0,
        final_logit_softcapping=12.0, rope_parameters=UNNAMED_ROPE), embedding_scale=0.3),
    "phi3": Family("phi3", narrow(
        2, hidden=64, heads=4, kv_heads=2, rope_parameters=LONGROPE, original_max_position_embeddings=128,
        sliding_window=100, tie_word_embeddings=True)),
    "mistral3": Family("ministral3", sizes(2, ffn=96, tie_word_embeddings=False, rope_parameters=yarn(
        10000.0, 8.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3))),
    "smollm3": Family("smollm3", sizes(4, tie_word_embeddings=True)),
    "olmo2": Family("olmo2", sizes(2, ffn=96, tie_word_embeddings=False)),
    "olmo3": Family("olmo3", sizes(
        4, ffn=32, sliding_window=40, layer_types=layer_types(*"wwwf"), tie_word_embeddings=False, rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": yarn(10000.0, 8.0, attention_factor=1.2079441541679836)})),
    "granite": Family("granite", narrow(
        3, tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2,
        logits_scaling=4.0), embedding_scale=0.3),
    "starcoder2": Family("starcoder2", narrow(3, rms_norm_eps="absent", norm_epsilon=0.01, tie_word_embeddings=True),
                         bias_spread=0.1),
    "gptneox": Family("gpt_neox", narrow(
        3, kv_heads="absent", rms_norm_eps="absent", layer_norm_eps=0.01,
        rope_parameters=UNNAMED_ROPE | {"partial_rotary_factor": 0.5}),
                      bias_spread=0.1, gguf={"hparams": {"rotary_pct": 0.5}}),
    "glm4": Family("glm4", sizes(2, ffn=96, rope_parameters=DEFAULT_ROPE | {"partial_rotary_factor": 0.5},
                                 attention_bias=True)),
    "cohere2": Family("cohere2", narrow(
        4, rms_norm_eps="absent", layer_norm_eps=0.01, sliding_window=40, logit_scale=0.25, rotary_pct=1.0)),
    "exaone4": Family("exaone4", sizes(4, ffn=32, sliding_window=40, layer_types=layer_types(*"wwwf"),
                                       rope_parameters=LLAMA3_ROPE)),
    "seed_oss": Family("seed_oss", sizes(2, ffn=96, attention_bias=True, attention_out_bias=False)),
    # Mixtures of experts.
    "qwen3moe": Family("qwen3_moe", experts(2, "num_experts", moe_intermediate_size=32, norm_topk_prob=True,
                                            tie_word_embeddings=True)),
    "mixtral": Family("mixtral", experts(2, "num_local_experts", tie_word_embeddings=True)),
    "qwen2moe": Family("qwen2_moe", experts(
        2, "num_experts", heads=2, kv_heads=1, head_dim=None, moe_intermediate_size=32,
        shared_expert_intermediate_size=64, norm_topk_prob=False, tie_word_embeddings=True)),
    "olmoe": Family("olmoe", experts(2, "num_experts", heads=2, kv_heads=2, head_dim=None, rms_norm_eps=1e-5,
                                     norm_topk_prob=False, tie_word_embeddings=True)),
    "granitemoe": Family("granitemoe", experts(
        2, "num_local_experts", heads=2, kv_heads=1, head_dim=None, embedding_multiplier=3.0, residual_multiplier=0.4,
        attention_multiplier=0.2, logits_scaling=4.0, tie_word_embeddings=True), embedding_scale=0.3),
    "gpt-oss": Family("gpt_oss", experts(2, "num_local_experts", sliding_window=40, layer_types=layer_types(*"wf"),
                                         rope_parameters=yarn(10000.0, 8.0, truncate=False))),
    "glm4moe": Family("glm4_moe", experts(
        2, "n_routed_experts", moe_intermediate_size=32, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=True,
        attention_bias=True, routed_scaling_factor=1.8, n_group=1, topk_group=1, norm_topk_prob=True,
        rope_parameters=DEFAULT_ROPE | {"partial_rotary_factor": 0.5})),
    # Gemma 4: the shapes of E2B (shared KV, embeddings per layer), of 26B-A4B (experts, K = V), and of 12B and 31B.
    "gemma4-e": Family("gemma4_text", sizes(
        5, ffn=32, sliding_window=40, layer_types=layer_types(*"wfwwf"), num_kv_shared_layers=3, global_head_dim=32,
        use_double_wide_mlp=True, hidden_size_per_layer_input=8, vocab_size_per_layer_input=VOCAB,
        final_logit_softcapping=12.0, rope_parameters=GEMMA4_ROPE), embedding_scale=0.3),
    "gemma4-moe": Family("gemma4_text", sizes(
        2, ffn=32, sliding_window=40, layer_types=layer_types(*"wf"), global_head_dim=32, attention_k_eq_v=True,
        num_global_key_value_heads=1, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=8,
        top_k_experts=2, moe_intermediate_size=32, final_logit_softcapping=12.0, rope_parameters=GEMMA4_ROPE), embedding_scale=0.3),
    # The class of the dense ones has no keys of layers' embeddings and of experts, which the converter reads.
    "gemma4-dense": Family("gemma4_unified_text", sizes(
        3, ffn=64, sliding_window=40, layer_types=layer_types(*"wwf"), global_head_dim=32, attention_k_eq_v=True,
        num_global_key_value_heads=1, final_logit_softcapping=12.0, rope_parameters=GEMMA4_ROPE), embedding_scale=0.3,
                           gguf={"config": {"architectures": ["Gemma4UnifiedForConditionalGeneration"],
                                            "hidden_size_per_layer_input": 0, "moe_intermediate_size": None}}),
    # Encoders.
    "bert": Family("bert", encoded(2), encoder=True),
    "modern-bert": Family("modernbert", encoded(
        4, layer_norm_eps="absent", norm_eps=0.01, local_attention=48, max_position_embeddings=1024, cls_token_id=1,
        sep_token_id=2, layer_types=layer_types(*"fwwf"), rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 50000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}), encoder=True),
    "nomic-bert": Family("nomic_bert", encoded(2, max_position_embeddings=1024, rope_parameters={
        "rope_type": "default", "rope_theta": 1000.0}), encoder=True, gguf=NOMIC_GGUF),
    "gemma-embedding": Family("gemma3_text", sizes(
        6, ffn=32, sliding_window=40, query_pre_attn_scalar=16, layer_types=layer_types(*"wwwwwf"),
        use_bidirectional_attention=True, rope_parameters=GEMMA_ROPE), encoder=True, dense=(64, 32)),
    # Cross-encoders: RoBERTa's positions and classifier, and BERT's token types and pooler.
    "xlm-roberta": Family("xlm-roberta", encoded(2, pad_token_id=1, bos_token_id=0, type_vocab_size=1, num_labels=1,
                                                 max_position_embeddings=354), encoder=True, labels=1),
    "bert-rank": Family("bert", encoded(2, num_labels=3), encoder=True, labels=3),
}
