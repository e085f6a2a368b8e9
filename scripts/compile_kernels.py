#!/usr/bin/env python3
"""Compiles every kernel with nvcc, and reads the PTX for arithmetic that a compiler was free to fuse.

Multiply and add fuse only where a kernel says fma_rn, which is assembly in PTX. A flag that did not reach the compiler
shows as a `fma` elsewhere, or as a `mul` or `add` without its rounding, which the last stage could fuse.

    scripts/compile_kernels.py [--cache FOLDER] [--arch 80,90,120]

With --cache a kernel whose preprocessed text has not changed is not compiled again. Exit code: 0, 1, or 77 where there
is no nvcc.
"""
import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src/backend/cuda/kernels"
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-fmad=false", f"-I{ROOT}/src", f"-I{ROOT}/include"]
ASSEMBLY = re.compile(r"// begin inline asm.*?// end inline asm", re.DOTALL)
FAULTS = [
    ("fused where no kernel says so", re.compile(r"\b(?:fma|mad)\.\w*\.?(?:f16|f32|f64)\S*")),
    ("free to be fused", re.compile(r"\b(?:mul|add|sub)\.(?:ftz\.)?(?:sat\.)?f(?:32|64)\b")),
    ("denormals are flushed", re.compile(r"\b\w+(?:\.\w+)*\.ftz\b\S*")),
    ("an approximation", re.compile(r"\b\w+\.approx\b\S*")),
    ("an atomic of floats", re.compile(r"\b(?:atom|red)\.\S*f(?:16|32|64)\b")),
]


def faults_of(ptx):
    """(what, instruction) of each fault outside of assembly."""
    text = ASSEMBLY.sub("", ptx)
    return [(what, match.group(0)) for what, rule in FAULTS for match in rule.finditer(text)]


def compile_kernel(nvcc, source, architectures, folder):
    """Compiles to an object with code for each architecture. Returns the PTX and what nvcc said."""
    oldest = architectures[0]
    codes = ",".join([f"compute_{oldest}"] + [f"sm_{each}" for each in architectures])
    done = subprocess.run([nvcc, *FLAGS, "-Werror", "all-warnings", "--keep", "--keep-dir", str(folder), "-gencode",
                           f"arch=compute_{oldest},code=[{codes}]", "-c", str(source), "-o", f"{folder}/kernel.o"],
                          capture_output=True, text=True)
    ptx = sorted(folder.glob("*.ptx"))
    return (ptx[0].read_text(encoding="utf-8") if done.returncode == 0 and ptx else None), done.stdout + done.stderr


def digest(nvcc, source, architectures):
    done = subprocess.run([nvcc, *FLAGS, "-E", str(source)], capture_output=True)
    version = subprocess.run([nvcc, "--version"], capture_output=True).stdout
    rules = pathlib.Path(__file__).read_bytes()
    return hashlib.sha256(done.stdout + version + rules + repr(architectures).encode()).hexdigest()


def check(nvcc, source, architectures, cache):
    """The faults of a kernel as lines."""
    mark = cache / f"{source.name}.sha256" if cache else None
    now = digest(nvcc, source, architectures) if cache else None
    if mark and mark.exists() and mark.read_text() == now:
        return []
    with tempfile.TemporaryDirectory() as folder:
        ptx, said = compile_kernel(nvcc, source, architectures, pathlib.Path(folder))
    if ptx is None:
        return [f"{source.name}: nvcc fails\n{said}"]
    faults = sorted({f"{source.name}: {what}: {instruction}" for what, instruction in faults_of(ptx)})
    if mark and not faults:
        cache.mkdir(parents=True, exist_ok=True)
        mark.write_text(now)
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--arch", default="80,90,120")
    options = parser.parse_args()
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("no nvcc here")
        return 77
    sources = sorted(KERNELS.glob("*.cu"))
    faults = [fault for source in sources for fault in check(nvcc, source, options.arch.split(","), options.cache)]
    print("\n".join(faults) or f"{len(sources)} kernels compiled for {options.arch}, and nothing fuses but fma_rn")
    return 1 if faults or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
