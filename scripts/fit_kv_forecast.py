#!/usr/bin/env python3
"""Learns what later attention to a block depends on, from traces of kvasir_score_trace, into a model's calibration file.

Usage: fit_kv_forecast.py PREFIX CALIBRATION.kv.json --heads N [--windows A-B] [--steps N] [--seed N]
  PREFIX: of the traces; CALIBRATION: made or changed. Needs numpy and jax.
The network is kv::ForecastNetwork: 7 inputs, 16 rectified units, biases for each head. Its loss is Poisson's, so that its output is
the expected attention of the next 512 queries. Each window gives rows where 3/8, 1/2, 5/8 and 3/4 of it are read.
"""
import argparse
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

DECAY, BLOCK, HORIZON_BLOCKS, UNITS = 0.995, 16, 32, 16
MOST_MEANS = 300.0  # of a block's later attention
MEMORY_PER_HORIZON = 2.5  # 512 queries are so many times a long memory's


def attention_by_block(scores):
    """What each block got in the 16 queries of each act, out of a memory that fades. [acts, heads, blocks]"""
    before = np.concatenate([np.zeros_like(scores[:1]), scores[:-1]])
    fade = np.mean(DECAY ** np.arange(BLOCK))
    return np.maximum(np.abs(scores) - DECAY ** BLOCK * np.abs(before), 0) / fade


def inputs_at(scores, statistics, act):
    """As LearnedForecast has them. [heads, blocks, 7], and the heads' means."""
    count = act + 1
    heads = scores.shape[1]
    seen, place = scores[act, :, :count], np.arange(count)
    mean = seen.mean(1, keepdims=True) + 1e-9
    ranks = statistics[:, :count].argsort(1).argsort(1) / count
    longest = (statistics[:, :count].view(np.uint32) & 0xFF) / 8.0
    filled = 1 - DECAY ** ((count - place) * BLOCK - BLOCK // 2)
    of_all = [np.broadcast_to(values, (heads, count)) for values in (np.log(count - place), np.log(filled), place / count)]
    columns = [np.log((seen + 1e-4 * mean) / mean), of_all[0], ranks, longest - longest.mean(1, keepdims=True),
               np.broadcast_to(np.log(mean), (heads, count)), of_all[1], of_all[2]]
    return np.stack(columns, -1).astype(np.float32), mean


def read_rows(prefix, windows, heads):
    inputs, targets, head_of = [], [], []
    for window in windows:
        scores = np.load(f"{prefix}.{window}.scores.npy")
        scores = scores.reshape(len(scores), heads, -1)
        statistics = np.ascontiguousarray(np.load(f"{prefix}.{window}.blocks.npy")[0].reshape(heads, -1))
        got = attention_by_block(scores)
        for part in (3, 4, 5, 6):
            act = len(scores) * part // 8 - 1
            x, mean = inputs_at(scores, statistics, act)
            later = got[act + 1:act + 1 + HORIZON_BLOCKS, :, :act + 1].sum(0)
            inputs.append(x.reshape(-1, x.shape[-1]))
            targets.append(np.minimum(later / (mean * MEMORY_PER_HORIZON), MOST_MEANS).ravel())
            head_of.append(np.repeat(np.arange(heads), act + 1))
    return np.concatenate(inputs), np.concatenate(targets).astype(np.float32), np.concatenate(head_of)


def log_of_attention(network, x, head):
    hidden = jax.nn.relu(x @ network["input_weights"] + network["hidden_biases"][head])
    return jnp.clip(hidden @ network["output_weights"] + network["output_biases"][head], -12, 6)


def fit(x, target, head, heads, steps, seed, batch=2048):
    draw = np.random.default_rng(seed)
    network = {"input_weights": draw.normal(0, x.shape[1] ** -0.5, (x.shape[1], UNITS)), "hidden_biases": np.zeros((heads, UNITS)),
               "output_weights": draw.normal(0, 0.1, UNITS), "output_biases": np.zeros(heads)}
    network = jax.tree.map(lambda values: jnp.asarray(values, jnp.float32), network)

    def loss(network, x, head, target):
        said = log_of_attention(network, x, head)
        return (jnp.exp(said) - target * said).mean()

    @jax.jit
    def update(network, first, second, x, head, target, step, rate):
        value, slope = jax.value_and_grad(loss)(network, x, head, target)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
        network = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9 ** step)) / (jnp.sqrt(v / (1 - 0.99 ** step)) + 1e-8),
                               network, first, second)
        return network, first, second, value

    first = second = jax.tree.map(jnp.zeros_like, network)
    total = 0.0
    for step in range(1, steps + 1):
        chosen = draw.integers(0, len(x), batch)
        rate = 3e-3 * min(1.0, step / 100) * 0.5 * (1 + np.cos(np.pi * step / steps)) + 1e-5
        network, first, second, value = update(network, first, second, x[chosen], head[chosen], target[chosen], step, rate)
        total += float(value)
        if step % 500 == 0:
            print(f"step {step} of {steps}: loss {total / 500:.4f}", flush=True)
            total = 0.0
    return jax.tree.map(lambda values: np.asarray(values, np.float64), network)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix")
    parser.add_argument("calibration")
    parser.add_argument("--heads", type=int, required=True, help="KV heads of all layers without a window")
    parser.add_argument("--windows", default="0-3")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    begin, end = map(int, arguments.windows.split("-"))
    x, target, head = read_rows(arguments.prefix, range(begin, end + 1), arguments.heads)
    mean, spread = x.mean(0), x.std(0) + 1e-6
    network = fit((x - mean) / spread, target, head, arguments.heads, arguments.steps, arguments.seed)
    # The engine's inputs are as they come.
    scaled = network["input_weights"] / spread[:, None]
    network["hidden_biases"] = network["hidden_biases"] - mean @ scaled
    network["input_weights"] = scaled
    path = pathlib.Path(arguments.calibration)
    calibration = json.loads(path.read_text()) if path.exists() else {"model": "", "kv_format_costs": {}, "kv_head_weights": []}
    calibration["kv_forecast"] = {name: [float(np.float32(value)) for value in values.ravel()] for name, values in network.items()}
    path.write_text(json.dumps(calibration, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
