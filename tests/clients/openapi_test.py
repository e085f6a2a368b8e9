#!/usr/bin/env python3
"""Checks /openapi.json of a running `kvasir serve`: OpenAPI 3.1, as openapi-spec-validator reads it, and true.

True means that the bodies of cases/*.json which the server takes hold to the schemas of their endpoints.

Usage: openapi_test.py [--model NAME]
Exits 0 when all holds, 1 when something does not, and 77 (skipped) without binary, model or package.
"""
import argparse
import json
import sys
import urllib.request

import case_table
import served

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings",
         "generate": "/v1/generate", "tokenize": "/tokenize", "detokenize": "/detokenize",
         "messages": "/v1/messages", "count_tokens": "/v1/messages/count_tokens", "responses": "/v1/responses",
         "input_tokens": "/v1/responses/input_tokens"}


class AnyAnswer:
    """Stands for an answer whose text a request is made of."""
    texts = ["any text " * 40]


def description_of(server):
    with urllib.request.urlopen(server.url + "/openapi.json", timeout=60) as answer:
        return json.load(answer)


def taken_cases(model):
    """Those that are answered, and not by a warning that a value of another type was left out."""
    for _, _, cases in case_table.read_all(model):
        for case in cases:
            if case.endpoint in PATHS and "status" not in case.expect and "warning" not in json.dumps(case.expect):
                yield case


def faults(document, model):
    """(how many cases were checked, what is wrong)"""
    import jsonschema
    schemas = document["components"]["schemas"]
    validators = {}
    for endpoint, path in PATHS.items():
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        validators[endpoint] = jsonschema.Draft202012Validator(schemas[body["$ref"].rsplit("/", 1)[-1]])
    count, found = 0, []
    for case in taken_cases(model):
        request = case_table.resolved(case.request, lambda name: AnyAnswer())
        count += 1
        found += [f"{case.name}: {error.json_path}: {error.message[:200]}"
                  for error in validators[case.endpoint].iter_errors(request)]
    return count, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2:135m")
    model = parser.parse_args().model
    served.need_model(model)
    served.run_in_venv(["openapi_spec_validator", "jsonschema"])
    import openapi_spec_validator
    with served.serving(model) as server:
        document = description_of(server)
    openapi_spec_validator.validate(document)
    count, found = faults(document, model)
    print("\n".join(found) or f"valid; {count} bodies hold to it")
    return 1 if found or count < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
