#!/usr/bin/env python3
"""Writes docs/MODELS.md from the tree: the registry of architectures, the goldens, the formats, the families of calls.

  make_models_doc.py            writes it
  make_models_doc.py --check    fails when it is not what would be written
"""
import argparse
import pathlib
import re
import struct
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "MODELS.md"
# Models with trained weights that tests and figures are made with.
TRAINED = {"llama": "SmolLM2-135M", "gemma3": "Gemma 3 270M", "bert": "all-MiniLM-L6-v2"}


def read(path):
    return (ROOT / path).read_text()


def registered():
    """Names of the architectures in the order of the registry."""
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "src/model/arch").glob("*.cc")))
    names = dict(re.findall(r'const Architecture (k\w+) = \{\s*(?:\.name = )?"([\w.-]+)"', sources))
    order = re.findall(r"KVASIR_ARCHITECTURE\((k\w+)\)", read("src/model/arch/architectures.def"))
    missing = [name for name in order if name not in names]
    if missing:
        sys.exit(f"no definition of {', '.join(missing)} in src/model/arch")
    return [names[name] for name in order]


def computed_alike():
    """The functions that configure and load an architecture, by its name: of equal ones the decoder is the same."""
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "src/model/arch").glob("*.cc")))
    return {name: tuple(functions.split()) for name, functions in
            re.findall(r'const Architecture k\w+ = \{"([\w.-]+)", (\w+,\s+\w+)\}', sources)}


def folder_types():
    """model_type of folders by the architecture that reads them."""
    types = {}
    mapping = re.compile(r'\.model_types = \{([^}]*)\},\s*\.architecture = "([\w.-]+)"')
    for path in sorted((ROOT / "src/model/folders").glob("*.cc")):
        for names, architecture in mapping.findall(path.read_text()):
            types.setdefault(architecture, []).extend(re.findall(r'"([^"]+)"', names))
    return types


def golden_architecture(folder):
    """general.architecture of the folder's GGUF file: the first value under that key."""
    data = (folder / "model.gguf").read_bytes()
    key = b"general.architecture"
    at = data.index(key) + len(key)
    kind, length = struct.unpack_from("<IQ", data, at)
    if kind != 8:
        sys.exit(f"{folder}: general.architecture is no text")
    return data[at + 12:at + 12 + length].decode()


def goldens():
    """Names of the goldens by architecture, with the forms in which each agrees."""
    found = {}
    for line in read("tests/goldens/goldens.txt").splitlines():
        if not line or line.startswith("#"):
            continue
        name, gguf, folder = line.split()[:3]
        path = ROOT / "tests/goldens" / name
        forms = [form for form, state in (("GGUF", gguf), ("folder", folder)) if state == "supported"]
        if forms and (path / "model.gguf").exists():
            found.setdefault(golden_architecture(path), []).append(f"{name} ({', '.join(forms)})")
    return found


def formats():
    return re.findall(r'KVASIR_FORMAT\(k(\w+),', read("src/quant/formats.def"))


def tool_families():
    return re.findall(r'\.family = "([^"]+)"', read("src/grammar/tags/tool_call_syntax.cc"))


def unsupported():
    return re.findall(r'KVASIR_UNSUPPORTED\("([^"]+)", "([^"]*)", "([^"]+)"\)', read("src/model/arch/unsupported.def"))


def wrapped(names):
    return ["```", *textwrap.wrap("  ".join(names), 120, break_on_hyphens=False), "```"]


def page():
    lines = ["# Models", "", "<!-- Made by scripts/make_models_doc.py. Do not edit. -->", "",
             "`kvasir show MODEL` says of one file whether it runs and, if not, every reason. This page lists what is known.", "",
             "## Architectures", "",
             "A golden is a tiny model with random weights. Its logits and tokens agree with those of the reference",
             "implementation (`tests/engine/golden_test.cc`). Some architectures are computed by the functions of another.",
             "Trained weights are checked by the figures of [CLOSENESS.md](CLOSENESS.md).", "",
             "| architecture | `model_type` of folders | goldens | trained weights |", "|---|---|---|---|"]
    of_folders, of_goldens, functions = folder_types(), goldens(), computed_alike()
    for name in registered():
        types = ", ".join(f"`{kind}`" for kind in of_folders.get(name, []))
        same = [other for other in of_goldens if functions.get(other) and functions[other] == functions.get(name)]
        verified = ", ".join(of_goldens.get(name, [])) or (f"computed as `{same[0]}`" if same else "")
        if not verified:
            sys.exit(f"{name} has no golden, and no other architecture is computed as it is")
        lines.append(f"| `{name}` | {types} | {verified} | {TRAINED.get(name, '')} |")
    lines += ["", "## Types", "", "Every architecture reads every type:", "", *wrapped(formats()), "",
              "Folders may also be quantised by other engines ([FOLDERS.md](FOLDERS.md)).", "",
              "## Tools and thinking", "",
              "Both depend on the chat template, not on the architecture. The syntax of calls is found by rendering the",
              "template. Families that are known:", "", *wrapped(tool_families()), "",
              "## Not supported", "",
              "| architecture | nearest relative | what it needs besides |", "|---|---|---|"]
    for name, relative, lacks in unsupported():
        lines.append(f"| `{name}` | {f'`{relative}`' if relative else ''} | {lacks} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    text = page()
    if not args.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not up to date: run scripts/make_models_doc.py")


if __name__ == "__main__":
    main()
