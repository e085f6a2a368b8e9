#!/usr/bin/env python3
"""Cross-compiles for 64-bit ARM: runs the lowest layers' tests under qemu on three processors, or makes the package.

usage: cross_build_arm64.py [--model MODEL.gguf]
       cross_build_arm64.py --deb

The processors have NEON alone (cortex-a72), SDOT too (neoverse-n1), and SMMLA too (max); each must give the bits of
x86's vector kernels (tests/cases/kernels/vector_bits.txt). With --model each also answers a text with 16 greedy
tokens, which must be those of AVX2: that takes minutes, and needs the release build's kvasir_greedy_tokens.

--deb compiles the program and makes build/arm64/kvasir_*_arm64.deb. tests/deploy/arm64_test.py tries it.

Needs apt and Debian's g++-aarch64-linux-gnu, protobuf-compiler and protobuf-compiler-grpc. qemu-user-static is optional
without --deb, which needs dpkg-dev too. Nothing is installed: the arm64 libraries are unpacked into build/arm64-root.
Exits with 77 where something is missing, and says what.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import debian_root

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "arm64"
SYSROOT = ROOT / "build" / "arm64-root"
LIBRARIES = ["libfmt-dev", "libsimdjson-dev", "libboost-dev", "libcli11-dev", "libtomlplusplus-dev", "libzip-dev",
             "libcurl4-openssl-dev", "libssl-dev", "libsqlite3-dev", "libedit-dev", "libgrpc++-dev", "libprotobuf-dev",
             "libgtest-dev"]
TESTS = ["quant", "kernels", "kv"]
ISA_OF_CPU = {"cortex-a72": "neon", "neoverse-n1": "dotprod", "max": "i8mm"}
TEXT = "The capital of France is"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, cwd=ROOT, **options):
    return subprocess.run(command, cwd=cwd, check=True, **options)


def fetch_libraries():
    """Unpacks the arm64 libraries, and links this system's plugins of protoc where gRPC's CMake files look for them."""
    plugins = list(pathlib.Path("/usr/bin").glob("grpc_*_plugin"))
    if shutil.which("protoc") is None or not plugins:
        skip("there is no protoc with gRPC's plugin (Debian: protobuf-compiler, protobuf-compiler-grpc)")
    try:
        debian_root.fetch(SYSROOT, LIBRARIES, "arm64")
    except debian_root.NoPackages as missing:
        skip(f"no libraries of arm64: {missing}")
    for plugin in plugins:
        link = SYSROOT / "usr/bin" / plugin.name
        if not link.is_symlink():
            link.symlink_to(plugin)


def build(*targets):
    run("cmake", "--preset", "arm64")
    run("cmake", "--build", str(BUILD), "-j", str(os.cpu_count()), "--target", *targets)


def make_package():
    build("kvasir", "kvasir_system_files")
    for old in BUILD.glob("kvasir_*.deb"):
        old.unlink()
    run("cpack", "-G", "DEB", cwd=BUILD)


def find_qemu():
    return shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")


def test_kernels(qemu, cpu, isa):
    """The kernels that a processor runs, against `ref` and against the bits of x86."""
    print(f"{cpu}: the kernels of {isa}", flush=True)
    program = BUILD / "bin" / "kvasir_kernels_test"
    run(qemu, "-L", str(SYSROOT), "-cpu", cpu, str(program), "--gtest_brief=1",
        f"--gtest_filter=*/{isa}:*/{isa}_*:KernelTables.*")
    listed = run(qemu, "-L", str(SYSROOT), "-cpu", cpu, str(program), "--gtest_list_tests",
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
    program = str(BUILD / "bin" / "kvasir_greedy_tokens")
    for cpu, isa in ISA_OF_CPU.items():
        tokens = greedy_tokens([qemu, "-L", str(SYSROOT), "-cpu", cpu, program], model, isa)
        print(f"{isa}: {' '.join(tokens)}", flush=True)
        if tokens != expected or len(tokens) != 16:
            sys.exit(f"{isa} gives other tokens than avx2")


def test_on_processors(qemu, model):
    # The bits of x86 take minutes under qemu, more than CTest gives a test; they follow.
    run("ctest", "--output-on-failure", "-R", f"^({'|'.join(TESTS)})\\.", "-E", "VectorBits", cwd=BUILD,
        env={**os.environ, "QEMU_CPU": "max"})
    for cpu, isa in ISA_OF_CPU.items():
        test_kernels(qemu, cpu, isa)
    if model:
        compare_tokens(qemu, os.path.abspath(model))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file whose greedy tokens are compared too")
    parser.add_argument("--deb", action="store_true", help="make the Debian package, and run no tests")
    args = parser.parse_args()
    qemu = find_qemu()
    if platform.machine() == "aarch64":
        skip("this is a machine with 64-bit ARM: it builds and tests as any other does")
    if shutil.which("aarch64-linux-gnu-g++") is None:
        skip("there is no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)")
    if args.deb and qemu is None:
        skip("the manual pages are what the program prints, and there is no qemu-aarch64 (Debian: qemu-user-static)")
    if args.deb and shutil.which("dpkg-shlibdeps") is None:
        skip("there is no dpkg-shlibdeps (Debian: dpkg-dev)")
    fetch_libraries()
    if args.deb:
        make_package()
        return
    build("kvasir_engine", "kvasir_eval", *[f"kvasir_{layer}_test" for layer in TESTS],
          *(["kvasir_greedy_tokens"] if args.model else []))
    if qemu is None:
        print("cross-compiled; there is no qemu-aarch64 to run the tests with")
        return
    test_on_processors(qemu, args.model)


if __name__ == "__main__":
    main()
