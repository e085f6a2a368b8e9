"""Settings, completion scripts, version and doctor."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from command_line import BAD_FILE, BINARY, LLAMA, MACHINE, NO, TIME_LIMIT_S, USAGE, CommandLineTest


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
        self.file("kvasir.toml", b"[run]\nstop = ['a', 'b']\n")
        self.refusal(USAGE, "version", says="run.stop is a list, and --stop takes one value")

    def test_a_flag_goes_before_every_other_source(self):
        self.file("kvasir.toml", b"threads = 3\n")
        self.assertEqual(self.json("config", "--threads", "5")[0],
                         {"verb": "", "flag": "threads", "value": "5", "origin": "flag"})
        self.assertIn(("true", "flag"), [(s["value"], s["origin"]) for s in self.json("config") if s["flag"] == "json"])

    def test_a_switch_is_on_or_off_in_every_spelling(self):
        for on, off in (("true", "false"), ("TRUE", "FALSE"), ("1", "0"), ("yes", "no"), ("On", "oFF")):
            with self.subTest(on):
                self.assertIn(b"{", self.kvasir("version", env={"KVASIR_JSON": on}).stdout)
                self.assertNotIn(b"{", self.kvasir("version", env={"KVASIR_JSON": off}).stdout)
        self.refusal(USAGE, "version", env={"KVASIR_JSON": "banana"}, says="KVASIR_JSON: --json")
        self.file("kvasir.toml", b"json = \"maybe\"\n")
        self.refusal(USAGE, "version", says="not 'maybe'")

    def test_a_setting_counts_as_a_required_flag(self):
        self.file("text.txt", b"the quick brown fox " * 100)
        args = ["eval", "ppl", LLAMA, "--ctx", "32", "--chunks", "1"]
        self.refusal(USAGE, *args, says="--file is required")
        self.assertGreater(self.json(*args, env={"KVASIR_FILE": "text.txt"})["ppl"], 1)
        self.refusal(USAGE, *args, env={"KVASIR_FILE": ""}, says="--file is required")
        self.file("kvasir.toml", b"[eval.ppl]\nfile = \"text.txt\"\n")
        self.assertGreater(self.json(*args)["ppl"], 1)

    def test_a_file_that_cannot_be_read_is_named(self):
        self.refusal(BAD_FILE, "version", env={"KVASIR_CONFIG": "missing.toml"}, says="missing.toml: cannot be read")
        self.refusal(BAD_FILE, "version", env={"KVASIR_CONFIG": str(self.folder)}, says=f"{self.folder}: cannot be read")
        self.refusal(BAD_FILE, "version", env={"KVASIR_CONFIG": "/dev/zero"}, says="/dev/zero: the limit is 1.00 MiB")
        (self.folder / "kvasir.toml").mkdir()
        self.refusal(BAD_FILE, "version", says="kvasir.toml: cannot be read: Is a directory")
        self.kvasir("version", env={"KVASIR_CONFIG": ""})  # no file at all

    def test_wrong_settings_are_named(self):
        self.refusal(USAGE, "version", env={"KVASIR_THREADS": "many"}, says="KVASIR_THREADS: --threads")
        self.refusal(USAGE, "version", env={"KVASIR_SEED": "-2"}, says="from 0 to 18446744073709551615, not '-2'")
        self.file("kvasir.toml", b"[rum]\n")
        self.refusal(USAGE, "version", says="kvasir.toml: no verb has the name 'rum'; did you mean 'run'?")
        self.file("kvasir.toml", b"threads = 2026-01-01\n")
        self.refusal(USAGE, "version", says="kvasir.toml: threads takes text, a number")
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
        script = self.script("bash")

        def completed(*words, split=None):
            """Bash's words for the last one; `split`: the words as bash cuts them, if not at spaces."""
            line, split = " ".join((BINARY, *words)), split or words
            setting = " ".join(f"'{word}'" for word in (BINARY, *split))
            asked = f"{script}\nCOMP_WORDS=({setting})\nCOMP_CWORD={len(split)}\nCOMP_LINE='{line}'\n"
            asked += f'COMP_POINT={len(line)}\n_kvasir\necho "${{COMPREPLY[@]}}"'
            return subprocess.run(["bash", "-c", asked], capture_output=True, text=True,
                                  env=self.environment()).stdout.split()

        self.assertEqual(completed("ru"), ["run"])
        self.assertEqual(completed("eval", "p"), ["ppl"])
        self.assertEqual(completed("eval", "ppl", "--chu"), ["--chunks"])
        self.assertEqual(completed("run", "x", "--thr"), ["--threads"])
        self.assertEqual(completed("run", "--he"), ["--help"])
        self.assertEqual(completed("run", "x", "--kv-type", ""), ["q12", "f16", "f32"])
        self.assertEqual(completed("pull", "--source", "py"), ["pypi"])
        self.assertEqual(completed("completion", "z"), ["zsh"])
        self.assertEqual(completed("run", "--file", ""), [])  # bash goes on with files
        self.assertEqual(completed("run", "smol"), ["smollm2:135m"])
        self.assertEqual(completed("eval", "ppl", "smol"), ["smollm2:135m"])
        self.assertEqual(completed("run", "smollm2:1", split=("run", "smollm2", ":", "1")), ["135m"])

    @unittest.skipIf(shutil.which("zsh") is None, "no zsh")
    def test_zsh_completes_from_its_first_call(self):
        """Sourced the script registers its function; in a folder of completions it is the function."""
        stand_ins = "compdef() { echo compdef $@ }\n_describe() { print -l -- ${(P@)2} }\n_files() { }\n"
        self.file("_kvasir", self.script("zsh").encode())

        def zsh(line):
            return subprocess.run(["zsh", "-fc", stand_ins + line], cwd=self.folder, capture_output=True, text=True).stdout

        self.assertEqual(zsh("source ./_kvasir"), "compdef _kvasir kvasir\n")
        offered = zsh("fpath=($PWD); autoload -Uz _kvasir; words=(kvasir ru); CURRENT=2; _kvasir").splitlines()
        self.assertIn("run:Answer one prompt, or chat in the terminal", offered)

    def test_json(self):
        self.assertEqual(self.json("completion", "fish"), {"shell": "fish", "script": self.script("fish")})


