#!/usr/bin/env python3
"""One measured rate of OpenVINO GenAI on a GGUF file, as JSON: openvino_rate.py MODEL.gguf --prompt N | --gen N.

A prompt is N token ids, its rate N over the time to the first token; generation counts the tokens after the first. One
run warms up, the second counts.
"""
import argparse
import json

import numpy as np
import openvino
import openvino_genai


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=0)
    parser.add_argument("--gen", type=int, default=0)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    pipeline = openvino_genai.LLMPipeline(args.model, "CPU", INFERENCE_NUM_THREADS=args.threads)
    random = np.random.default_rng(1)
    config = openvino_genai.GenerationConfig(max_new_tokens=max(1, args.gen + 1 if args.gen else 1), ignore_eos=True,
                                             do_sample=False, apply_chat_template=False)
    for _ in range(2):
        ids = random.integers(1000, 20000, (1, args.prompt or args.depth))  # new ones: it caches prefixes
        metrics = pipeline.generate(openvino.Tensor(ids), config).perf_metrics
    if args.prompt:
        rate = args.prompt / (metrics.get_ttft().mean / 1e3)
    else:
        rate = 1e3 / metrics.get_tpot().mean
    print(json.dumps({"tokens_per_s": rate}))


if __name__ == "__main__":
    main()
