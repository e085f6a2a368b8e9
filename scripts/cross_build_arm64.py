#!/usr/bin/env python3
"""Cross-compiles the library for 64-bit ARM (`ref` kernels alone) and runs its lowest layers' tests under qemu.

Needs Debian's g++-aarch64-linux-gnu, and apt that knows the architecture:
  dpkg --add-architecture arm64 && apt-get update
qemu-user-static is optional. Nothing is installed: the arm64 libraries are unpacked into build/arm64-root.
Exits with 77 where something is missing, and says what.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ["libfmt-dev", "libsimdjson-dev", "libgtest-dev"]
TESTS = ["quant", "kernels", "kv"]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, cwd=ROOT):
    subprocess.run(command, cwd=cwd, check=True)


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


def main():
    if shutil.which("aarch64-linux-gnu-g++") is None:
        skip("there is no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)")
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        skip("the arm64 libraries come from apt, which is not there")
    fetch_libraries(ROOT / "build" / "arm64-root")
    run("cmake", "--preset", "arm64")
    targets = ["kvasir_engine", "kvasir_eval", *[f"kvasir_{layer}_test" for layer in TESTS]]
    run("cmake", "--build", "build/arm64", "-j", "2", "--target", *targets)
    if shutil.which("qemu-aarch64-static") is None and shutil.which("qemu-aarch64") is None:
        print("cross-compiled; there is no qemu-aarch64 to run the tests with")
        return
    run("ctest", "--output-on-failure", "-R", f"^({'|'.join(TESTS)})\\.", cwd=ROOT / "build" / "arm64")


if __name__ == "__main__":
    main()
