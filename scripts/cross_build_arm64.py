#!/usr/bin/env python3
"""Cross-compiles the library for 64-bit ARM and runs its lowest layers' tests under qemu, on three processors.

usage: cross_build_arm64.py [--model MODEL.gguf]

The processors have NEON alone (cortex-a72), SDOT too (neoverse-n1), and SMMLA too (max); each must give the bits of
x86's vector kernels (tests/cases/kernels/vector_bits.txt). With --model each also answers a text with 16 greedy
tokens, which must be those of AVX2: that takes minutes, and needs the release build's kvasir_greedy_tokens.

Needs Debian's g++-aarch64-linux-gnu, and apt that knows the architecture:
  dpkg --add-architecture arm64 && apt-get update
qemu-user-static is optional. Nothing is installed: the arm64 libraries are unpacked into build/arm64-root.
Exits with 77 where something is missing, and says what.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ["libfmt-dev", "libsimdjson-dev", "libgtest-dev"]
TESTS = ["quant", "kernels", "kv"]
ISA_OF_CPU = {"cortex-a72": "neon", "neoverse-n1": "dotprod", "max": "i8mm"}
TEXT = "The capital of France is"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, cwd=ROOT, **options):
    return subprocess.run(command, cwd=cwd, check=True, **options)


def with_shared_objects(package):
    """The package and the lib* packages that it depends on."""
    answer = subprocess.run(["apt-cache", "depends", f"{package}:arm64"], capture_output=True, text=True)
    return [f"{package}:arm64", *re.findall(r"Depends: (lib\w+:arm64)", answer.stdout)]


def fetch_libraries(folder):
    """Unpacks the arm64 packages into `folder`."""
    if (folder / "usr").is_dir():
        return
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    wanted = [name for package in LIBRARIES for name in with_shared_objects(package)]
    if subprocess.run(["apt-get", "download", *wanted], cwd=packages).returncode != 0:
        skip("apt has no arm64 packages (dpkg --add-architecture arm64 && apt-get update)")
    for package in packages.glob("*.deb"):
        run("dpkg", "-x", str(package), str(folder))


def find_qemu():
    return shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")


def test_kernels(qemu, cpu, isa):
    """The kernels that a processor runs, against `ref` and against the bits of x86."""
    print(f"{cpu}: the kernels of {isa}", flush=True)
    program = ROOT / "build" / "arm64" / "bin" / "kvasir_kernels_test"
    run(qemu, "-L", "/usr/aarch64-linux-gnu", "-cpu", cpu, str(program), "--gtest_brief=1",
        f"--gtest_filter=*/{isa}:*/{isa}_*:KernelTables.*")
    listed = run(qemu, "-L", "/usr/aarch64-linux-gnu", "-cpu", cpu, str(program), "--gtest_list_tests",
                 capture_output=True, text=True).stdout
    if not re.search(rf"AreThoseOfX86/{isa}\b", listed):
        sys.exit(f"{cpu} does not run {isa}")


def greedy_tokens(command, model, isa):
    answer = run(*command, model, isa, "16", TEXT, capture_output=True, text=True)
    return answer.stdout.split()


def compare_tokens(qemu, model):
    """The greedy tokens of each processor against those of AVX2."""
    native = ROOT / "build" / "release" / "bin" / "kvasir_greedy_tokens"
    if not native.exists():
        sys.exit("there is no build/release/bin/kvasir_greedy_tokens: build that target first")
    expected = greedy_tokens([str(native)], model, "avx2")
    print(f"avx2: {' '.join(expected)}", flush=True)
    program = str(ROOT / "build" / "arm64" / "bin" / "kvasir_greedy_tokens")
    for cpu, isa in ISA_OF_CPU.items():
        tokens = greedy_tokens([qemu, "-L", "/usr/aarch64-linux-gnu", "-cpu", cpu, program], model, isa)
        print(f"{isa}: {' '.join(tokens)}", flush=True)
        if tokens != expected or len(tokens) != 16:
            sys.exit(f"{isa} gives other tokens than avx2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file whose greedy tokens are compared too")
    model = parser.parse_args().model
    if shutil.which("aarch64-linux-gnu-g++") is None:
        skip("there is no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)")
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        skip("the arm64 libraries come from apt, which is not there")
    fetch_libraries(ROOT / "build" / "arm64-root")
    run("cmake", "--preset", "arm64")
    targets = ["kvasir_engine", "kvasir_eval", *[f"kvasir_{layer}_test" for layer in TESTS]]
    if model:
        targets.append("kvasir_greedy_tokens")
    run("cmake", "--build", "build/arm64", "-j", "2", "--target", *targets)
    qemu = find_qemu()
    if qemu is None:
        print("cross-compiled; there is no qemu-aarch64 to run the tests with")
        return
    # The bits of x86 take minutes under qemu, more than CTest gives a test; they follow.
    run("ctest", "--output-on-failure", "-R", f"^({'|'.join(TESTS)})\\.", "-E", "VectorBits", cwd=ROOT / "build" / "arm64",
        env={**os.environ, "QEMU_CPU": "max"})
    for cpu, isa in ISA_OF_CPU.items():
        test_kernels(qemu, cpu, isa)
    if model:
        compare_tokens(qemu, os.path.abspath(model))


if __name__ == "__main__":
    main()
