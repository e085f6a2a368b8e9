#!/usr/bin/env python3
"""Fills in what the chat-template cases of tests/cases/template must render to.

The oracle is transformers' own environment: `_compile_jinja_template` builds the sandbox with its settings,
extensions, filters and globals; only the clock is ours. Needs the packages transformers and jinja2, and gguf
for --gguf. Writes in place:

  micro/*.jsonl           a case a line: "template" and, from here, "expected", or "raises" (raise_exception's
                          message), or "error" (any other exception; templates must fail, words may differ)
  families/expected.json  every families/*.jinja rendered with every conversation of conversations.json

With --gguf FILE, first checks that families/smollm2.jinja is the template inside that model file.
"""
import argparse
import datetime
import json
import pathlib
import sys

import jinja2
from transformers.utils import chat_template_utils

CASES = pathlib.Path(__file__).resolve().parent.parent / "tests/cases/template"
NOW = datetime.datetime(2024, 7, 26, 13, 45, 9)  # what strftime_now sees, here and in conformance_test.cc


def outcome(template, variables):
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        compiled.environment.globals["strftime_now"] = NOW.strftime
        return {"expected": compiled.render(**variables)}
    except jinja2.exceptions.TemplateError as error:
        # raise_exception throws exactly this class; Jinja's own errors are subclasses of it.
        if type(error) is jinja2.exceptions.TemplateError:
            return {"raises": str(error)}
        return {"error": f"{type(error).__name__}: {error}"}
    except Exception as error:  # templates may raise any Python exception
        return {"error": f"{type(error).__name__}: {error}"}


def fill_micro_cases():
    variables = json.loads((CASES / "micro/globals.json").read_text(encoding="utf-8"))
    count = 0
    for path in sorted((CASES / "micro").glob("*.jsonl")):
        lines = []
        for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n"):
            case = {"template": json.loads(line)["template"]}
            case.update(outcome(case["template"], variables))
            lines.append(json.dumps(case, ensure_ascii=False))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        count += len(lines)
    return count


def fill_families():
    conversations = json.loads((CASES / "families/conversations.json").read_text(encoding="utf-8"))
    expected = {}
    for path in sorted((CASES / "families").glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        # transformers always passes these three, and the model's special tokens.
        expected[path.stem] = {
            name: outcome(template, {"tools": None, "documents": None, "add_generation_prompt": False,
                                     "bos_token": "<s>", "eos_token": "</s>", **variables})
            for name, variables in conversations.items()}
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (CASES / "families/expected.json").write_text(text + "\n", encoding="utf-8")
    return len(expected), len(conversations)


def check_model_template(path):
    import gguf
    field = gguf.GGUFReader(path).get_field("tokenizer.chat_template")
    if field.contents() != (CASES / "families/smollm2.jinja").read_text(encoding="utf-8"):
        sys.exit(f"families/smollm2.jinja is not the chat template of {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", help="SmolLM2's model file, to check families/smollm2.jinja against")
    arguments = parser.parse_args()
    if arguments.gguf:
        check_model_template(arguments.gguf)
    families, conversations = fill_families()
    print(f"{fill_micro_cases()} micro cases, {families} families with {conversations} conversations each")


if __name__ == "__main__":
    main()
