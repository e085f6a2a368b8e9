"""Reads cases/*.json: what the conformance test sends, and what must come back.

A file: {"setup": how the server is started (keys, chat_template), "endpoint": ..., "request": fields of every case,
"cases": [...]}. A case:

  name          unique among all files
  endpoint      chat, completions, embeddings, generate, tokenize, detokenize, models, messages,
                count_tokens, responses or input_tokens; else the file's
  request       fields, on top of the file's; `without` names some to leave out; `model` is filled in
  streamed      true: as a stream. `streamed_too`: also as a second case, which must end in the same texts
  key           name of a key of `setup`; "" for none; "?..." for one that the server does not know
  after         name of a case that must have been answered before
  cannot        client -> why it cannot send this. "clients": all but raw HTTP
  expect        see checks.py

In a request {"$text_of": CASE, "from": a, "to": b} is a piece of what that case was answered, and
{"$repeat": TEXT, "times": n} what it says, as is {"$repeat_item": ITEM, "times": n} for a list.
"""
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "cases"
CASE_FIELDS = {"name", "endpoint", "request", "without", "streamed", "streamed_too", "key", "after", "cannot",
               "expect"}


class Case:
    def __init__(self, file, fields, model):
        unknown = set(fields) - CASE_FIELDS
        if unknown:
            raise ValueError(f"{fields['name']}: unknown {unknown}")
        self.name = fields["name"]
        self.endpoint = fields.get("endpoint") or file["endpoint"]
        inherited = file.get("request", {}) if "endpoint" not in fields else {}
        default = {} if self.endpoint == "models" else {"model": model}
        self.request = {k: v for k, v in (default | inherited | fields.get("request", {})).items()
                        if k not in fields.get("without", [])}
        self.streamed = fields.get("streamed", False)
        self.key = fields.get("key")
        self.cannot = fields.get("cannot", {})
        self.expect = fields.get("expect", {})
        self.after = fields.get("after")

    def needs(self):
        """Names of the cases whose answers this one uses or must come after."""
        named = [self.after] if self.after else []
        named += [self.expect[word] for word in ("texts_of", "texts_differ_from") if word in self.expect]
        named += [self.expect[word]["case"] for word in ("text_cut", "vector_of") if word in self.expect]
        return named + list(names_in(self.request))


def names_in(value):
    if isinstance(value, dict):
        if "$text_of" in value:
            yield value["$text_of"]
        for item in value.values():
            yield from names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)


def resolved(value, answer_of):
    """A request with its $text_of, $repeat and $repeat_item replaced; `answer_of` gives the Answer of a case."""
    if isinstance(value, list):
        return [resolved(item, answer_of) for item in value]
    if not isinstance(value, dict):
        return value
    if "$text_of" in value:
        return slice_of(value, answer_of(value["$text_of"]).texts[0])
    if "$repeat" in value:
        return value["$repeat"] * value["times"]
    if "$repeat_item" in value:
        return [value["$repeat_item"]] * value["times"]
    return {name: resolved(item, answer_of) for name, item in value.items()}


def slice_of(value, text):
    piece = text[value["from"]:value["to"]]
    if not piece:
        raise ValueError(f"nothing at {value} of {text!r}")
    return piece


def twin(fields):
    """The streamed case that goes with one that says streamed_too. Its stream has no usage, as nobody asks for it."""
    expect = {word: value for word, value in fields.get("expect", {}).items()
              if word not in ("prompt_tokens", "completion_tokens", "cached")}
    return fields | {"name": fields["name"] + ", streamed", "streamed": True, "after": None,
                     "expect": expect | {"texts_of": fields["name"]}}


def read_file(path, model):
    """Setup and cases of one file."""
    file = json.loads(path.read_text())
    cases = []
    for fields in file["cases"]:
        cases.append(Case(file, fields, model))
        if fields.get("streamed_too"):
            cases.append(Case(file, twin(fields), model))
    return file.get("setup"), cases


def read_all(model):
    """A list of (file's name, setup, cases); what a case needs stands before it in the same file."""
    files, names = [], set()
    for path in sorted(FOLDER.glob("*.json")):
        setup, cases = read_file(path, model)
        here = set()
        for case in cases:
            missing = set(case.needs()) - here
            if case.name in names or missing:
                wrong = f"needs {missing} before it" if missing else "is there twice"
                raise ValueError(f"{path.name}: {case.name!r} {wrong}")
            here.add(case.name)
            names.add(case.name)
        files.append((path.stem, setup, cases))
    return files
