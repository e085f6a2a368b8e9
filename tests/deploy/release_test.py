"""What scripts/release.sh makes, on Debians with nothing else: a wheel on the two newest, the package on the older. Each
goes from the installation to the first answer, its model included, within a minute.

    release_test.py

Needs root, mmdebstrap, dpkg-dev, file and what pip needs to fetch a model; KVASIR_DIST names a folder that
release.sh has made, else it is made here. Exit codes: 0, 1, 77 skipped.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from clean_root import ROOT, need, run

SUITES = ["bookworm", "trixie"]
BAR_S = 60  # from the start of the installation to the answer
MODEL = "smollm2:135m"
QUESTION = "Name three primary colours."
# What lets pip reach its index from the root as it does from here.
HOST_FILES = ["/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"]


def folder_for(case):
    folder = tempfile.TemporaryDirectory(prefix="kvasir-release-")
    case.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dist = pathlib.Path(os.environ.get("KVASIR_DIST", ROOT / "dist"))
        if "KVASIR_DIST" not in os.environ:
            run(ROOT / "scripts/release.sh")

    def test_sums_are_those_of_the_files(self):
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.dist)

    def test_every_wheel_is_for_glibc_2_36(self):
        wheels = [path.name for path in self.dist.glob("*.whl")]
        self.assertNotEqual([], wheels)
        for name in wheels:
            self.assertTrue(name.endswith("manylinux_2_36_x86_64.whl"), name)  # older tags that hold too stand before it

    def test_a_wheel_answers_on_bare_roots(self):
        for suite in SUITES:
            with self.subTest(suite):
                root = self.root_of(suite, "python3", "python3-venv")
                shutil.copytree(self.dist, root / "dist")
                begin = time.monotonic()
                self.inside(root, "python3", "-m", "venv", "/v")
                self.inside(root, "/v/bin/pip", "install", "-q", "--no-index", "--find-links", "/dist", "kvasir")
                self.answers(root, "/v/bin/kvasir", begin, f"wheel on {suite}")
                said = self.inside(root, "/v/bin/python", "-c", "import kvasir; llm = kvasir.LLM('%s'); print(llm.chat("
                                   "[{'role': 'user', 'content': '%s'}], temperature=0, max_tokens=8).text)"
                                   % (MODEL, QUESTION))
                self.assertIn("primary colours", said)

    def test_the_package_answers_on_a_bare_root(self):
        root = self.root_of(SUITES[0], "python3", "python3-pip")
        [package] = self.dist.glob(f"*_{run('dpkg', '--print-architecture').strip()}.deb")
        shutil.copy(package, root / "var/tmp")
        begin = time.monotonic()
        self.inside(root, "apt-get", "update", "-q")
        self.inside(root, "apt-get", "install", "-q", "-y", "--no-install-recommends", f"/var/tmp/{package.name}")
        self.answers(root, "kvasir", begin, f"package on {SUITES[0]}")

    def answers(self, root, kvasir, begin, name):
        self.inside(root, kvasir, "pull", MODEL)
        said = self.inside(root, kvasir, "run", MODEL, "--temperature", "0", "--max-tokens", "16", QUESTION)
        seconds = time.monotonic() - begin
        print(f"{name}: the first answer after {seconds:.0f} s", flush=True)
        self.assertIn("primary colours", said)
        self.assertLess(seconds, BAR_S)

    def root_of(self, suite, *packages):
        root = folder_for(self) / "root"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", suite, root)
        for name in HOST_FILES:
            if pathlib.Path(name).is_file():
                (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(name, root / name[1:])
        for name in ("proc", "dev"):
            run("mount", "--rbind", f"/{name}", root / name)
            self.addCleanup(subprocess.run, ["umount", "-l", str(root / name)])
        return root

    def inside(self, root, *command):
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and name != "PIP_FIND_LINKS"}
        return run("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **pip})


if __name__ == "__main__":
    need("mmdebstrap", "dpkg-shlibdeps", "file")
    unittest.main()
