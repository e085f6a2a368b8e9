"""The loopback hub of tests/e2e speaks the hub's dialect: its own Python client fetches the same bytes from it, and
`kvasir pull` uses what that client has fetched."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import served

served.run_in_venv(["huggingface_hub"])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from hub_server import Hub, Repository  # noqa: E402

FILES = {"config.json": b"{}", "sub/notes.txt": b"small\n", "m-Q8_0.gguf": os.urandom(5 << 20)}
DOWNLOAD = "import huggingface_hub as hub; print(hub.snapshot_download('owner/model'))"


class HubClient(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvasir-hub-")
        self.addCleanup(folder.cleanup)
        self.hub = Hub({"owner/model": Repository(FILES)})
        self.addCleanup(self.hub.close)
        self.hub.token = "hf_token"
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.env = kept | {"HF_ENDPOINT": self.hub.url, "HF_HOME": folder.name + "/hf", "HF_TOKEN": "hf_token",
                           "HF_HUB_DISABLE_XET": "1", "KVASIR_HOME": folder.name + "/kvasir"}

    def output(self, *command, **env):
        return subprocess.run(command, env=self.env | env, check=True, capture_output=True, text=True).stdout

    def pull(self, **env):
        return json.loads(self.output(served.BINARY, "pull", "hf:owner/model", "--json", **env))[0]

    def test_both_fetch_the_same_bytes(self):
        snapshot = pathlib.Path(self.output(sys.executable, "-c", DOWNLOAD).split()[-1])
        self.assertEqual({path: (snapshot / path).read_bytes() for path in FILES}, FILES)
        self.assertFalse(any("Authorization" in headers for *_, headers in self.hub.asked("files")))
        pulled = self.pull()
        self.assertEqual((pulled["path"], pulled["was_present"]), (str(snapshot / "m-Q8_0.gguf"), True))
        own = self.pull(HF_HOME=self.env["KVASIR_HOME"] + "/none")
        self.assertFalse(own["was_present"])
        self.assertEqual(pathlib.Path(own["path"]).read_bytes(), FILES["m-Q8_0.gguf"])


if __name__ == "__main__":
    unittest.main()
