"""Finds a prompt whose greedy answer and whose experts a rounding error cannot change."""
import torch

from goldens import reference

PROMPT_TOKENS, GREEDY_TOKENS = 320, 64
GREEDY_MARGIN, ROUTER_MARGIN = 1e-2, 1e-3
VARIANTS, LAST_TOKENS = 64, 6
LEAST_DISTINCT = 8  # tokens of a greedy answer: one that repeats itself says little


def greedy_margins(logits):
    """The lead of the best logit over the second, in units of the largest magnitude of its row."""
    best = logits.topk(2, dim=-1).values
    return (best[..., 0] - best[..., 1]) / logits.abs().amax(-1)


@torch.inference_mode()
def steady_prompt(model, watch, random):
    """Random tokens [PROMPT_TOKENS]; where a router hesitates, the token is replaced until it does not."""
    vocab = model.config.get_text_config().vocab_size
    prompts = torch.randint(3, vocab, (VARIANTS, PROMPT_TOKENS), generator=random)
    if not watch.hooks:
        return prompts[0]
    for _ in range(400):
        with watch:
            model(input_ids=prompts, use_cache=False)
            margins = watch.margins_of(VARIANTS)
        unsure = margins < ROUTER_MARGIN
        first = torch.where(unsure.any(1), unsure.int().argmax(1), PROMPT_TOKENS)
        best = int(first.argmax())
        position = int(first[best])
        if position == PROMPT_TOKENS:
            return prompts[best]
        prompts = prompts[best].repeat(VARIANTS, 1)
        begin = max(0, position - 1)
        prompts[1:, begin:] = torch.randint(3, vocab, (VARIANTS - 1, PROMPT_TOKENS - begin), generator=random)
    return None


@torch.inference_mode()
def greedy(model, watch, prompts):
    """Token ids [B, GREEDY_TOKENS], and which answers have all their margins. Prompts differ in their LAST_TOKENS."""
    steady = torch.ones(len(prompts), dtype=torch.bool)
    cache = model(input_ids=prompts[:1, :-LAST_TOKENS], use_cache=True).past_key_values
    cache.batch_repeat_interleave(len(prompts))
    ids, answer = prompts[:, -LAST_TOKENS:], []
    for _ in range(GREEDY_TOKENS):
        with watch:
            out = model(input_ids=ids, past_key_values=cache, use_cache=True)
            margins = watch.margins_of(len(prompts))
        cache = out.past_key_values
        logits = out.logits[:, -1]
        steady &= greedy_margins(logits) > GREEDY_MARGIN
        if margins is not None:
            steady &= margins.amin(1) > ROUTER_MARGIN
        ids = logits.argmax(-1, keepdim=True)
        answer.append(ids)
        if not steady.any():
            break
    return torch.cat(answer, 1), steady


@torch.inference_mode()
def verify(model, watch, prompt, answer):
    """Whether one run over all tokens, without a cache, agrees with all margins."""
    ids = torch.cat([prompt, answer])[None]
    with watch:
        logits = reference.logits_of(model, ids)[0, len(prompt) - 1:-1]
        margins = watch.margins_of(1)
    agrees = bool((logits.argmax(-1) == answer).all()) and bool((greedy_margins(logits) > GREEDY_MARGIN).all())
    return agrees and (margins is None or bool((margins > ROUTER_MARGIN).all()))


def find(model, seed, tries=8):
    """A prompt and its greedy answer, or None."""
    random = reference.seeded(seed)
    watch = reference.RouterWatch(model)
    prompt = steady_prompt(model, watch, random)
    if prompt is None:
        return None
    vocab = model.config.get_text_config().vocab_size
    for _ in range(tries):
        prompts = prompt.repeat(VARIANTS, 1)
        prompts[:, -LAST_TOKENS:] = torch.randint(3, vocab, (VARIANTS, LAST_TOKENS), generator=random)
        answers, steady = greedy(model, watch, prompts)
        for row in steady.nonzero().flatten().tolist():
            if len(answers[row].unique()) >= LEAST_DISTINCT and verify(model, watch, prompts[row], answers[row]):
                return prompts[row], answers[row], watch
    return None
