"""Installs the package with pip in a new virtual environment and tests what is installed: run_wheel.py C++-COMPILER."""
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parents[1]


def run(*command: str, cwd: str, **environment: str) -> None:
    print("+", *command, flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=cwd, env={**clean, **environment}, check=True)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kvasir-wheel-") as folder:
        run(sys.executable, "-m", "venv", "venv", cwd=folder)
        python = str(pathlib.Path(folder) / "venv" / "bin" / "python")
        # The compiler of this build: another name for it would miss what a cache has.
        run(python, "-m", "pip", "install", "--disable-pip-version-check", "-q", f"{ROOT}[test]", cwd=folder,
            CXX=sys.argv[1])
        tests = sorted(str(path) for path in TESTS.glob("*.py") if path.name not in ("run_package.py", "run_wheel.py"))
        run(python, "-m", "mypy", "--strict", "--config-file", os.devnull, *tests, cwd=folder)
        run(python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(TESTS),
            f"--ignore={TESTS / 'train'}", cwd=folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
