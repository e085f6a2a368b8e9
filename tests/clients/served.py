"""Starts `kvasir serve` for the tests of this folder on a free port, and stops it."""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))
VENVS = ROOT / "build/clients"  # install.sh makes them
TEMPLATES = ROOT / "tests/cases/template"
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def need_model(model):
    """Skips unless the binary and the model are there."""
    if not os.access(BINARY, os.X_OK):
        skip(f"no binary {BINARY} (make, or set KVASIR_BINARY)")
    shown = subprocess.run([BINARY, "show", model, "--json"], capture_output=True, text=True)
    if shown.returncode != 0:
        skip(shown.stderr.strip())


def name_of(model):
    """What a server calls it: a file by its name without folder and ending."""
    return pathlib.Path(model).stem if model.endswith(".gguf") else model


def run_in_venv(packages, venv="venv"):
    """Goes on as the same command under a virtual environment's Python; skips when that or a package is missing."""
    python = VENVS / venv / "bin/python"
    if not python.exists():
        skip(f"no build/clients/{venv} (tests/clients/install.sh makes it)")
    if pathlib.Path(sys.prefix).resolve() != python.parents[1].resolve():
        os.execv(python, [str(python), "-B", *sys.argv])
    import importlib.util
    for package in packages:
        if importlib.util.find_spec(package) is None:
            skip(f"build/clients/{venv} has no {package} (tests/clients/install.sh)")


def make_keys(folder, wanted):
    """The file of keys for a server, and name -> key."""
    path = pathlib.Path(folder) / "keys"
    keys = {}
    for key in wanted:
        limits = [word for limit in ("rpm", "tpm") if limit in key for word in (f"--{limit}", str(key[limit]))]
        done = subprocess.run([BINARY, "keys", "add", key["name"], "--file", str(path), *limits],
                              capture_output=True, text=True, check=True)
        keys[key["name"]] = done.stdout.strip().splitlines()[-1]
    return path, keys


class Server:
    def __init__(self, ports, keys, process):
        self.port, self.grpc_port, self.ollama_port = (ports.get(name) for name in ("http", "grpc", "ollama"))
        self.keys, self.process = keys, process
        self.url = f"http://127.0.0.1:{self.port}"
        self.ollama_url = f"http://127.0.0.1:{self.ollama_port}"


@contextlib.contextmanager
def serving(model, setup=None, options=(), port=0):
    """A Server that has begun to answer. `setup`: keys, chat_template."""
    setup = setup or {}
    with tempfile.TemporaryDirectory(prefix="kvasir-clients-") as folder:
        # No test of this folder may depend on how fast the machine is, so no request is refused for being slow.
        command = [BINARY, "serve", model, "--port", str(port), "--ttft-target-ms", "0", *options]
        keys = {}
        if "keys" in setup:
            path, keys = make_keys(folder, setup["keys"])
            command += ["--api-keys", str(path)]
        if "chat_template" in setup:
            command += ["--chat-template", str(TEMPLATES / setup["chat_template"])]
        with open(pathlib.Path(folder) / "stderr", "w+") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                wanted = {"http"} | {name for name in ("grpc", "ollama") if f"--{name}-port" in options}
                yield Server(ports_of(process, log, wanted), keys, process)
            finally:
                process.terminate()
                process.wait()
                process.stdout.close()


def ports_of(process, log, wanted):
    """Name -> port of those that are wanted."""
    ports = {}
    for line in process.stdout:
        found = re.match(r"(http|gRPC|Ollama)(?:://[^ ]*:| on port |'s API on port )(\d+)", line)
        if found:
            ports[found[1].lower()] = int(found[2])
        if wanted <= ports.keys():
            return ports
    log.seek(0)
    raise RuntimeError(f"kvasir serve ended with {process.wait()}: {log.read().strip()}")
