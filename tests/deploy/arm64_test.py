"""The Debian package for 64-bit ARM: what is in it beside the one for this machine, and its program under qemu, with no
libraries but those that the package asks for.

    arm64_test.py

Needs what scripts/cross_build_arm64.py --deb does, a Debian mirror and a pulled smollm2:135m. Exit codes: 0, 1, 77
skipped.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
import urllib.request

os.environ.setdefault("KVASIR_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/kvasir"))
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS.parent / "scripts")]
import debian_root  # noqa: E402
from clean_root import ROOT, SKIPPED, make_package, run  # noqa: E402
from command_line import BINARY, DONE, LLAMA, MODELS, CommandLineTest  # noqa: E402
from cross_build_arm64 import BUILD, ISA_OF_CPU, TEXT, find_qemu  # noqa: E402

ARM_ROOT = ROOT / "build" / "arm64-installed"
PROGRAM = "usr/bin/kvasir"
REAL = "smollm2:135m"
EMULATION_LIMIT_S = 900
POOREST_FIRST = ["ref", "neon", "dotprod", "i8mm"]


def model_path(name):
    """Where a catalogue model is; None unless it was pulled."""
    return next((model["path"] for model in json.loads(run(BINARY, "list", "--json")) if model["name"] == name
                 and model["pulled"]), None)


def tree(package, folder):
    run("dpkg-deb", "-x", package, folder)
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}


def fields(package):
    """The control file, without what differs between machines."""
    text = run("dpkg-deb", "-f", package)
    return re.sub(r"(?m)^(Depends|Installed-Size|Architecture): .*\n", "", text)


def libraries(package):
    """The names of the packages that it depends on."""
    return sorted(name.split()[0] for name in run("dpkg-deb", "-f", package, "Depends").split(", "))


def on_processor(cpu):
    return [find_qemu(), "-cpu", cpu, "-L", str(ARM_ROOT), str(ARM_ROOT / PROGRAM)]


class Arm64(CommandLineTest):
    @classmethod
    def setUpClass(cls):
        cls.native = make_package()
        [cls.package] = BUILD.glob("kvasir_*_arm64.deb")
        # Packages of Debian alone: what this one fails to ask for is not there.
        debian_root.fetch(ARM_ROOT, [cls.package], "arm64")

    def printed(self, *args, cpu=None):
        """What the program prints: the package's on an emulated processor, or this machine's."""
        return run(*(on_processor(cpu) if cpu else [BINARY]), *args, env=self.environment(), cwd=self.folder,
                   timeout=EMULATION_LIMIT_S)

    def tokens(self, model, num_tokens, cpu=None):
        answer = json.loads(self.printed("run", model, "--raw", "--temperature", "0", "--max-tokens", num_tokens,
                                         "--json", TEXT, cpu=cpu))
        return answer["token_ids"]

    def test_files_are_those_of_this_machine_s_package(self):
        native, arm = (tree(package, self.folder / name)
                       for package, name in ((self.native, "native"), (self.package, "arm")))
        self.assertEqual([*native], [*arm])
        differ = [name for name in arm if arm[name].is_file() and arm[name].read_bytes() != native[name].read_bytes()]
        self.assertEqual([PROGRAM], differ)
        kind = run("file", arm[PROGRAM])
        for word in ("ARM aarch64", "pie executable", ", stripped"):
            self.assertIn(word, kind)

    def test_it_asks_for_the_same_libraries(self):
        self.assertEqual(run("dpkg-deb", "-f", self.package, "Architecture").strip(), "arm64")
        self.assertEqual(fields(self.native), fields(self.package))
        self.assertEqual(libraries(self.native), libraries(self.package))
        self.assertGreater(len(libraries(self.package)), 10)

    def test_its_version(self):
        self.assertEqual(self.printed("--version", cpu="max"), self.printed("--version"))

    def test_doctor_names_the_best_instruction_set(self):
        for cpu, isa in ISA_OF_CPU.items():
            with self.subTest(cpu):
                said = json.loads(self.printed("doctor", "--json", cpu=cpu))
                self.assertEqual(said["isas"], POOREST_FIRST[POOREST_FIRST.index(isa)::-1])
                self.assertEqual(said["isa"], isa)

    def test_tokens_are_those_of_this_machine(self):
        models = [path for path in sorted(MODELS.glob("*.gguf")) if "no-tokenizer" not in path.name]
        self.assertGreater(len(models), 5)
        for path in models:
            expected = self.tokens(path, 16)
            self.assertGreater(len(expected), 0)
            for cpu in ISA_OF_CPU:
                with self.subTest(path.stem, cpu=cpu):
                    self.assertEqual(self.tokens(path, 16, cpu), expected)

    def test_tokens_of_a_real_model_are_those_of_this_machine(self):
        path = model_path(REAL)
        expected = self.tokens(path, 8)
        self.assertEqual(len(expected), 8)
        self.assertEqual(self.tokens(path, 8, "max"), expected)

    def completion(self, command):
        """The choices and the usage that a server answers with."""
        self.command = command
        process = self.start("serve", LLAMA, "--port", "0")
        lines = [process.stdout.readline().decode() for _ in range(2)]
        url = re.match(r"https?://\S+", lines[1])[0]
        body = {"prompt": TEXT, "max_tokens": 16, "temperature": 0, "ignore_eos": True}
        request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=EMULATION_LIMIT_S) as answer:
            said = json.load(answer)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(EMULATION_LIMIT_S), DONE)
        return said["choices"], said["usage"]

    def test_a_server_answers_alike(self):
        expected = self.completion([BINARY])
        self.assertEqual(expected[1]["completion_tokens"], 16)
        self.assertEqual(self.completion(on_processor("max")), expected)


if __name__ == "__main__":
    if model_path(REAL) is None:
        print(f"skipped: no {REAL} (kvasir pull {REAL})")
        sys.exit(SKIPPED)
    made = subprocess.run([sys.executable, str(ROOT / "scripts/cross_build_arm64.py"), "--deb"])
    if made.returncode != 0:
        sys.exit(made.returncode)
    unittest.main()
