"""The servers that are compared: each with the words that start it, and what its cores were busy with."""
import contextlib
import http.client
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KVASIR = ROOT / "build/release/bin/kvasir"
LLAMA = ROOT / "build/peers/bin/llama-native/llama-server"
CLIENT = ROOT / "build/release/bin/kvasir_load"
MADE_BY = {KVASIR: "make", CLIENT: "make bench", LLAMA: "bench/peers/install.sh"}
CONTEXT = 8192
SLOTS = 16
# A request is refused at once when its first token would come later; by default requests wait.
WITH_TARGET = ("--ttft-target-ms", 2000, "--max-queue", 256, "--max-queue-kv", 4, "--queue-timeout", 60)


def require(program):
    if not program.exists():
        sys.exit(f"{program} is missing: {MADE_BY[program]} makes it")


def commands(model, path, threads=2):
    """Name -> command without its port. llama-server's cache in slots has `CONTEXT` tokens for each, as the unified."""
    llama = [LLAMA, "-m", path, "-t", threads, "-np", SLOTS, "-c", CONTEXT * SLOTS, "--no-webui", "--alias", model]
    return {
        "kvasir": [KVASIR, "serve", model, "--max-num-seqs", SLOTS, *WITH_TARGET],
        "kvasir, nobody refused": [KVASIR, "serve", model, "--max-num-seqs", SLOTS],
        "llama-server": [*llama, "--kv-unified", "-fa", "on"],
        "llama-server, no flash attention": [*llama, "--kv-unified", "-fa", "off"],
        "llama-server, split": [*llama, "--no-kv-unified", "-fa", "on"],
        "llama-server, split, no flash attention": [*llama, "--no-kv-unified", "-fa", "off"],
    }


@contextlib.contextmanager
def keys_file(tenants):
    """A file for --api-keys, and each tenant's key."""
    require(KVASIR)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "keys")
        yield file, {name: subprocess.run([KVASIR, "keys", "add", name, "--file", file], check=True, capture_output=True,
                                          text=True).stdout.split()[-1] for name in tenants}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/v1/models")
        return connection.getresponse().status in (200, 401)  # 401: it asks for a key
    except OSError:
        return False


def cpu_seconds_of(stat):
    """The processor time that a process or thread has used, by its file `stat` in /proc."""
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Running:
    def __init__(self, process, port):
        self.process, self.port = process, port

    def cpu_seconds(self):
        return cpu_seconds_of(pathlib.Path(f"/proc/{self.process.pid}/stat"))

    def peak_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0


@contextlib.contextmanager
def running(command):
    require(command[0])
    port = free_port()
    process = subprocess.Popen([str(word) for word in [*command, "--port", port]], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not answers(port):
            if process.poll() is not None:
                raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {process.returncode}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{pathlib.Path(command[0]).name} does not answer after 120 s")
            time.sleep(0.1)
        yield Running(process, port)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
