"""A server of one model, for as long as a script needs it."""
import json
import os
import re
import subprocess
import urllib.request


class Server:
    def __init__(self, model, *flags):
        binary = os.environ.get("KVASIR_BINARY", "kvasir")
        self.process = subprocess.Popen([binary, "serve", model, "--port", "0", "--any-model-name", *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://[^ :]+:(\d+)", line)
            if found:
                self.url = f"http://127.0.0.1:{found[1]}"
                return
        raise SystemExit(f"{binary} serve {model}: it did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.loads(response.read())
