#!/usr/bin/env python3
"""Calls under tool_choice auto at temperature 1: the share that is complete and valid, guided and free.

Usage: auto_calls.py [--model NAME] [--count N]
Each chat is asked twice with one seed. The guided answer is the server's. The free one continues the same prompt as a
plain completion, and a reader that forgives reads it: whatever JSON stands behind the mark counts, with or without an end
mark, as one call or a list. A call is valid when its tool exists and `jsonschema` accepts its arguments. Each chat has
three calls in its history, with the template of Hermes, as a small model hardly calls anything else.
"""
import argparse
import concurrent.futures
import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/clients"))
import served

MARK, END = "<tool_call>", "</tool_call>"
MAX_TOKENS = 200
TOOLS = {
    "get_weather": ("Weather of a city", {
        "type": "object", "required": ["city", "unit"], "additionalProperties": False,
        "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]},
                       "days": {"type": "integer", "minimum": 1, "maximum": 14}}}),
    "add_event": ("Adds an event to the calendar", {
        "type": "object", "required": ["title", "date"], "additionalProperties": False,
        "properties": {"title": {"type": "string", "maxLength": 40}, "date": {"type": "string", "format": "date"},
                       "guests": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 4}}}),
    "convert_currency": ("Converts money", {
        "type": "object", "required": ["amount", "from", "to"], "additionalProperties": False,
        "properties": {"amount": {"type": "number", "minimum": 0}, "from": {"type": "string", "pattern": "^[A-Z]{3}$"},
                       "to": {"type": "string", "pattern": "^[A-Z]{3}$"}}})}
QUESTIONS = ["What is the weather in {0}?", "How warm will it be in {0} over the next 3 days? Use a tool.",
             "Call the function get_weather for {0} in celsius.", "Put lunch with Ann on my calendar for 2026-05-0{1}.",
             "Convert 12{1} euros to dollars with the tool.", "Use a function to add the event 'Visit of {0}' on 2027-01-1{1}."]
CITIES = ["Paris", "Oslo", "Rome", "Tokyo", "Lima", "Cairo", "Quito", "Bern", "Delhi"]


HISTORY = [("What is the weather in Rome?", "get_weather", {"city": "Rome", "unit": "celsius", "days": 2}, "21 degrees"),
           ("Put dinner with Bob on my calendar for 2026-04-12.", "add_event", {"title": "Dinner", "date": "2026-04-12", "guests": ["Bob"]}, "done"),
           ("Convert 50 dollars to yen.", "convert_currency", {"amount": 50, "from": "USD", "to": "JPY"}, "7400")]


def history():
    for index, (question, name, arguments, result) in enumerate(HISTORY):
        yield {"role": "user", "content": question}
        yield {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"t{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]}
        yield {"role": "tool", "tool_call_id": f"t{index}", "content": result}
        yield {"role": "assistant", "content": f"{result}."}


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=900) as response:
        return json.load(response)


def chat(number):
    text = QUESTIONS[number % len(QUESTIONS)].format(CITIES[number % len(CITIES)], 1 + number % 9)
    tools = [{"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
             for name, (description, schema) in TOOLS.items()]
    return {"messages": [*history(), {"role": "user", "content": text}], "tools": tools}


def is_valid(name, arguments):
    import jsonschema
    try:
        validator = jsonschema.Draft202012Validator
        validator(TOOLS[name][1], format_checker=validator.FORMAT_CHECKER).validate(arguments)
        return True
    except (KeyError, TypeError, jsonschema.ValidationError):
        return False


def ask_guided(url, number):
    """(calls that began, of these valid, whether the answer was cut)"""
    asked = chat(number) | {"temperature": 1, "seed": number, "max_tokens": MAX_TOKENS, "tool_choice": "auto"}
    choice = post(url, "/v1/chat/completions", asked)["choices"][0]
    calls = [call["function"] for call in choice["message"].get("tool_calls") or []]
    num_valid = 0
    for call in calls:
        try:
            num_valid += is_valid(call["name"], json.loads(call["arguments"]))
        except ValueError:  # cut
            pass
    is_cut = choice["finish_reason"] == "length"
    begun = len(calls) + (MARK in (choice["message"]["content"] or ""))
    return begun, num_valid, is_cut


def ask_free(url, number):
    prompt = post(url, "/apply-template", chat(number))["prompt"]
    choice = post(url, "/v1/completions", {"prompt": prompt, "temperature": 1, "seed": number, "max_tokens": MAX_TOKENS,
                                           "skip_special_tokens": False})["choices"][0]
    begun = num_valid = 0
    for part in choice["text"].split(MARK)[1:]:
        try:
            value, _ = json.JSONDecoder().raw_decode(part.lstrip())
        except ValueError:
            begun += 1
            continue
        calls = value if isinstance(value, list) else [value]
        begun += len(calls)
        num_valid += sum(isinstance(call, dict) and is_valid(call.get("name"), call.get("arguments")) for call in calls)
    return begun, num_valid, choice["finish_reason"] == "length"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    served.need_model(options.model)
    served.run_in_venv(["jsonschema"])
    print("| answers | with a call | cut | calls begun | complete and valid |\n|---|---|---|---|---|")
    with served.serving(options.model, {"chat_template": "families/hermes.jinja"}) as server, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        for name, ask in (("free", ask_free), ("guided", ask_guided)):
            answers = list(pool.map(lambda number, ask=ask: ask(server.url, number), range(options.count)))
            begun, valid = sum(answer[0] for answer in answers), sum(answer[1] for answer in answers)
            share = f"{valid} ({100 * valid / begun:.0f}%)" if begun else "-"
            print(f"| {name} | {sum(answer[0] > 0 for answer in answers)} | {sum(answer[2] for answer in answers)} | "
                  f"{begun} | {share} |", flush=True)


if __name__ == "__main__":
    main()
