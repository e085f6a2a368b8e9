"""The container file builds and runs: without a registry, on a base that mmdebstrap makes.

    container_test.py [--store FOLDER] [--package build|dist]

With `--package dist` it takes the package that scripts/release.sh has left in dist/; the default compiles one. `--store` keeps the images there for the next run. With ccache in the path its cache serves the build inside.
Needs root, buildah, podman and mmdebstrap (tests/deploy/install.sh) and a Debian mirror. Exit codes: 0, 1, 77 skipped.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

from clean_root import ROOT, SUITE, need, run

MODELS = ROOT / "tests/cases/models"
BASE, IMAGE = "localhost/kvasir-base", "localhost/kvasir-test"
TIME_LIMIT_S = 120


class Container(unittest.TestCase):
    store = None
    package = "build"
    RUNTIME = ("--runtime=runc", "--cgroup-manager=cgroupfs")  # works with control groups of either version

    @classmethod
    def setUpClass(cls):
        if cls.store is None:
            folder = tempfile.TemporaryDirectory(prefix="kvasir-container-")
            cls.addClassCleanup(folder.cleanup)
            cls.store = pathlib.Path(folder.name)
        if BASE not in cls.buildah("images", "--format", "{{.Name}}"):
            cls.make_base()
        cache = shutil.which("ccache") and run("ccache", "--get-config", "cache_dir").strip()
        cls.buildah("build", "--layers", "--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={BASE}",
                    "--build-arg", f"PACKAGE={cls.package}",
                    *(["--volume", f"{cache}:/ccache"] if cache else []), "--tag", IMAGE,
                    "--file", ROOT / "deploy/container/Containerfile", ROOT)
        cls.settings = json.loads(cls.buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]

    @classmethod
    def buildah(cls, *args):
        return run("buildah", *cls.places(), *args)

    @classmethod
    def places(cls):
        return ("--root", cls.store / "store", "--runroot", cls.store / "run", "--storage-driver", "overlay")

    @classmethod
    def make_base(cls):
        archive = cls.store / "base.tar"
        run("mmdebstrap", "--quiet", "--variant=minbase", "--include=ccache", SUITE, archive)
        container = cls.buildah("from", "scratch").strip()
        cls.buildah("add", "--quiet", container, archive, "/")
        variables = ("CCACHE_DIR=/ccache", "CCACHE_BASEDIR=/src", "CCACHE_NOHASHDIR=1",
                     "CMAKE_CXX_COMPILER_LAUNCHER=ccache")
        cls.buildah("config", *[word for variable in variables for word in ("--env", variable)], container)
        cls.buildah("commit", "--quiet", "--rm", container, BASE)
        archive.unlink()

    def podman(self, *args):
        return run("podman", *self.places(), *self.RUNTIME, *args)

    def run_image(self, *args):
        """With limits that a machine of tests has too; without systemd the check for health is made by hand."""
        return self.podman("run", "--network=host", "--no-healthcheck", "--ulimit=nofile=4096:4096",
                           "--ulimit=nproc=4096:4096", *args)

    def test_the_image_says_how_it_runs(self):
        self.assertEqual(self.settings["User"], "10001:10001")
        self.assertEqual(self.settings["Entrypoint"], ["/usr/bin/kvasir"])
        self.assertEqual(self.settings["Healthcheck"]["Test"], ["CMD", "/usr/bin/kvasir", "health"])

    def test_it_serves_with_a_read_only_root_and_without_rights(self):
        name = f"kvasir-test-{os.getpid()}"
        self.run_image("--detach", "--name", name, "--read-only", "--cap-drop=all",
                       "--security-opt=no-new-privileges", "--env", "KVASIR_PORT=0",
                       "--volume", f"{MODELS}:/models:ro", IMAGE, "serve", "/models/llama-f32.gguf")
        self.addCleanup(self.podman, "rm", "--force", "--time=0", name)
        deadline = time.monotonic() + TIME_LIMIT_S
        while "http://" not in (log := self.podman("logs", name)):
            self.assertLess(time.monotonic(), deadline, log)
            time.sleep(0.1)
        port = log.split("http://")[1].split()[0].rsplit(":", 1)[1]
        healthy = ("exec", "--env", f"KVASIR_PORT={port}", name, *self.settings["Healthcheck"]["Test"][1:])
        self.assertIn("ready", self.podman(*healthy))
        self.assertEqual(self.podman("exec", name, "id", "-u").strip(), "10001")
        with self.assertRaisesRegex(AssertionError, "Read-only file system"):
            self.podman("exec", name, "touch", "/etc/kvasir/x")
        self.podman("stop", "--time=60", name)
        self.assertEqual(self.podman("inspect", "--format", "{{.State.ExitCode}}", name).strip(), "0")

    def test_it_has_pip_for_pull_and_no_compiler(self):
        said = self.run_image("--rm", "--entrypoint=sh", IMAGE, "-c",
                              "python3 -m pip --version; command -v g++ || echo none")
        self.assertIn("pip ", said)
        self.assertTrue(said.endswith("none\n"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=pathlib.Path)
    parser.add_argument("--package", choices=["build", "dist"], default="build")
    options, rest = parser.parse_known_args()
    need("buildah", "podman", "runc", "mmdebstrap")
    Container.store = options.store
    Container.package = options.package
    unittest.main(argv=[sys.argv[0], *rest])
