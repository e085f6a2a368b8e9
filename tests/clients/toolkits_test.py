#!/usr/bin/env python3
"""Lets packages that are built on the clients of OpenAI, Anthropic and Ollama talk to a running `kvasir serve`, with tools.

A module `NAME_toolkit.py` for each: PACKAGES that it imports, SERVER_OPTIONS if any, and checks(server, model), which
yields (what, function); a function raises when something is wrong. The model is real, and so are its calls of tools
(weather.py).

Usage: toolkits_test.py --toolkit openai|anthropic|agents|langchain|litellm|instructor|pydantic_ai|llama_index|ollama|
       llama_index_ollama|rerank [--model NAME] [--only PART_OF_A_NAME]
Exits 0 when every check holds, 1 when one does not, and 77 (skipped) without binary, model or package.
"""
import argparse
import importlib
import sys
import traceback

import served
import weather

# toolkit -> the virtual environment of install.sh that has it, and the package that it must find there.
TOOLKITS = {"openai": ("venv", "openai"), "anthropic": ("venv", "anthropic"), "agents": ("venv", "agents"), "langchain": ("venv", "langchain_anthropic"), "litellm": ("venv", "litellm"),
            "instructor": ("venv", "instructor"), "pydantic_ai": ("pydantic_ai", "pydantic_ai"),
            "llama_index": ("llama_index", "llama_index"), "ollama": ("venv", "langchain_ollama"),
            "llama_index_ollama": ("llama_index", "llama_index.llms.ollama"), "rerank": ("venv", "cohere")}
ENCODER = "all-minilm:22m"  # the model of rerank


def fault_of(function):
    """The fault that a check found, or None."""
    try:
        function()
    except Exception as error:  # of any package: a check has failed, and the others go on
        frames = traceback.extract_tb(error.__traceback__)
        where = next((frame for frame in reversed(frames) if frame.filename.endswith("_toolkit.py")), frames[-1])
        return f"{type(error).__name__}: {str(error)[:600]} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
    return None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toolkit", choices=TOOLKITS, required=True)
    parser.add_argument("--model", help="smollm2:135m, and for rerank all-minilm:22m")
    parser.add_argument("--only", default="", help="checks with this in their names")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    is_rerank = arguments.toolkit == "rerank"
    arguments.model = arguments.model or (ENCODER if is_rerank else "smollm2:135m")
    served.need_model(arguments.model)
    venv, package = TOOLKITS[arguments.toolkit]
    served.run_in_venv([package], venv)
    module = importlib.import_module(f"{arguments.toolkit}_toolkit")
    passed = failed = 0
    with served.serving(arguments.model, {} if is_rerank else weather.SETUP, getattr(module, "SERVER_OPTIONS", ())) as server:
        for what, function in module.checks(server, arguments.model):
            if arguments.only not in what:
                continue
            fault = fault_of(function)
            passed, failed = passed + (not fault), failed + bool(fault)
            if fault:
                print(f"FAILED {what}: {fault}")
    print(f"{arguments.toolkit}: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
