"""The Debian package: what lintian says, what is in it, and what installing, upgrading and removing it leave on a clean
Debian.

    package_test.py

Needs root, lintian and mmdebstrap (tests/deploy/install.sh) and a Debian mirror. Exit codes: 0, 1, 77 skipped.
"""
import pathlib
import re
import subprocess
import tempfile
import unittest

from clean_root import ROOT, make_package, make_root, need, run

UNIT = "lib/systemd/system/kvasir.service"
FILES = ["usr/bin/kvasir", UNIT, "usr/lib/sysusers.d/kvasir.conf", "etc/kvasir/kvasir.toml", "var/lib/kvasir",
         "usr/share/man/man1/kvasir.1.gz", "usr/share/man/man1/kvasir-serve.1.gz",
         "usr/share/bash-completion/completions/kvasir", "usr/share/zsh/vendor-completions/_kvasir",
         "usr/share/fish/vendor_completions.d/kvasir.fish", "usr/share/doc/kvasir/copyright",
         "usr/share/doc/kvasir/changelog.gz", "usr/share/doc/kvasir/docs/OPERATIONS.md",
         "usr/share/kvasir/grafana/kvasir.json", "usr/share/kvasir/prometheus/kvasir.rules.yml"]


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = make_package()
        folder = tempfile.TemporaryDirectory(prefix="kvasir-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.tree = pathlib.Path(folder.name) / "tree"
        run("dpkg-deb", "-x", cls.package, cls.tree)

    def test_lintian_has_nothing_to_say(self):
        done = subprocess.run(["lintian", "--allow-root", "--display-info", str(self.package)], capture_output=True,
                              text=True)
        said = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:")) or " hardening-" in line]
        self.assertEqual([], said)
        self.assertIn(done.returncode, (0, 2), done.stderr)

    def test_what_is_in_it(self):
        self.assertEqual([], [name for name in FILES if not (self.tree / name).exists()])
        self.assertEqual([], [str(path) for path in self.tree.rglob("*") if path.suffix in (".a", ".h", ".cmake")])
        self.assertIn(", stripped", run("file", self.tree / "usr/bin/kvasir"))

    def test_links_of_its_documents_lead_somewhere(self):
        documents = sorted((self.tree / "usr/share/doc/kvasir").rglob("*.md"))
        names = {path.name for path in documents}
        self.assertEqual(set(), {"README.md", *(path.name for path in ROOT.glob("docs/*.md"))} - names)
        links = [(path, link.partition("#")[0]) for path in documents
                 for link in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text())]
        self.assertGreater(len(links), 20)
        self.assertEqual([], [f"{path.name}: {link}" for path, link in links if not (path.parent / link).exists()])

    def test_its_version_is_the_program_s(self):
        changelog = (ROOT / "deploy/debian/changelog").read_text()
        version = re.match(r"kvasir \((\S+)\)", changelog)[1]
        self.assertEqual(run("dpkg-deb", "-f", self.package, "Version").strip(), version)
        self.assertEqual(run(self.tree / "usr/bin/kvasir", "--version").strip(), version)

    def test_libraries_are_found_by_their_symbols(self):
        depends = run("dpkg-deb", "-f", self.package, "Depends")
        for library in ("libc6 (>= ", "libfmt", "libsimdjson", "libssl", "libsqlite3", "libedit", "libzip", "libcurl"):
            self.assertIn(library, depends)

    def test_shells_read_the_completions(self):
        run("bash", "-n", self.tree / FILES[7])
        for shell, path in (("zsh", FILES[8]), ("fish", FILES[9])):
            if subprocess.run(["which", shell], capture_output=True).returncode == 0:
                run(shell, "-n", self.tree / path)


class CleanRoot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = make_package()
        folder = tempfile.TemporaryDirectory(prefix="kvasir-root-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name) / "root"
        make_root(cls.root, cls.package)

    def inside(self, *command):
        return run("chroot", self.root, *command)

    def test_install_upgrade_remove_purge(self):
        self.installed()
        self.systemd_finds_no_fault_with_the_unit()
        self.upgraded()
        self.inside("dpkg", "--remove", "kvasir")
        self.assertTrue((self.root / "etc/kvasir/kvasir.toml").exists())
        self.assertTrue((self.root / "var/lib/kvasir/models").exists())
        self.inside("dpkg", "--purge", "kvasir")
        for path in ("etc/kvasir", "var/lib/kvasir", "usr/bin/kvasir", UNIT):
            self.assertFalse((self.root / path).exists(), path)

    def installed(self):
        self.assertIn("this host runs", self.inside("kvasir", "version"))
        self.assertEqual(self.inside("stat", "-c", "%U %G %a", "/var/lib/kvasir").split(), ["kvasir", "kvasir", "750"])
        self.assertIn("/etc/kvasir/kvasir.toml", self.inside("dpkg-query", "-W", "-f", "${Conffiles}", "kvasir"))
        self.assertEqual("", self.inside("dpkg", "--verify", "kvasir"))
        self.assertFalse((self.root / "etc/systemd/system/multi-user.target.wants/kvasir.service").exists())
        # Every setting that the file shows is one, also those that are commented out.
        settings = self.root / "etc/kvasir/kvasir.toml"
        shown = re.sub(r"(?m)^#(?=[a-z-]+ = )", "", settings.read_text())
        (self.root / "tmp/all.toml").write_text(shown)
        self.inside("env", "KVASIR_CONFIG=/tmp/all.toml", "kvasir", "config")

    def upgraded(self):
        """An operator's settings and models stay."""
        settings = self.root / "etc/kvasir/kvasir.toml"
        settings.write_text(settings.read_text() + "max-queue = 7\n")
        (self.root / "var/lib/kvasir/models").mkdir()
        self.inside("dpkg", "--install", f"/var/tmp/{self.package.name}")
        self.assertIn("max-queue = 7", settings.read_text())
        self.assertTrue((self.root / "var/lib/kvasir/models").exists())

    def systemd_finds_no_fault_with_the_unit(self):
        self.assertEqual("", self.inside("systemd-analyze", "verify", "--man=no", "kvasir.service"))
        said = self.inside("systemd-analyze", "security", "--offline=yes", "--no-pager", "kvasir.service")
        exposure = float(re.search(r"Overall exposure level for kvasir.service: ([\d.]+)", said)[1])
        print(f"systemd-analyze security: {exposure}")
        self.assertLessEqual(exposure, 2.0)


if __name__ == "__main__":
    need("cpack", "lintian", "mmdebstrap", "dpkg-deb", "file")
    unittest.main()
