#!/usr/bin/env python3
"""Asks for answers that satisfy JSON Schemas, at temperature 1, and validates each that finished by `jsonschema`.

Usage: guided_answers_test.py [--model NAME] [--schemas FILE] [--count N] [--every N] [--max-tokens N]
FILE has lines {"name", "schema"}, perhaps compressed (.gz); by default those in cases/guided_schemas.jsonl. Every N takes
the first of N lines. A model whose file has no chat template gets Gemma's. Numbers with a fraction are decimals to the validator, which else divides floats for multipleOf.

Exits 0 when every finished answer validates and half of them finished, 1 otherwise, and 77 (skipped) without binary,
model, file or package.
"""
import argparse
import concurrent.futures
import decimal
import gzip
import itertools
import json
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import served

SCHEMAS = pathlib.Path(__file__).parent / "cases/guided_schemas.jsonl"
AT_ONCE = 8
TEMPLATE = {"chat_template": "families/gemma3.jinja"}


def read_schemas(path, count, every):
    if not path.exists():
        served.skip(f"{'no ../shared: ' if 'shared' in path.parts else ''}{path.name} is missing")
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as lines:
        return [json.loads(line) for line in itertools.islice(lines, 0, count * every, every)]


def has_template(model):
    shown = subprocess.run([served.BINARY, "show", model, "--json"], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)[0]["chat_template"]


def ask(url, case, seed, max_tokens):
    """The status, why the answer ended, and its text or the error."""
    body = {"messages": [{"role": "user", "content": "Answer in JSON: make up a value that fits. " + case["name"]}],
            "temperature": 1, "seed": seed, "max_tokens": max_tokens,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": case["schema"]}}}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=900) as response:
            choice = json.load(response)["choices"][0]
            return response.status, choice["finish_reason"], choice["message"]["content"]
    except urllib.error.HTTPError as error:
        return error.code, "error", json.load(error)["error"]["message"]


def fault_of(schema, text):
    """Empty: the text is a value of the schema."""
    import jsonschema
    exact = json.loads(json.dumps(schema), parse_float=decimal.Decimal)
    try:
        value = json.loads(text, parse_float=decimal.Decimal)
        make = jsonschema.validators.validator_for(exact, default=jsonschema.Draft202012Validator)
        make(exact, format_checker=make.FORMAT_CHECKER).validate(value)
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error).splitlines()[0]
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--schemas", type=pathlib.Path, default=SCHEMAS)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=300)
    options = parser.parse_args()
    served.need_model(options.model)
    served.run_in_venv(["jsonschema"])
    cases = read_schemas(options.schemas, options.count, options.every)
    ends = {"stop": 0, "length": 0, "error": 0}
    num_invalid = 0
    setup = {} if has_template(options.model) else TEMPLATE
    with served.serving(options.model, setup) as server, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda item: ask(server.url, item[1], item[0], options.max_tokens), enumerate(cases))
        for case, (status, end, text) in zip(cases, answers):
            ends[end] = ends.get(end, 0) + 1
            if status not in (200, 400):
                num_invalid += 1
                print(f"{case['name']}: status {status}: {text}")
            elif end == "error":
                print(f"{case['name']}: refused: {text}")
            elif end == "stop" and (fault := fault_of(case["schema"], text)):
                num_invalid += 1
                print(f"{case['name']}: {fault}: {text}")
    print(f"{len(cases)} schemas: {ends['stop']} ended, {ends['stop'] - num_invalid} of these valid, {ends['length']} cut, "
          f"{ends['error']} refused")
    return 0 if num_invalid == 0 and 2 * ends["stop"] >= len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
