"""Fails unless a library exports just the functions that a header declares: symbols_test.py LIBRARY HEADER NM."""
import pathlib
import re
import subprocess
import sys


def main():
    library, header, nm = sys.argv[1:]
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(encoding="utf-8"), flags=re.DOTALL)
    declared = set(re.findall(r"\b(kvasir_\w+)\(", text))
    shown = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in shown.splitlines() if len(line.split()) == 3}
    print(f"{len(declared)} functions declared; exported but not declared: {sorted(exported - declared)}; "
          f"declared but not exported: {sorted(declared - exported)}")
    return 0 if declared and exported == declared else 1


if __name__ == "__main__":
    sys.exit(main())
