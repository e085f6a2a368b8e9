#!/usr/bin/env python3
"""Lets guidellm complete a sweep or a burst against a server, with a tokenizer folder made from the model's file.

In a sweep guidellm asks one request after the other, then as many as it can at once, then at constant rates between the
two. With --burst N it asks N at once. The folder comes from scripts/make_tokenizer_folder.py, whose ids must be kvasir's. Every request of every part must be
answered, with as many tokens as it asked for. Times are printed, and nothing hangs on them.

Usage: guidellm_test.py [--model NAME] [--prompt N] [--answer N] [--rates N] [--seconds S] [--burst N]
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

MAX_CONCURRENCY = 16  # of a sweep
TEXTS = [served.ROOT / name for name in ("tests/cases/tokenizer/stress.txt", "README.md", "docs/KV.md")]


def make_tokenizer_folder(model, folder):
    shown = subprocess.run([served.BINARY, "show", model, "--json"], capture_output=True, text=True, check=True)
    path = json.loads(shown.stdout)[0]["path"]
    script = served.ROOT / "scripts/make_tokenizer_folder.py"
    subprocess.run([sys.executable, "-B", script, path, folder, "--kvasir", served.BINARY, "--check", *TEXTS],
                   check=True)


def run_guidellm(url, arguments, tokenizer, report):
    if arguments.burst:
        plan = ["--profile", f"kind=throughput,max_concurrency={arguments.burst}",
                "--constraint", f"kind=max_requests,count={arguments.burst}"]
    else:
        plan = ["--profile", f"kind=sweep,sweep_size={arguments.rates},max_concurrency={MAX_CONCURRENCY}",
                "--constraint", f"kind=max_duration,seconds={arguments.seconds}"]
    command = [
        pathlib.Path(sys.executable).with_name("guidellm"), "run", "--disable-console-interactive",
        "--backend", f"kind=openai_http,target={url},model={served.name_of(arguments.model)}", *plan,
        "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
        "--data", f"kind=synthetic_text,prompt_tokens={arguments.prompt},output_tokens={arguments.answer}",
        "--output", f"kind=json,path={report}"]
    return subprocess.run(command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdout=sys.stderr).returncode


def wrong_with(benchmark, arguments):
    """The reason that a part is incomplete, or None. The end of a sweep's time may cut requests off."""
    requests = benchmark["requests"]
    if requests["errored"]:
        return f"{len(requests['errored'])} errors, first: {requests['errored'][0]['info']['error']}"
    if not requests["successful"]:
        return "no request was answered"
    if len(requests["successful"]) < arguments.burst:
        return f"{len(requests['successful'])} of {arguments.burst} requests were answered"
    odd = [r for r in requests["successful"] if r["output_metrics"]["text_tokens"] != arguments.answer]
    return f"{len(odd)} answers have not {arguments.answer} tokens" if odd else None


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
    parser.add_argument("--burst", type=int, default=0, metavar="N", help="no sweep: N requests at once")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of each prompt")
    parser.add_argument("--answer", type=int, default=16, help="tokens of each answer")
    arguments = parser.parse_args()
    served.need_model(arguments.model)
    served.run_in_venv(["guidellm", "transformers"])
    with tempfile.TemporaryDirectory(prefix="kvasir-guidellm-") as folder, served.serving(arguments.model) as server:
        make_tokenizer_folder(arguments.model, f"{folder}/tokenizer")
        report = pathlib.Path(folder) / "report.json"
        status = run_guidellm(server.url, arguments, f"{folder}/tokenizer", report)
        if status != 0:
            print(f"guidellm ended with {status}")
            return 1
        benchmarks = json.loads(report.read_text())["benchmarks"]
    wrong = [wrong_with(benchmark, arguments) for benchmark in benchmarks]
    for benchmark, problem in zip(benchmarks, wrong):
        print(problem or describe(benchmark))
    parts = 1 if arguments.burst else arguments.rates
    print(f"{len(benchmarks)} of {parts} parts")
    return 1 if any(wrong) or len(benchmarks) != parts else 0


if __name__ == "__main__":
    sys.exit(main())
