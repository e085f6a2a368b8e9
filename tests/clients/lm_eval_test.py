#!/usr/bin/env python3
"""Compares what lm-eval computes through a server with what `kvasir eval logits` computes in one process.

Two tasks on local JSON files: questions with four answers (lm_eval_tasks/questions.jsonl, loglikelihood) and
paragraphs of this project's documents (loglikelihood_rolling). lm-eval's `local-completions` takes the server's
tokenizer (its remote backend) and sends token ids, then texts. In process every text is scored by itself, without a
server. Every log likelihood must be equal to 1e-4, and with them accuracy and perplexity. Then `local-chat-completions`
lets the model answer each question in words, greedily: as one request of the same chat is answered.

Usage: lm_eval_test.py [--model NAME]
Exits 0 when all are equal, 1 when one is not, 77 when something is missing.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import served

BOUND = 1e-4
FOLDER = pathlib.Path(__file__).resolve().parent / "lm_eval_tasks"
DOCUMENTS = ("README.md", "docs/ARCHITECTURE.md", "docs/KV.md")
NUM_PARAGRAPHS = 20
WORDS_TOKENS = 16
PREFIX = "\n"  # stands before a paragraph, so that its first token has a likelihood too


def paragraphs():
    """Those of the documents that are running text of a few lines."""
    for name in DOCUMENTS:
        for paragraph in (served.ROOT / name).read_text().split("\n\n"):
            if 300 <= len(paragraph) <= 2000 and paragraph[0].isalpha() and "|" not in paragraph:
                yield paragraph


def tasks(folder):
    """lm-eval's descriptions of the two tasks, with the data of the second written into `folder`."""
    texts = folder / "paragraphs.jsonl"
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in list(paragraphs())[:NUM_PARAGRAPHS]))
    questions = {
        "task": "questions", "output_type": "multiple_choice", "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_choice": "{{choices}}", "doc_to_target": "{{answer}}",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]}
    rolling = {
        "task": "paragraphs", "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
        "metric_list": [{"metric": "word_perplexity"}]}
    for task, data in ((questions, FOLDER / "questions.jsonl"), (rolling, texts)):
        task |= {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
    return [questions, rolling]


def through_the_server(url, model, folder, as_ids):
    """lm-eval's results, with what it asked and was told of each sample."""
    import lm_eval
    newline = kvasir_ids(model, PREFIX)
    assert len(newline) == 1, newline
    arguments = {"model": model, "base_url": url + "/v1/completions", "tokenizer_backend": "remote",
                 "tokenized_requests": as_ids, "custom_prefix_token_id": newline[0], "num_concurrent": 4,
                 "batch_size": 4, "max_length": 2048, "max_retries": 1}
    return lm_eval.simple_evaluate(model="local-completions", model_args=arguments, tasks=tasks(folder),
                                   log_samples=True, bootstrap_iters=0)


def answers_in_words(url, model):
    """(question, answer) of each question through lm-eval's chats."""
    import lm_eval
    task = {"task": "words", "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "",
            "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(FOLDER / "questions.jsonl")}},
            "test_split": "test", "metric_list": [{"metric": "exact_match"}],
            "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": WORDS_TOKENS, "temperature": 0}}
    arguments = {"model": model, "base_url": url + "/v1/chat/completions", "num_concurrent": 4, "max_retries": 1}
    results = lm_eval.simple_evaluate(model="local-chat-completions", model_args=arguments, tasks=[task],
                                      apply_chat_template=True, log_samples=True, bootstrap_iters=0)
    return [(sample["doc"]["question"], sample["resps"][0][0]) for sample in results["samples"]["words"]]


def asked_directly(url, model, question):
    body = {"model": model, "messages": [{"role": "user", "content": question}], "stop": ["\n\n"], "temperature": 0,
            "max_tokens": WORDS_TOKENS}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def compare_words(url, model):
    pairs = answers_in_words(url, model)
    wrong = [(question, answer) for question, answer in pairs if answer != asked_directly(url, model, question)]
    print(f"chats: {len(pairs)} answers in words, {len(wrong)} different {wrong[:1] or ''}")
    return bool(pairs) and not wrong


def run_kvasir(*arguments):
    return subprocess.run([served.BINARY, *arguments], capture_output=True, text=True, check=True).stdout