class Streams(CommandLineTest):
    def test_an_answer_that_cannot_be_written(self):
        for args in (["--help"], ["run", "--help"], ["--version"], ["version"], ["list"], ["list", "--json"],
                     ["show", LLAMA], ["show", LLAMA, "--json"], ["completion", "bash"], ["config"]):
            with self.subTest(args), open("/dev/full", "wb") as full:
                process = self.start(*args, stdout=full)
                self.assertIn(b"standard output: cannot be written", process.communicate(timeout=TIME_LIMIT_S)[1])
                self.assertEqual(process.returncode, MACHINE)

    def through_shell(self, redirection, *args):
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', BINARY, *args], cwd=self.folder,
                              env=self.environment(), capture_output=True, timeout=TIME_LIMIT_S)

    def test_a_closed_stderr_takes_nothing_from_the_answer(self):
        args = ["run", LLAMA, "Hi", "--max-tokens", "4", "--temperature", "0"]
        answer = self.kvasir(*args).stdout
        for redirection in ("2>&-", "2>/dev/full"):
            with self.subTest(redirection):
                done = self.through_shell(redirection, *args)
                self.assertEqual((done.returncode, done.stdout), (0, answer))

    def test_a_closed_stdout_is_an_error(self):
        done = self.through_shell(">&-", "version")
        self.assertEqual(done.returncode, MACHINE, done.stderr)


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
        cpu, *gpus = report["devices"]
        self.assertEqual((cpu["name"], cpu["kind"], cpu["usable"]), ("cpu", "cpu", True))
        self.assertTrue(gpus)  # at least why there is none
        for gpu in gpus:
            self.assertEqual(gpu["kind"], "cuda")
            self.assertTrue(gpu["detail"])
        for level in report["read_bandwidth"]:
            self.assertGreaterEqual(level["all_threads_gb_s"], level["one_thread_gb_s"])

    def test_doctor_says_when_other_programs_take_the_processors(self):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
        try:
            report = json.loads(self.kvasir("doctor", "--json", expect=None).stdout)
            said = self.kvasir("doctor", expect=None).stdout.decode()
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.assertGreater(report["busy_share"], 0.1)
        self.assertLessEqual(report["busy_share"], 1)
        self.assertRegex(said, r"busy +other programs took \d+% .*the speeds above are too low; measure again")

    def test_help(self):
        for args in (["--help"], ["run", "--help"], ["eval", "ppl", "--help"]):
            self.assertIn(b"Usage", self.kvasir(*args).stdout)


if __name__ == "__main__":
    unittest.main()
