#!/usr/bin/env python3
"""Compares guides with the package `jsonschema` on random schemas and instances.

    compare_schema_validators.py BENCH [--schemas 1000] [--seed 1] [--weights FILE]

BENCH is kvasir_schema_verdicts. Every instance that a guide accepts has to be valid, and every sample that a guide
gives. Instances that are valid and rejected are counted and the commonest reasons shown, because guides are narrower:
members come in an order, integers have no fraction. Some instances have a key twice: none may pass, whatever the schema.
FILE is lines of JSON with schemas, whose keywords set how often
each keyword is drawn. Exit code 1: a guide accepted what is not valid.
"""
import argparse
import collections
import decimal
import json
import random
import subprocess
import sys
import tempfile

import jsonschema

KEYS = ["a", "b", "c", "ab", "x1", "y_2"]
WORDS = ["", "a", "b", "ab", "abc", "x1", "2024-02-29", "a@b.cd", "é", "日本", "1", "\"q\"", "a b"]
PATTERNS = ["^a", "b$", "^[a-c]+$", "[0-9]", "^x?1$", "^.{2,3}$", "a|b", "^(?!a)", "\\d{4}"]
FORMATS = ["date", "email", "uuid", "ipv4", "made-up"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
# How often each keyword is drawn beside the others, from MaskBench's development set.
WEIGHTS = {"type": 60, "enum": 8, "const": 5, "minimum": 6, "maximum": 5, "exclusiveMinimum": 2, "exclusiveMaximum": 2,
           "multipleOf": 2, "minLength": 5, "maxLength": 5, "pattern": 6, "format": 4, "items": 12, "prefixItems": 2,
           "minItems": 4, "maxItems": 3, "uniqueItems": 2, "contains": 2, "properties": 30, "required": 15,
           "additionalProperties": 12, "patternProperties": 3, "propertyNames": 2, "minProperties": 2,
           "maxProperties": 2, "dependentRequired": 2, "dependentSchemas": 1, "allOf": 4, "anyOf": 5, "oneOf": 5,
           "not": 3, "if": 2, "$ref": 3, "unevaluatedProperties": 1, "unevaluatedItems": 1}


def counted_weights(path):
    counts = collections.Counter()

    def visit(value):
        if isinstance(value, dict):
            counts.update(key for key in value if key in WEIGHTS)
            for child in value.values():
                visit(child)
        elif isinstance(value, list):
            for child in value:
                visit(child)

    with open(path, encoding="utf-8") as file:
        for line in file:
            visit(json.loads(line)["schema"])
    most = max(counts.values())
    return {key: max(0.3, 60 * counts[key] / most) for key in WEIGHTS}


class Generator:
    def __init__(self, seed, weights):
        self.random = random.Random(seed)
        self.weights = weights

    def keyword(self, name, depth):
        r = self.random
        if name == "type":
            return r.choice(TYPES) if r.random() < 0.8 else r.sample(TYPES, 2)
        if name == "enum":
            return [self.value(1) for _ in range(r.randint(1, 4))]
        if name == "const":
            return self.value(1)
        if name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            return r.choice([r.randint(-12, 12), r.randint(-1200, 1200) / 100])
        if name == "multipleOf":
            return r.choice([1, 2, 3, 5, 0.5, 0.25])
        if name in ("minLength", "minItems", "minProperties"):
            return r.randint(0, 2)
        if name in ("maxLength", "maxItems", "maxProperties"):
            return r.randint(1, 4)
        if name == "pattern":
            return r.choice(PATTERNS)
        if name == "format":
            return r.choice(FORMATS)
        if name == "uniqueItems":
            return True
        if name in ("items", "contains", "not", "if", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
            return r.random() < 0.3 if name.endswith("Properties") else self.schema(depth - 1)
        if name == "propertyNames":
            return {r.choice(["pattern", "maxLength"]): r.choice(PATTERNS)} if r.random() < 0.5 else {"maxLength": 2}
        if name == "prefixItems":
            return [self.schema(depth - 1) for _ in range(r.randint(1, 2))]
        if name in ("properties", "dependentSchemas"):
            return {key: self.schema(depth - 1) for key in r.sample(KEYS, r.randint(1, 3))}
        if name == "patternProperties":
            return {r.choice(PATTERNS): self.schema(depth - 1)}
        if name == "required":
            return r.sample(KEYS, r.randint(1, 2))
        if name == "dependentRequired":
            return {r.choice(KEYS): r.sample(KEYS, 1)}
        if name == "$ref":
            return "#/$defs/d"
        return [self.schema(depth - 1) for _ in range(r.randint(1, 3))]

    def schema(self, depth):
        r = self.random
        if depth <= 0:
            return {"type": r.choice(TYPES[:5])} if r.random() < 0.8 else r.random() < 0.7
        names = set(r.choices(list(self.weights), list(self.weights.values()), k=r.randint(1, 4)))
        schema = {}
        for name in sorted(names, key=lambda _: r.random()):
            value = self.keyword(name, depth)
            if name == "propertyNames" and not isinstance(value.get("maxLength", 1), int):
                value = {"pattern": value["maxLength"]}
            schema[name] = value
        if "if" in schema:
            schema["then"] = self.schema(depth - 1)
            schema["else"] = self.schema(depth - 1)
        return schema

    def document(self):
        schema = self.schema(3)
        if not isinstance(schema, dict):
            schema = {"allOf": [schema]}
        return {**schema, "$defs": {"d": self.schema(1)}}

    def value(self, depth):
        r = self.random
        kind = r.choice(TYPES if depth > 0 else TYPES[:5])
        if kind == "null":
            return None
        if kind == "boolean":
            return r.random() < 0.5
        if kind == "integer":
            return r.randint(-12, 12)
        if kind == "number":
            return r.randint(-1200, 1200) / 100
        if kind == "string":
            return r.choice(WORDS)
        if kind == "array":
            return [self.value(depth - 1) for _ in range(r.randint(0, 3))]
        return {key: self.value(depth - 1) for key in r.sample(KEYS, r.randint(0, 3))}

    def likely(self, schema, depth, root):
        """A value that follows some of the schema's keywords."""
        r = self.random
        if not isinstance(schema, dict) or depth <= 0 or r.random() < 0.05:
            return self.value(1)
        if "$ref" in schema and r.random() < 0.5:
            return self.likely(root["$defs"]["d"], depth - 1, root)
        for name in ("allOf", "anyOf", "oneOf"):
            if name in schema and r.random() < 0.4:
                chosen = r.choice(schema[name])
                return self.likely({**schema, name: [True], **(chosen if isinstance(chosen, dict) else {})}, depth - 1,
                                   root)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return r.choice(schema["enum"])
        kind = schema.get("type", "object" if "properties" in schema or "required" in schema else r.choice(TYPES))
        kind = kind if isinstance(kind, str) else r.choice(kind)
        if kind == "object":
            given = schema.get("properties", {})
            keys = [key for key in given if r.random() < 0.7]
            keys += [key for key in schema.get("required", []) if key not in keys and r.random() < 0.95]
            keys += [key for key in r.sample(KEYS, 2) if key not in keys and r.random() < 0.3]
            return {key: self.likely(given.get(key, True), depth - 1, root) for key in keys}
        if kind == "array":
            prefix = schema.get("prefixItems", [])
            count = r.randint(0, 4)
            items = [self.likely(prefix[i] if i < len(prefix) else schema.get("items", True), depth - 1, root)
                     for i in range(count)]
            if items and r.random() < (0.3 if "uniqueItems" in schema else 0.05):
                items.append(r.choice(items))
            return items
        for _ in range(40):
            value = self.value(0)
            if type(value).__name__ == {"null": "NoneType", "boolean": "bool", "integer": "int", "number": "float",
                                        "string": "str"}[kind]:
                return value
        return self.value(0)

    def ordered(self, value, schema):
        """The members of the value in the schema's order, as guides write them."""
        if isinstance(value, dict) and isinstance(schema, dict):
            given = schema.get("properties", {})
            keys = sorted(value, key=lambda key: list(given).index(key) if key in given else len(given))
            return {key: self.ordered(value[key], given.get(key)) for key in keys}
        return value


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def repeated(value, r):
    """The value's text with some member once more, where it has an object with members."""
    if isinstance(value, dict) and value:
        members = [f"{compact(key)}:{repeated(child, r)}" for key, child in value.items()]
        if r.random() < 0.7:
            members.insert(r.randint(0, len(members)), r.choice(members))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(repeated(child, r) for child in value) + "]"
    return compact(value)


class RepeatedKey(Exception):
    """An object has a key twice."""


def without_repeated_keys(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RepeatedKey
    return members


def validator(schema):
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def main():
    decimal.getcontext().prec = 400
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--schemas", type=int, default=1000)
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weights")
    args = parser.parse_args()
    generator = Generator(args.seed, counted_weights(args.weights) if args.weights else WEIGHTS)
    schemas, lines = {}, []
    for i in range(args.schemas):
        schema = generator.document()
        values = [generator.likely(schema, 4, schema) for _ in range(args.instances - 2)]
        values = [generator.ordered(value, schema) for value in values] + [generator.value(2) for _ in range(2)]
        schemas[str(i)] = schema
        texts = [compact(value) for value in values]
        texts += [repeated(value, generator.random) for value in values[:2] if isinstance(value, (dict, list))]
        tests = ",".join(f'{{"data":{text}}}' for text in texts)
        lines.append(f'{{"name":"{i}","schema":{compact(schema)},"tests":[{tests}]}}')
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        done = subprocess.run([args.bench, "--samples", str(args.samples), file.name], capture_output=True, text=True,
                              check=False)
    if done.returncode != 0:
        sys.exit(f"{args.bench}: exit code {done.returncode}\n{done.stderr}")
    counts, reasons, wrong = collections.Counter(), collections.Counter(), 0
    for row in done.stdout.split("\n")[:-1]:
        verdict, name, text = row.split("\t", 2)
        counts[verdict] += 1
        if verdict == "refused":
            reasons[text.split(": ", 1)[-1][:60]] += 1
            continue
        # Exact numbers: as floats, 0.07 is no multiple of 0.01.
        exact = json.loads(json.dumps(schemas[name]), parse_float=decimal.Decimal)
        try:
            value = json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=without_repeated_keys)
            is_valid = validator(exact).is_valid(value)
        except RepeatedKey:
            counts["with a key twice"] += 1
            is_valid = False
        except (RecursionError, decimal.DecimalException):
            counts["not judged"] += 1  # a reference to itself, or a number too long to divide
            continue
        counts["valid"] += is_valid
        if verdict == "rejected" and is_valid:
            counts["valid but rejected"] += 1
        if verdict != "rejected" and not is_valid:
            wrong += 1
            if wrong <= 20:
                print(f"{verdict} but not valid: {json.dumps(schemas[name], ensure_ascii=False)} {text}")
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()) + f", {wrong} wrong")
    for reason, count in reasons.most_common(8):
        print(f"  refused {count}: {reason}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
