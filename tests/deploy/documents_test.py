"""docs/OPERATIONS.md tells the truth about names: its links and paths exist, its verbs, flags and settings are the
program's, and the unit's times fit the server's.

    documents_test.py
"""
import json
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))
DOCUMENT = ROOT / "docs/OPERATIONS.md"
UNIT = (ROOT / "deploy/systemd/kvasir.service").read_text()
SETTINGS = (ROOT / "deploy/kvasir.toml").read_text()
FOLDERS = ("bench", "cmake", "deploy", "docs", "scripts", "src", "tests")


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def number(pattern, text):
    return int(re.search(pattern, text, re.MULTILINE)[1])


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = DOCUMENT.read_text()
        prose = re.sub(r"```.*?```", "", cls.text, flags=re.DOTALL)
        cls.code = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
        cls.blocks = "\n".join(re.findall(r"```.*?```", cls.text, flags=re.DOTALL))
        shown = subprocess.run([BINARY, "config", "--json"], capture_output=True, text=True, check=True,
                               env={"KVASIR_CONFIG": ""})
        cls.settings = json.loads(shown.stdout)

    def test_links_lead_somewhere(self):
        links = re.findall(r"\]\(([^)]+)\)", self.text)
        self.assertGreater(len(links), 5)
        for link in links:
            path, _, part = link.partition("#")
            target = (DOCUMENT.parent / path).resolve() if path else DOCUMENT
            self.assertTrue(target.exists(), link)
            if part:
                titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
                self.assertIn(part, map(anchor, titles))

    def test_paths_of_the_repository_exist(self):
        named = [word for word in self.code + re.findall(r"\S+", self.blocks)
                 if word.split("/")[0] in FOLDERS and "/" in word]
        self.assertGreater(len(named), 1)
        self.assertEqual([], [path for path in named if not (ROOT / path).exists()])

    def test_verbs_and_flags_are_the_program_s(self):
        verbs = {setting["verb"].split(".")[0] for setting in self.settings}
        flags = {setting["flag"] for setting in self.settings}
        commands = "\n".join(self.code) + self.blocks
        used = set(re.findall(r"\bkvasir (?!=)([a-z]+)(?= |$|\n)", commands))
        documented = subprocess.run([BINARY, "man"], capture_output=True, text=True, check=True).stdout
        verbs |= set(re.findall(r"(?m)^\.B ([a-z]+)$", documented))
        self.assertLess({"serve", "pull", "health", "keys"}, used | {"serve"})
        self.assertEqual(set(), used - verbs)
        words = [word for line in re.findall(r"(?m)^.*\bk(?:vasir|eys add) .*$", commands) for word in line.split()]
        self.assertEqual(set(), {word[2:] for word in words if re.match("--[a-z]", word)} - flags - {"now", "from-file"})

    def test_settings_are_the_program_s(self):
        flags = {setting["flag"] for setting in self.settings if setting["verb"] in ("", "serve")}
        named = {found[1] for word in self.code if (found := re.fullmatch(r"([a-z-]+) = .*", word))}
        setting = r"(max|kv|tls|ttft|drain|api|request|public)-[a-z-]+"
        named |= {word for word in self.code if re.fullmatch(setting, word)}
        self.assertGreater(len(named), 10)
        self.assertEqual(set(), named - flags)
        shown = set(re.findall(r"(?m)^#?([a-z-]+) = ", SETTINGS))
        self.assertEqual(set(), shown - flags)

    def test_the_unit_s_times_fit_the_server_s(self):
        drain_s = number(r"^drain-timeout = (\d+)", SETTINGS)
        grace_s = number(r"kCancelGrace\{(\d+)\}", (ROOT / "src/cli/serve.cc").read_text())
        [default] = [setting["value"] for setting in self.settings if setting["flag"] == "drain-timeout"]
        self.assertEqual(drain_s, int(default))
        stop_s = number(r"^TimeoutStopSec=(\d+)$", UNIT)
        self.assertGreater(stop_s, drain_s + grace_s)
        for line in (f"`TimeoutStopSec={stop_s}`", f"`drain-timeout` ({drain_s} s)", f"and {grace_s} s for a step",
                     "`WatchdogSec=" + re.search(r"^WatchdogSec=(.*)$", UNIT, re.MULTILINE)[1] + "`"):
            self.assertIn(line, self.text)


if __name__ == "__main__":
    unittest.main()
