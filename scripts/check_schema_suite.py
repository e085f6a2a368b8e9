#!/usr/bin/env python3
"""Holds guides against the JSON-Schema-Test-Suite: no invalid instance may pass, and each valid one that does not is listed.

    check_schema_suite.py BENCH SUITE            BENCH is kvasir_schema_verdicts, SUITE the folder json/ of the suite
    check_schema_suite.py --write BENCH SUITE    writes tests/schema/suite.jsonl and the new lines of not_accepted.tsv

The suite is inside the source package of `jsonschema`:
    pip download --no-deps --no-binary :all: jsonschema && tar xf jsonschema-*.tar.gz
Drafts 4, 6, 7, 2019-09 and 2020-12 are read: the required tests, and those of optional/format. Reasons are the third
column of not_accepted.tsv, which is written by hand.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/schema/suite.jsonl"
LISTED = ROOT / "tests/schema/not_accepted.tsv"
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def suite_cases(suite):
    """One line for each schema that differs, with the tests of all drafts that have it."""
    seen = set()
    for draft, uri in DRAFTS.items():
        folder = suite / "tests" / draft
        for path in sorted(folder.glob("*.json")) + sorted(folder.glob("optional/format/*.json")):
            for group in json.loads(path.read_text(encoding="utf-8")):
                schema = group["schema"]
                if isinstance(schema, dict) and "$schema" not in schema and draft != "draft2020-12":
                    schema = {"$schema": uri, **schema}
                tests = [{"valid": test["valid"], "data": test["data"]} for test in group["tests"]]
                key = compact([schema, tests])
                if key in seen:
                    continue
                seen.add(key)
                yield {"name": f"{draft}/{path.stem}/{group['description']}", "schema": schema, "tests": tests}


def judge(bench, lines):
    """The wrong verdicts: {(kind, name, instance or message)}."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write("".join(compact(line) + "\n" for line in lines))
        file.flush()
        done = subprocess.run([bench, file.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{bench}: exit code {done.returncode}\n{done.stderr}")
    valid = {(line["name"], compact(test["data"])): test["valid"] for line in lines for test in line["tests"]}
    found = set()
    for verdict, name, detail in (row.split("\t", 2) for row in done.stdout.split("\n")[:-1]):
        if verdict == "refused":
            found.add((verdict, name, detail))
        elif (verdict == "accepted") != valid[name, detail]:
            found.add(("wrong accept" if verdict == "accepted" else "false reject", name, detail))
    return found


def listed():
    if not LISTED.exists():
        return {}
    rows = [line.split("\t") for line in LISTED.read_text(encoding="utf-8").split("\n")[:-1] if not line.startswith("#")]
    return {(name, instance): reason for name, instance, reason in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("bench")
    parser.add_argument("suite", type=pathlib.Path)
    args = parser.parse_args()
    lines = list(suite_cases(args.suite))
    verdicts = judge(args.bench, lines)
    wrong = sorted(v for v in verdicts if v[0] == "wrong accept")
    reasons = listed()
    rejected = {(name, "" if kind == "refused" else detail): detail for kind, name, detail in verdicts
                if kind in ("refused", "false reject")}
    if args.write:
        CASES.write_text("".join(compact(line) + "\n" for line in lines), encoding="utf-8")
        rows = [f"{name}\t{instance}\t{reasons.get((name, instance), detail if not instance else '?')}\n"
                for (name, instance), detail in sorted(rejected.items())]
        LISTED.write_text("# schema\tinstance (none: the schema is refused)\treason\n" + "".join(rows), encoding="utf-8")
    for _, name, instance in wrong:
        print(f"wrong accept: {name}: {instance}")
    unlisted = sorted(set(rejected) - set(reasons))
    for name, instance in unlisted if not args.write else []:
        print(f"not listed: {name}: {instance}")
    gone = sorted(set(reasons) - set(rejected))
    for name, instance in gone:
        print(f"listed but accepted: {name}: {instance}")
    instances = sum(len(line["tests"]) for line in lines)
    print(f"{len(lines)} schemas, {instances} instances: {len(wrong)} wrong accepts, {len(rejected)} listed")
    return 1 if wrong or (unlisted and not args.write) or gone else 0


if __name__ == "__main__":
    sys.exit(main())
