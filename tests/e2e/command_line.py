"""Runs the kvasir binary for the tests of this folder: a clean environment, an empty home, a time limit."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["KVASIR_BINARY"]
MODELS = pathlib.Path(__file__).resolve().parent.parent / "cases" / "models"
LLAMA = str(MODELS / "llama-f32.gguf")  # byte-level tokenizer, chat template
GEMMA = str(MODELS / "gemma3-q5_0.gguf")  # SentencePiece, adds BOS, no chat template
NO_TOKENIZER = str(MODELS / "no-tokenizer.gguf")
TIME_LIMIT_S = 120

DONE, NO, USAGE, BAD_FILE, UNMET, MACHINE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class CommandLineTest(unittest.TestCase):
    command = [BINARY]

    def obey_permissions(self):
        """From here on the binary may read only files that their modes allow, even when root runs the test."""
        if os.geteuid() == 0:
            self.command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", BINARY]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvasir-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, **changes):
        env = {name: value for name, value in os.environ.items() if not name.startswith("KVASIR_")}
        for name in ("NO_COLOR", "XDG_STATE_HOME", "VISUAL", "EDITOR"):
            env.pop(name, None)
        env.update(HOME=str(self.folder), KVASIR_HOME=str(self.folder / "home"), KVASIR_THREADS="1")
        return env | changes

    def start(self, *args, env=None, **streams):
        """The running process, its three streams as pipes unless said otherwise."""
        for stream in ("stdin", "stdout", "stderr"):
            streams.setdefault(stream, subprocess.PIPE)
        process = subprocess.Popen([*self.command, *map(str, args)], cwd=self.folder, env=self.environment(**(env or {})),
                                   **streams)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def kvasir(self, *args, stdin=b"", env=None, expect=DONE):
        """The finished process; fails unless it exits with `expect` (None: any way)."""
        process = self.start(*args, env=env)
        stdout, stderr = process.communicate(stdin, timeout=TIME_LIMIT_S)
        done = subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr.decode())
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{args}: {done.stderr}")
        return done

    def json(self, *args, **kwargs):
        """The JSON document on stdout, which must hold nothing else."""
        return json.loads(self.kvasir(*args, "--json", **kwargs).stdout)

    def refusal(self, expect, *args, says="", **kwargs):
        """The one line that a refusal prints on stderr; nothing may be on stdout."""
        done = self.kvasir(*args, expect=expect, **kwargs)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("kvasir: "), done.stderr)
        self.assertIn(says, done.stderr)
        return done.stderr

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)
