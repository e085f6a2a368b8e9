"""A reference model of transformers with random parameters, and what it says: logits, greedy tokens, experts.

All runs are in float32 on the CPU, with transformers' plain ("eager") attention and experts.
"""
import json
import math
import pathlib

import safetensors.torch
import torch
import transformers

KEEP = 1.0  # standard deviation of a matrix's outputs, for inputs of deviation 1


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def auto_class(family):
    if family.labels:
        return transformers.AutoModelForSequenceClassification
    return transformers.AutoModel if family.encoder else transformers.AutoModelForCausalLM


def make_config(family):
    config = transformers.AutoConfig.for_model(family.model_type, **family.config)
    for key, value in family.fixed.items():
        setattr(config, key, value)
    return config


def make_model(family, seed):
    """A model with every parameter and every saved buffer random, rounded to bfloat16."""
    config = make_config(family)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    kind = auto_class(family)
    model = kind.from_config(config).eval()
    random = seeded(seed)
    tied = set(model.all_tied_weights_keys)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name not in tied and tensor.is_floating_point():
                values = random_like(family, name, tensor, random)
                if "embed_tokens" in name:
                    values *= family.embedding_scale
                tensor.copy_(values.bfloat16())
    return model.float()


def random_like(family, name, initial, random):
    """Random numbers around the reference's own initial value: ones (norms), zeros (biases), else a matrix."""
    noise = torch.randn(initial.shape, generator=random)
    kind = name.split(".")[-1]
    if kind == "sinks":
        return 1.5 * noise
    if initial.dim() < 2:
        if bool((initial == 1).all()):
            return 1.0 + 0.3 * noise
        return (family.bias_spread if kind == "bias" else 0.3) * noise
    if any(part in name for part in ("embed", "lm_head")):
        # Rows of different lengths: a few tokens lead clearly, so that greedy choices have a margin. They are small,
        # so that a layer's output is not lost beside the embedding, above all where the head is tied to it.
        rows = torch.exp(0.3 * torch.randn(initial.shape[0], 1, generator=random))
        return rows * noise * (4.0 if "out" in name or "lm_head" in name else 1.0) / math.sqrt(initial.shape[1])
    gain = 2.0 if any(part in name for part in ("q_proj", "k_proj", "query", "key", "router", "gate.weight")) else KEEP
    return gain * noise / math.sqrt(initial.shape[-1])


def save(model, folder):
    folder = pathlib.Path(folder)
    model.bfloat16().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config.pop("transformers_version", None)
    config["dtype"] = "bfloat16"
    write_json(folder / "config.json", config)


def load(family, folder):
    """The saved model, in float32: what the golden says comes from the files alone."""
    kind = auto_class(family)
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                experts_implementation="eager").eval()


class RouterWatch:
    """Collects from every router the chosen experts and the margin of the choice, while it is active."""

    def __init__(self, model):
        self.chosen, self.margins, self.hooks = [], [], []
        for _, module in model.named_modules():
            if type(module).__name__.lower().endswith("router"):
                self.hooks.append(module.register_forward_hook(self.see))

    def see(self, router, _, output):
        scores, chosen = output[0].float(), output[2]
        if hasattr(router, "e_score_correction_bias"):
            scores = scores.sigmoid() + router.e_score_correction_bias
        if hasattr(router, "per_expert_scale"):  # it gives probabilities
            scores = scores.log()
        ranked = scores.sort(dim=-1, descending=True).values
        used = chosen.shape[-1]
        self.margins.append(ranked[:, used - 1] - ranked[:, used])
        self.chosen.append(chosen.sort(dim=-1).values)

    def __enter__(self):
        self.chosen, self.margins = [], []
        return self

    def __exit__(self, *_):
        pass

    def margins_of(self, batch):
        """[batch, tokens]: the least margin over the layers; None without routers."""
        if not self.margins:
            return None
        return torch.stack([margin.view(batch, -1) for margin in self.margins]).amin(0)

    def experts(self):
        """[layers][tokens][used], ascending ids, of a run with one sequence."""
        return [layer.tolist() for layer in self.chosen]


@torch.inference_mode()
def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits


def save_pooling(family, folder, seed):
    """The layout of sentence-transformers: mean pooling, dense layers without bias, and the direction of the result."""
    kinds = ["Pooling"] + ["Dense"] * len(family.dense) + ["Normalize"]
    modules = [("", "Transformer")] + [(f"{i}_{kind}", kind) for i, kind in enumerate(kinds, 1)]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)])
    width, random = family.config["hidden_size"], seeded(seed)
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True})
    for i, outputs in enumerate(family.dense, 2):
        weight = torch.randn(outputs, width, generator=random) / math.sqrt(width)
        write_json(folder / f"{i}_Dense/config.json", {
            "in_features": width, "out_features": outputs, "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity"})
        safetensors.torch.save_file({"linear.weight": weight.bfloat16()}, folder / f"{i}_Dense/model.safetensors")
        width = outputs


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


@torch.inference_mode()
def embedding_of(model, folder, ids):
    """[batch, width]: the direction of the mean of the last hidden states, behind the folder's dense layers."""
    hidden = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1)
    for dense in sorted(folder.glob("*_Dense")):
        hidden = hidden @ safetensors.torch.load_file(dense / "model.safetensors")["linear.weight"].float().T
    return torch.nn.functional.normalize(hidden, dim=-1)


@torch.inference_mode()
def label_logits_of(model, ids, token_types):
    """[batch, labels]"""
    return model(input_ids=ids, token_type_ids=token_types, attention_mask=torch.ones_like(ids)).logits
