"""The real binary with the real model, and the canary that tells whether it still answers as at first.

A library of this folder's tests: no usage of its own. Ends the process with 77 where the model is not here, and
with 2 where the binary is not. KVASIR_BINARY names the binary (default: build/release/bin/kvasir).
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from http_wire import Wire, request_bytes, strict_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("KVASIR_BINARY", ROOT / "build/release/bin/kvasir"))
MODEL = "smollm2:135m"
SKIPPED = 77
BAD_FILE = 3  # the binary's exit code for a model that is not there
END_LIMIT_S = 60


class LiveServer:
    def __init__(self, process, port, access_log, canary_tokens):
        self.process, self.port, self.access_log = process, port, access_log
        self.canary_request = request_bytes("POST", "/v1/completions", json.dumps(
            {"prompt": "The capital of France is", "max_tokens": canary_tokens, "temperature": 0}).encode())
        self.lock = threading.Lock()  # of the canary's connection
        self.wire = None
        self.num_delays = 0  # canaries that were sent away with a time to come back
        self.first_text = self.canary_text()

    def exit_code(self):
        """None while it runs."""
        return self.process.poll()

    def _ask_canary(self):
        if self.wire is None:
            self.wire = Wire(self.port)
        answer = self.wire.send(self.canary_request) and self.wire.receive()
        if not answer:  # between two canaries the server may close
            self.wire = Wire(self.port)
            self.wire.send(self.canary_request)
            answer = self.wire.receive()
        if answer and not answer.keeps_alive:
            self.wire = None
        return answer

    def canary_text(self):
        """The text of the one fixed request; a refusal with a time to come back is waited for."""
        with self.lock:
            for _ in range(60):
                answer = self._ask_canary()
                if answer is None or answer.status != 503:
                    break
                self.num_delays += 1
                time.sleep(int(answer.header("Retry-After") or 1))
        if answer is None or answer.status != 200:
            raise RuntimeError(f"the canary got {answer and (answer.status, answer.body)}")
        return strict_json(answer.body)["choices"][0]["text"]

    def canary_problems(self):
        if self.exit_code() is not None:
            return [f"the server ended with {self.exit_code()}"]
        try:
            text = self.canary_text()
        except (OSError, RuntimeError, ValueError) as error:
            return [f"canary: {error!r}"]
        return [] if text == self.first_text else [f"canary said {text!r}, at first {self.first_text!r}"]

    def log_record(self, client_request_id):
        """The access log's line of the request with that X-Client-Request-Id; None as long as there is none."""
        for line in self.access_log.read_text().splitlines():
            if client_request_id in line:
                return json.loads(line)
        return None

    def resident_bytes(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def start(words, errors):
    if not BINARY.exists():
        sys.exit(print(f"no binary at {BINARY}; KVASIR_BINARY names it", file=sys.stderr) or 2)
    process = subprocess.Popen([str(BINARY), "serve", MODEL, "--port", "0", *words], stdout=subprocess.PIPE,
                               stderr=errors, text=True)
    lines = [process.stdout.readline() for _ in range(3)]
    if lines[1].startswith("http://"):
        return process, int(lines[1].split()[0].rsplit(":", 1)[1])
    if process.wait(END_LIMIT_S) == BAD_FILE:
        print(f"skipped: the model {MODEL} is not here (kvasir pull {MODEL})")
        sys.exit(SKIPPED)
    raise RuntimeError(f"kvasir serve ended with {process.returncode}")


@contextlib.contextmanager
def live_server(*words, canary_tokens=16):
    """A LiveServer, ended with SIGTERM; RuntimeError when it does not end with 0."""
    with tempfile.TemporaryDirectory(prefix="kvasir-hardening-") as folder:
        access_log = pathlib.Path(folder) / "access.log"
        with open(pathlib.Path(folder) / "stderr", "w+") as errors:
            process, port = start(["--access-log", str(access_log), *words], errors)
            try:
                yield LiveServer(process, port, access_log, canary_tokens)
            finally:
                process.terminate()
                try:
                    process.wait(END_LIMIT_S)
                finally:
                    process.kill()
                    errors.seek(0)
                    sys.stderr.write(errors.read()[-4000:])
        if process.returncode != 0:
            raise RuntimeError(f"kvasir serve ended with {process.returncode}, not with 0")
