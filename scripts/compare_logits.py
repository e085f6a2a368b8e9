#!/usr/bin/env python3
"""Compares two .npy logit files: mean KL(reference || other) in nats and top-1 agreement.

With --top N the reference's N most likely tokens are compared and the rest is lumped into one outcome.
"""
import argparse
import json

import numpy as np


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def lump(log_p, keep):
    kept = np.take_along_axis(log_p, keep, axis=-1)
    rest = np.log(np.maximum(1e-300, 1.0 - np.exp(kept).sum(axis=-1, keepdims=True)))
    return np.concatenate([kept, rest], axis=-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference")
    parser.add_argument("other")
    parser.add_argument("--top", type=int, default=0)
    args = parser.parse_args()
    a, b = np.load(args.reference, mmap_mode="r"), np.load(args.other, mmap_mode="r")
    if a.shape != b.shape:
        raise SystemExit(f"shapes differ: {a.shape} and {b.shape}")
    kl, agree, worst = [], 0, 0.0
    for row in range(0, len(a), 64):
        x, y = np.asarray(a[row:row + 64]), np.asarray(b[row:row + 64])
        worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
        agree += int((x.argmax(-1) == y.argmax(-1)).sum())
        p, q = log_softmax(x), log_softmax(y)
        if args.top:
            keep = np.argpartition(-p, args.top, axis=-1)[:, :args.top]
            p, q = lump(p, keep), lump(q, keep)
        kl.append((np.exp(p) * (p - q)).sum(axis=-1))
    kl = np.concatenate(kl)
    print(json.dumps({"rows": len(kl), "mean_kl": float(kl.mean()), "kl_stderr": float(kl.std() / len(kl) ** 0.5),
                      "top1_agreement": agree / len(kl), "max_abs_over_max": worst}))


if __name__ == "__main__":
    main()
