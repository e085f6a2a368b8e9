"""A kvasir server as a child process, and how the tests of this folder ask it. Not a test itself.

The binary comes from KVASIR_BINARY, else build/release/bin/kvasir of this checkout. Without the binary or the model
`require_model` ends the script with exit code 77, which ctest takes for skipped.
"""
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))
MODEL = "smollm2:135m"
VOCABULARY = range(300, 49_000)  # ordinary tokens of MODEL, none that controls
SKIPPED = 77
PR_SET_PDEATHSIG = 1
HANG_S = 900  # whoever has not answered by then hangs; no test is decided by less

METRIC = re.compile(r"^kvasir_(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def require_model():
    if not pathlib.Path(BINARY).is_file():
        print("skipped: no kvasir binary (KVASIR_BINARY)")
        sys.exit(SKIPPED)
    shown = subprocess.run([BINARY, "show", MODEL], capture_output=True, env=environment())
    if shown.returncode != 0:
        print(f"skipped: {MODEL} is not here (kvasir pull {MODEL})")
        sys.exit(SKIPPED)


def environment():
    """Without settings of whoever runs this, but with their store of models."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("KVASIR_") or name == "KVASIR_HOME"}


def progress(text):
    print(text, file=sys.stderr, flush=True)


def die_with_parent():
    """In a child: a test that is killed leaves no server behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def connect(port, timeout_s=HANG_S):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)


def headers_of(key):
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def events_of(response):
    """The events of a stream as they come: documents, and the text [DONE]. Comments are left out."""
    for line in response:
        if line.startswith(b"data: "):
            data = line[len(b"data: "):].strip()
            yield "[DONE]" if data == b"[DONE]" else json.loads(data)


class Server:
    """Runs until `stop` or the end of the `with` block; what it logs is in `log()`."""

    def __init__(self, *args, port=0, kvasir_options=(), in_child=lambda: None):
        self.log_file = tempfile.TemporaryFile()

        def prepare_child():
            die_with_parent()
            in_child()

        began = time.monotonic()
        self.process = subprocess.Popen(
            [BINARY, *map(str, kvasir_options), "serve", MODEL, "--port", str(port), *map(str, args)],
            stdout=subprocess.PIPE, stderr=self.log_file, env=environment(), preexec_fn=prepare_child)
        lines = [self.process.stdout.readline().decode() for _ in range(3)]
        if not lines[1].startswith("http"):
            self.process.wait(HANG_S)
            raise RuntimeError(f"the server did not start ({self.process.returncode}): {self.log()}")
        self.start_seconds = time.monotonic() - began
        self.port = int(lines[1].split()[0].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log_file.close()

    def log(self):
        self.log_file.seek(0)
        return self.log_file.read().decode(errors="replace")

    def stop(self):
        """Asks it to end, once, and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_S)

    @contextlib.contextmanager
    def response(self, path, body=None, key=None):
        """The response with its body still to be read."""
        connection = connect(self.port)
        try:
            payload = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, payload, headers_of(key))
            yield connection.getresponse()
        finally:
            connection.close()

    def ask(self, path, body=None, key=None):
        """Status and document."""
        with self.response(path, body, key) as response:
            return response.status, json.load(response)

    def complete(self, body, key=None):
        """The document of a completion that must succeed."""
        status, answer = self.ask("/v1/completions", body, key)
        if status != 200:
            raise RuntimeError(f"a completion was refused with {status}: {answer}")
        return answer

    def metrics(self, key=None):
        """Name -> value; labels other than the model stay part of the name."""
        with self.response("/metrics", key=key) as response:
            text = response.read().decode()
        values = {}
        for name, labels, value in METRIC.findall(text):
            others = re.sub(r'model="[^"]*",?', "", labels)
            values[f"{name}{{{others}}}" if others else name] = float(value)
        return values

    def wait_until(self, condition, what, pause_s=0.002, key=None):
        """The first metrics that meet the condition."""
        deadline = time.monotonic() + HANG_S
        while not condition(metrics := self.metrics(key)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} never happened: {engine_state(metrics)}")
            time.sleep(pause_s)
        return metrics

    def wait_idle(self, key=None):
        return self.wait_until(is_idle, "an idle engine", key=key)

    def status_bytes(self, field):
        """VmRSS, VmHWM, RssAnon, ... of the process."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024

    def num_open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def engine_state(metrics):
    return {name: metrics[name] for name in ("requests_running", "requests_waiting", "kv_blocks_used")}


def is_idle(metrics):
    return not any(engine_state(metrics).values())


def random_prompt(random, num_tokens):
    return random.choices(VOCABULARY, k=num_tokens)


CANARY = {"prompt": "The capital of France is", "max_tokens": 12, "temperature": 0, "logprobs": 3}


def canary_answer(server, key=None):
    """What must stay the same to the last digit whatever else the server does."""
    return server.complete(CANARY, key)["choices"][0]


def report(failures, **figures):
    """The last line of a test, and its exit code."""
    print(json.dumps(figures | {"failures": failures[:20], "num_failures": len(failures)}))
    return 1 if failures else 0