def kvasir_ids(model, text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return json.loads(run_kvasir("tokenize", model, "--file", file.name, "--no-bos", "--json"))["ids"]


class InProcess:
    """Log likelihoods from logits that one `kvasir eval logits` has written for each text."""

    def __init__(self, model):
        self.model, self.known, self.lengths = model, {}, {}

    def token_logprobs(self, text):
        """Ids of the text, and of each but the first its log probability after those before it."""
        import numpy
        if text not in self.known:
            ids = kvasir_ids(self.model, text)
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "text").write_text(text)
                run_kvasir("eval", "logits", self.model, "--file", f"{folder}/text", "--ctx", str(len(ids)),
                           "--out", f"{folder}/logits.npy")
                logits = numpy.load(f"{folder}/logits.npy").astype(numpy.float64)[:-1]
            highest = logits.max(-1)
            sums = highest + numpy.log(numpy.exp(logits - highest[:, None]).sum(-1))
            self.known[text] = ids, logits[numpy.arange(len(ids) - 1), ids[1:]] - sums
        return self.known[text]

    def of_continuation(self, context, continuation):
        ids, logprobs = self.token_logprobs(context + continuation)
        if context not in self.lengths:
            before = kvasir_ids(self.model, context)
            assert ids[:len(before)] == before, f"a token crosses the end of {context!r}"
            self.lengths[context] = len(before)
        return float(logprobs[self.lengths[context] - 1:].sum())

    def of_paragraph(self, text):
        return float(self.token_logprobs(PREFIX + text)[1].sum())


def likelihoods(results, in_process):
    """(what, in process, through the server) of every log likelihood that lm-eval asked for."""
    for sample in results["samples"]["questions"]:
        for (context, continuation), response in zip(sample["arguments"], sample["resps"], strict=True):
            ours = in_process.of_continuation(context, continuation)
            yield context.splitlines()[0] + continuation, ours, float(response[0][0])
    for sample in results["samples"]["paragraphs"]:
        text = sample["doc"]["text"]
        yield text[:40] + "...", in_process.of_paragraph(text), float(sample["resps"][0][0])


def scores(results, in_process):
    """(what, in process, through the server) of each task's own number."""
    right = 0
    for sample in results["samples"]["questions"]:
        ours = [in_process.of_continuation(*arguments) for arguments in sample["arguments"]]
        right += ours.index(max(ours)) == sample["doc"]["answer"]
    texts = [sample["doc"]["text"] for sample in results["samples"]["paragraphs"]]
    words = sum(len(text.split()) for text in texts)
    perplexity = math.exp(-sum(map(in_process.of_paragraph, texts)) / words)
    found = results["results"]
    yield "accuracy", right / len(results["samples"]["questions"]), found["questions"]["acc,none"]
    yield "log of word perplexity", math.log(perplexity), math.log(found["paragraphs"]["word_perplexity,none"])


def compare(results, in_process):
    """Whether all is equal; prints what is not, and the two scores."""
    pairs = list(likelihoods(results, in_process))
    wrong = [pair for pair in pairs if not abs(pair[1] - pair[2]) <= BOUND]
    for what, ours, theirs in wrong:
        print(f"  DIFFERENT {what!r}: {ours:.5f} in process, {theirs:.5f} through the server")
    largest = max(abs(ours - theirs) for _, ours, theirs in set(pairs) - set(wrong))
    print(f"  {len(pairs)} log likelihoods, {len(wrong)} different, largest difference of the others {largest:.2e}")
    is_equal = not wrong and len(pairs) >= 100
    for what, ours, theirs in scores(results, in_process):
        print(f"  {what}: {ours:.6f} in process, {theirs:.6f} through the server")
        is_equal = is_equal and abs(ours - theirs) <= BOUND
    return is_equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2:135m")
    model = parser.parse_args().model
    served.need_model(model)
    served.run_in_venv(["lm_eval", "tenacity", "numpy"])
    in_process, verdicts = InProcess(model), []
    with tempfile.TemporaryDirectory(prefix="kvasir-lm-eval-") as folder, served.serving(model) as server:
        os.environ |= {"HF_HOME": folder, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # nothing from a hub
        for as_ids in (True, False):
            print(f"lm-eval sends {'token ids' if as_ids else 'texts'}", file=sys.stderr)
            results = through_the_server(server.url, model, pathlib.Path(folder), as_ids)
            print("token ids:" if as_ids else "texts:")
            verdicts.append(compare(results, in_process))
        verdicts.append(compare_words(server.url, model))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
