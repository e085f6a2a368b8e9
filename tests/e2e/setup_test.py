"""Settings, completion scripts, version and doctor."""
import json
import shutil
import subprocess
import unittest

from command_line import LLAMA, NO, USAGE, CommandLineTest


class Settings(CommandLineTest):
    def setting(self, flag, verb="", **kwargs):
        found = [s for s in self.json("config", **kwargs) if (s["verb"], s["flag"]) == (verb, flag)]
        self.assertEqual(len(found), 1)
        return found[0]["value"], found[0]["origin"]

    def test_default_then_file_then_variable_then_flag(self):
        self.assertEqual(self.setting("port", "serve"), ("8080", "default"))
        self.file("kvasir.toml", b"[serve]\nport = 9000\n")
        self.assertEqual(self.setting("port", "serve"), ("9000", "kvasir.toml"))
        self.assertEqual(self.setting("port", "serve", env={"KVASIR_PORT": "9001"}), ("9001", "KVASIR_PORT"))

    def test_a_file_reaches_the_command(self):
        self.file("kvasir.toml", b"max-tokens = 3\n[run]\nraw = true\ntemperature = 0.0\n")
        self.assertEqual(self.json("run", LLAMA, "Hi")["completion_tokens"], 3)
        self.assertEqual(self.json("run", LLAMA, "Hi", "--max-tokens", "2")["completion_tokens"], 2)

    def test_a_table_for_a_verb_below_a_verb(self):
        self.file("kvasir.toml", b"[eval.ppl]\nctx = 32\n")
        self.assertEqual(self.setting("ctx", "eval.ppl"), ("32", "kvasir.toml"))
        self.assertEqual(self.setting("ctx", "eval.logits"), ("512", "default"))

    def test_a_list_is_what_commas_are_on_the_command_line(self):
        self.file("kvasir.toml", b"[bench]\nprompt = [16, 32]\n")
        self.assertEqual(self.setting("prompt", "bench"), ("16,32", "kvasir.toml"))
        results = self.json("bench", LLAMA, "--gen", "0", "--repeat", "1")["results"]
        self.assertEqual([result["n_prompt"] for result in results], [16, 32])

    def test_wrong_settings_are_named(self):
        self.refusal(USAGE, "version", env={"KVASIR_THREADS": "many"}, says="KVASIR_THREADS")
        self.file("kvasir.toml", b"[serve]\nprot = 1\n")
        self.refusal(USAGE, "version", says="serve.prot")
        self.file("kvasir.toml", b"[serve\n")
        self.refusal(USAGE, "version", says="kvasir.toml:1")


class Completion(CommandLineTest):
    def script(self, shell):
        return self.kvasir("completion", shell).stdout.decode()

    def test_every_verb_and_flag_is_there(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                script = self.script(shell)
                for word in ("run", "serve", "bench", "ppl", "max-tokens", "threads"):
                    self.assertIn(word, script)

    def test_shells_accept_it(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell) is None:
                continue
            with self.subTest(shell):
                checked = subprocess.run([shell, "-n"], input=self.script(shell).encode(), capture_output=True)
                self.assertEqual((checked.returncode, checked.stderr), (0, b""))

    @unittest.skipIf(shutil.which("bash") is None, "no bash")
    def test_bash_completes(self):
        def completed(*words):
            line = " ".join(f"'{word}'" for word in words)
            script = f'{self.script("bash")}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words) - 1}\n_kvasir\n'
            script += 'echo "${COMPREPLY[@]}"'
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.split()

        self.assertEqual(completed("kvasir", "ru"), ["run"])
        self.assertEqual(completed("kvasir", "eval", "p"), ["ppl"])
        self.assertEqual(completed("kvasir", "eval", "ppl", "--chu"), ["--chunks"])
        self.assertEqual(completed("kvasir", "run", "x", "--thr"), ["--threads"])


class Machine(CommandLineTest):
    def test_version(self):
        version = self.json("version")
        self.assertEqual(list(version), ["version", "compiler", "build_type", "isas"])
        self.assertEqual(version["isas"][-1], "ref")
        self.assertEqual(self.kvasir("--version").stdout.decode(), version["version"] + "\n")

    def test_doctor(self):
        done = self.kvasir("doctor", "--json", expect=None)
        report = json.loads(done.stdout)
        for key in ("cpu", "isa", "cores", "memory", "limits", "checks"):
            self.assertIn(key, report)
        healthy = all(check["ok"] for check in report["checks"])
        self.assertEqual(done.returncode, 0 if healthy else NO)
        self.assertGreater(report["limits"]["read_gb_s"], 0)

    def test_help(self):
        for args in (["--help"], ["run", "--help"], ["eval", "ppl", "--help"]):
            self.assertIn(b"Usage", self.kvasir(*args).stdout)


if __name__ == "__main__":
    unittest.main()
