"""The Debian package as CPack makes it, and a Debian without anything else to install it in. Not a test itself."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KVASIR_BUILD", ROOT / "build/release"))
SUITE = "bookworm"
SKIPPED = 77


def need(*tools):
    """Skips without root and all tools."""
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(SKIPPED)
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"skipped: no {tool} (tests/deploy/install.sh)")
            sys.exit(SKIPPED)


def run(*command, **options):
    """The command's output; fails with all of it unless the command exits with 0."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def make_package():
    """The path of the .deb; the program and the files beside it must have been built."""
    for old in BUILD.glob("kvasir_*.deb"):
        old.unlink()
    run("cpack", "-G", "DEB", cwd=BUILD)
    [package] = BUILD.glob("kvasir_*.deb")
    return package


def make_root(folder, package, *packages):
    """A minimal Debian with `packages` in `folder`, in which apt-get has installed `package` and what it depends on."""
    hooks = [f"copy-in {package} /var/tmp",
             f'chroot "$1" apt-get install -q -y --no-install-recommends /var/tmp/{package.name}']
    run("mmdebstrap", "--quiet", "--variant=minbase", *([f"--include={','.join(packages)}"] if packages else []),
        *[f"--customize-hook={hook}" for hook in hooks], SUITE, folder)
