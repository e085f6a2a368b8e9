"""Debian packages of another architecture, unpacked into a folder. Not a program.

apt keeps a state of its own inside the folder. So neither root is needed, nor does this system learn the architecture.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess

METADATA = ("symbols", "shlibs")  # by which dpkg-shlibdeps finds the package of a library


class NoPackages(Exception):
    """apt cannot be used, or has not all of the packages."""


def identity(package):
    """A package's name; the hash of one that is a file."""
    path = pathlib.Path(package)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix == ".deb" else package


def apt_get(folder, architecture, *words):
    state = folder / "apt"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    settings = [f"APT::Architecture={architecture}", f"APT::Architectures::={architecture}", f"Dir::State={state}",
                f"Dir::State::status={state}/status", f"Dir::Cache={state}", "APT::Sandbox::User="]
    done = subprocess.run(["apt-get", "-q", "-y", *[word for setting in settings for word in ("-o", setting)], *words],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise NoPackages(f"apt-get {' '.join(words)}: {done.stdout}{done.stderr}".strip())


def unpack(package, folder):
    """Its files, and its metadata behind that of the packages before."""
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    control = subprocess.run(["dpkg", "--ctrl-tarfile", package], check=True, capture_output=True).stdout
    (folder / "DEBIAN").mkdir(exist_ok=True)
    for name in METADATA:
        text = subprocess.run(["tar", "-xO", f"./{name}"], input=control, capture_output=True).stdout
        with open(folder / "DEBIAN" / name, "ab") as file:
            file.write(text)


def keep_links_inside(folder):
    """Links to absolute paths lead to the same files of the folder: a linker would take static libraries instead."""
    for link in folder.rglob("*"):
        if link.is_symlink() and (target := os.readlink(link)).startswith("/"):
            inside = os.path.relpath(folder / target.lstrip("/"), link.parent)
            link.unlink()
            link.symlink_to(inside)


def fetch(folder, packages, architecture):
    """Has `folder` hold the packages (names, or paths of .deb files) and all that they depend on, unpacked. A folder
    that holds them already is left as it is. Raises NoPackages.
    """
    wanted = "\n".join([architecture, *map(identity, packages)])
    made = folder / "packages.txt"
    if made.exists() and made.read_text() == wanted:
        return
    if any(shutil.which(tool) is None for tool in ("apt-get", "dpkg", "tar")):
        raise NoPackages("they come from Debian's apt, which is not there")
    shutil.rmtree(folder, ignore_errors=True)
    apt_get(folder, architecture, "update")
    apt_get(folder, architecture, "--download-only", "--no-install-recommends", "install", *map(str, packages))
    local = [pathlib.Path(package) for package in packages if pathlib.Path(package).suffix == ".deb"]
    for package in [*sorted((folder / "apt/archives").glob("*.deb")), *local]:
        unpack(package, folder)
    shutil.rmtree(folder / "apt")
    keep_links_inside(folder)
    made.write_text(wanted)
