"""Exported metrics: names, types, labels and their values, as Prometheus would read them. Not a test itself."""
import json
import pathlib
import re
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/clients"))
from served import BINARY, serving  # noqa: E402,F401

TINY_MODEL = ROOT / "tests/cases/models/llama-f32.gguf"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Labels that Prometheus itself puts on what it scrapes; the last two where it discovers pods.
OF_PROMETHEUS = {"instance", "job", "namespace", "pod"}


class Exported:
    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
        self.labels = {}  # name of a series -> label -> values
        for line in text.splitlines():
            found = SAMPLE.match(line)
            if found:
                labels = self.labels.setdefault(found[1], {})
                for name, value in LABEL.findall(found[2] or ""):
                    labels.setdefault(name, set()).add(value)

    def type_of(self, series):
        """counter, gauge or histogram; of a histogram's parts: counter."""
        base = re.sub(r"_(bucket|sum|count)$", "", series)
        return "counter" if self.types.get(base) == "histogram" else self.types.get(series)


def ask(url, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.read().decode()


def exported_metrics():
    """The metrics of a server of a tiny model that has answered, streamed, refused and scored its answers again, and learns."""
    with tempfile.TemporaryDirectory() as folder, serving(str(TINY_MODEL), options=("--kv-shadow", "1", "--kv-learn", folder + "/kv.json")) as server:
        for stream in (False, True):
            ask(server.url, "/v1/completions", {"prompt": "the quick brown fox", "max_tokens": 4, "stream": stream})
        ask(server.url, "/v1/completions", {"prompt": 7})
        while sum(row.get("scored", 0) for row in json.loads(ask(server.url, "/v1/kv_policies"))) < 2:  # the test's own time limit ends it
            time.sleep(0.05)
        return Exported(ask(server.url, "/metrics"))
