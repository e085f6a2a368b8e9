"""The command `kvasir` of a wheel: starts the program that the wheel brings."""
import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).resolve().parent / "bin" / "kvasir"


def main() -> None:
    """Becomes the program, with the same words. Exit code 5: the package was installed without it."""
    if not PROGRAM.exists():
        sys.exit(_missing())
    # `kvasir pull` looks for pip by the name python3: this interpreter's comes first.
    own = os.path.dirname(os.path.abspath(sys.executable))
    os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    os.execv(PROGRAM, ["kvasir", *sys.argv[1:]])


def _missing() -> int:
    print("kvasir: this package has the Python module alone; the wheels of scripts/release.sh have the program too",
          file=sys.stderr)
    return 5


if __name__ == "__main__":
    main()
