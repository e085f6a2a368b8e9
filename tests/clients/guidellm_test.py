#!/usr/bin/env python3
"""Lets guidellm complete a sweep against a server, with a tokenizer folder made from the model's file.

guidellm asks one request after the other, then as many as it can at once, then at constant rates between the two. The
folder comes from scripts/make_tokenizer_folder.py, whose ids must be kvasir's. Every request of every part must be
answered, with as many tokens as it asked for. Times are printed, and nothing hangs on them.

Usage: guidellm_test.py [--model NAME] [--rates N] [--seconds S]
Exits 0 when the sweep is complete, 1 when it is not, 77 when something is missing.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import served

PROMPT_TOKENS, ANSWER_TOKENS, MAX_CONCURRENCY = 64, 16, 16
TEXTS = [served.ROOT / name for name in ("tests/cases/tokenizer/stress.txt", "README.md", "docs/KV.md")]


def make_tokenizer_folder(model, folder):
    shown = subprocess.run([served.BINARY, "show", model, "--json"], capture_output=True, text=True, check=True)
    path = json.loads(shown.stdout)[0]["path"]
    script = served.ROOT / "scripts/make_tokenizer_folder.py"
    subprocess.run([sys.executable, "-B", script, path, folder, "--kvasir", served.BINARY, "--check", *TEXTS],
                   check=True)


def sweep(url, arguments, tokenizer, report):
    command = [
        pathlib.Path(sys.executable).with_name("guidellm"), "run", "--disable-console-interactive",
        "--backend", f"kind=openai_http,target={url},model={arguments.model}",
        "--profile", f"kind=sweep,sweep_size={arguments.rates},max_concurrency={MAX_CONCURRENCY}",
        "--constraint", f"kind=max_duration,seconds={arguments.seconds}",
        "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
        "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={ANSWER_TOKENS}",
        "--output", f"kind=json,path={report}"]
    return subprocess.run(command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdout=sys.stderr).returncode


def wrong_with(benchmark):
    """The reason that a part of a sweep is incomplete, or None. The end of its time may cut requests off."""
    requests = benchmark["requests"]
    if requests["errored"]:
        return f"{len(requests['errored'])} errors, first: {requests['errored'][0]['info']['error']}"
    if not requests["successful"]:
        return "no request was answered"
    odd = [r for r in requests["successful"] if r["output_metrics"]["text_tokens"] != ANSWER_TOKENS]
    return f"{len(odd)} answers have not {ANSWER_TOKENS} tokens" if odd else None


def describe(benchmark):
    metrics = benchmark["metrics"]
    successful = [metrics[name]["successful"] for name in ("requests_per_second", "time_to_first_token_ms")]
    return (f"{benchmark['config']['strategy']['type_']}: {metrics['request_totals']['successful']} answered, "
            f"{successful[0]['mean']:.2f}/s, median time to first token {successful[1]['median']:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--rates", type=int, default=5, help="parts of the sweep, with the first two")
    parser.add_argument("--seconds", type=int, default=10, help="for each part")
    arguments = parser.parse_args()
    served.need_model(arguments.model)
    served.run_in_venv(["guidellm", "transformers"])
    with tempfile.TemporaryDirectory(prefix="kvasir-guidellm-") as folder, served.serving(arguments.model) as server:
        make_tokenizer_folder(arguments.model, f"{folder}/tokenizer")
        report = pathlib.Path(folder) / "report.json"
        status = sweep(server.url, arguments, f"{folder}/tokenizer", report)
        if status != 0:
            print(f"guidellm ended with {status}")
            return 1
        benchmarks = json.loads(report.read_text())["benchmarks"]
    wrong = [wrong_with(benchmark) for benchmark in benchmarks]
    for benchmark, problem in zip(benchmarks, wrong):
        print(problem or describe(benchmark))
    print(f"{len(benchmarks)} of {arguments.rates} parts")
    return 1 if any(wrong) or len(benchmarks) != arguments.rates else 0


if __name__ == "__main__":
    sys.exit(main())
