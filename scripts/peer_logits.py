#!/usr/bin/env python3
"""Writes llama.cpp's logits over windows of a text as .npy, in the layout of `kvasir eval logits`.

The text is tokenised without BOS and cut into windows; where the model adds BOS it replaces the first token of
each window. Needs llama-cpp-python and numpy.
"""
import argparse
import sys

import llama_cpp
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--file", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kv-f32", action="store_true", help="keep K and V as float32")
    args = parser.parse_args()

    kv_type = llama_cpp.GGML_TYPE_F32 if args.kv_f32 else llama_cpp.GGML_TYPE_F16
    model = llama_cpp.Llama(args.model, n_ctx=args.ctx, n_batch=args.ctx, n_threads=args.threads,
                            n_threads_batch=args.threads, logits_all=True, verbose=False,
                            type_k=kv_type, type_v=kv_type)
    adds_bos = llama_cpp.llama_vocab_get_add_bos(llama_cpp.llama_model_get_vocab(model.model))
    with open(args.file, "rb") as text:
        ids = model.tokenize(text.read(), add_bos=False, special=False)
    out = np.lib.format.open_memmap(args.out, mode="w+", dtype=np.float32,
                                    shape=(args.windows * args.ctx, model.n_vocab()))
    for window in range(args.windows):
        tokens = ids[window * args.ctx:(window + 1) * args.ctx]
        if adds_bos:
            tokens[0] = model.token_bos()
        model.reset()
        model.eval(tokens)
        out[window * args.ctx:(window + 1) * args.ctx] = model.scores[:args.ctx]
        print(f"window {window + 1}/{args.windows}", file=sys.stderr)
    out.flush()


if __name__ == "__main__":
    main()
