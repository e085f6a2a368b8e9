#!/usr/bin/env python3
"""Fails where a kernel goes round its door, src/backend/cuda/simt/simt.h.

The kernels of src/backend/cuda/kernels run on a device and on the host executor. The executor only sees what passes the
door. So the folder may name no intrinsic or keyword of CUDA, no `asm`, no atomic, no launch from a kernel, nothing of the
standard library but integer types, and no function of the C library. It includes plain headers only.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "src/backend/cuda/kernels"
INCLUDES = re.compile(r"backend/cuda/(simt/simt|kernels/\w+)\.h|kernels/(packed|activation|w8a8|table)\.h|quant/(dtype|formats)\.h|"
                      r"kv/cells/cell\.h|kvasir/ids\.h")
STANDARD_HEADERS = {"cstdint", "cstddef"}
STANDARD_NAMES = r"u?int(?:8|16|32|64)_t|size_t|byte|is_same_v"
RULES = [
    ("an intrinsic or a keyword of the compiler", re.compile(r"\b__\w+")),
    ("assembly", re.compile(r"\basm\b")),
    ("an atomic: no order of threads may show in a sum", re.compile(r"\batomic\w*", re.IGNORECASE)),
    ("a launch outside of the door", re.compile(r"<<<")),
    ("CUDA's own name", re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize|cuda[A-Z]\w*|cu[A-Z]\w*|nv\w+::|"
                                    r"u?(?:char|short|int|long|longlong)[1234]|(?:float|double)[1234]|half2|dim3)\b|\bhalf\s+\w+\s*[;={(,)]")),
    ("a name that the preprocessor makes, or opens to all", re.compile(r"##|\busing\s+namespace\b")),
    ("a name of the standard library", re.compile(rf"\bstd::(?!(?:{STANDARD_NAMES})\b)\w+")),
    ("a function of the C library", re.compile(r"(?<![\w.>])(?<!\w::)(?:fmaf?|exp2?f?|expm1f?|log(?:2|10|1p)?f?|r?sqrtf?|cbrtf?|fabsf?|fminf?|fmaxf?|"
                                              r"roundf?|rintf?|floorf?|ceilf?|truncf?|fmodf?|tanhf?|sinf?|cosf?|tanf?|erff?|powf?|"
                                              r"mem(?:cpy|set|move)|printf|malloc|free|abs|min|max|assert|clock(?:64)?)\s*\(")),
    ("memory that is neither an argument nor shared", re.compile(r"\b(?:new|delete|thread_local|volatile)\b|^\s*static (?!constexpr|KVASIR_DEVICE|_?assert)")),
]
COMMENT = re.compile(r"""//.*|(?<!\w)'(?:\\.|[^'\\])'|"(?:\\.|[^"\\])*\"""")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def faults_of(text):
    """(line number, what) of each fault."""
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if include:
            mark, name = include.groups()
            if not (name in STANDARD_HEADERS if mark == "<" else INCLUDES.fullmatch(name) or name == "quant/formats.def"):
                yield number, f"an include that is no plain header: {name}"
            continue
        line = COMMENT.sub("", line)
        for what, rule in RULES:
            match = rule.search(line)
            if match:
                yield number, f"{what}: {match.group(0).strip()}"


def check(root=ROOT):
    faults, files = [], 0
    for path in sorted((root / FOLDER).rglob("*")):
        if path.suffix not in {".cu", ".h"}:
            continue
        files += 1
        faults += [f"{path.relative_to(root)}:{number}: {what}" for number, what in faults_of(path.read_text(encoding="utf-8"))]
    return faults, files


def main():
    faults, files = check()
    if files == 0:
        faults.append(f"{FOLDER} has no kernels")
    print("\n".join(faults) or f"{files} files, nothing goes round the door")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
