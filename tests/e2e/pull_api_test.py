"""POST /api/pull and DELETE /api/delete of a running server: a store, its catalogue and real models."""
import hashlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import unittest

from command_line import BINARY, LLAMA, CommandLineTest

MODELS = pathlib.Path(LLAMA).parent
ENTRY = """
[[model]]
name = "tiny:{name}"
description = "a tiny model"
license = "MIT"
file = "tiny-{name}.gguf"
sha256 = "{sha256}"
size_bytes = {size}
chat_template = false
sources = [ {{ type = "path", path = "{path}" }} ]
"""


def entry_of(name, sha256=None):
    path = MODELS / f"{name}.gguf"
    return ENTRY.format(name=name, path=path, size=path.stat().st_size,
                        sha256=sha256 or hashlib.sha256(path.read_bytes()).hexdigest())


class PullApi(CommandLineTest):
    def serve(self, *args):
        store = pathlib.Path(self.environment()["KVASIR_HOME"])
        store.mkdir(parents=True, exist_ok=True)
        (store / "catalogue.toml").write_text(entry_of("qwen3-q4_1") + entry_of("llama3-bf16")
                                              + entry_of("llama-q4_k", sha256="0" * 64))
        self.store = store
        self.server = self.start("serve", *args, "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, self.server)
        for line in self.server.stdout:
            found = re.search(rb"http://[^ :]+:(\d+)", line)
            if found:
                self.port = int(found[1])
                return

    def ask(self, method, path, headers=None, **body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"} | (headers or {}))
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def names(self):
        return [model["name"] for model in json.loads(self.ask("GET", "/api/tags")[1])["models"]]

    def answer_of(self, model):
        status, text = self.ask("POST", "/api/generate", model=model, prompt="Hi", stream=False,
                                options={"num_predict": 3, "temperature": 0})
        return status, json.loads(text).get("eval_count")

    def test_a_model_is_pulled_answers_beside_the_first_and_is_deleted(self):
        self.serve(LLAMA, "--allow-pull")
        self.assertEqual(self.answer_of("tiny:qwen3-q4_1")[0], 404)
        status, text = self.ask("POST", "/api/pull", model="tiny:qwen3-q4_1")
        steps = [json.loads(line) for line in text.splitlines()]
        self.assertEqual((status, steps[-1]), (200, {"status": "success"}))
        self.assertIn("copying tiny:qwen3-q4_1", [step["status"] for step in steps])
        self.assertEqual(self.names(), ["llama-f32:latest", "tiny:qwen3-q4_1"])
        for model in ("tiny:qwen3-q4_1", "llama-f32", "registry.ollama.ai/library/tiny:qwen3-q4_1"):
            self.assertEqual(self.answer_of(model), (200, 3))
        file = self.store / "models/tiny-qwen3-q4_1.gguf"
        self.assertTrue(file.exists())
        self.assertEqual(self.ask("DELETE", "/api/delete", model="tiny:qwen3-q4_1")[0], 200)
        self.assertFalse(file.exists())
        self.assertEqual((self.answer_of("tiny:qwen3-q4_1")[0], self.names()), (404, ["llama-f32:latest"]))
        self.assertEqual(self.answer_of("llama-f32"), (200, 3))
        self.assertEqual(self.ask("DELETE", "/api/delete", model="llama-f32")[0], 409)
        self.assertEqual(self.ask("GET", "/props?model=nope")[0], 404)
        self.assertEqual(self.ask("GET", "/props?model=llama-f32")[0], 200)

    def test_a_pull_that_fails_leaves_nothing_and_disturbs_nobody(self):
        self.serve(LLAMA, "--allow-pull")
        status, text = self.ask("POST", "/api/pull", model="tiny:llama-q4_k")
        self.assertIn("error", json.loads(text.splitlines()[-1]))
        self.assertEqual(list((self.store / "models").glob("*")), [])
        for name, says in (("tniy:qwen3", "did you mean"), ("/etc/passwd", "path"), (str(MODELS / "llama3-bf16.gguf"), "path")):
            status, text = self.ask("POST", "/api/pull", model=name)
            self.assertEqual(status, 404, text)
            self.assertIn(says, text)
        self.assertEqual((self.names(), self.answer_of("")), (["llama-f32:latest"], (200, 3)))

    def test_a_pulled_model_gets_room_beside_two_others(self):
        self.serve(LLAMA, str(MODELS / "qwen2-q8_0.gguf"), "--allow-pull")
        self.assertEqual(self.ask("POST", "/api/pull", model="tiny:llama3-bf16", stream=False),
                         (200, '{"status":"success"}'))
        for model in ("tiny:llama3-bf16", "qwen2-q8_0", "llama-f32"):
            self.assertEqual(self.answer_of(model), (200, 3))

    def test_only_operators_pull(self):
        keys = os.path.join(self.folder, "keys")
        self.kvasir("keys", "add", "user", "--file", keys)
        user = self.kvasir("keys", "add", "other", "--file", keys).stdout.decode().split()[-1]
        operator = self.kvasir("keys", "add", "chief", "--operator", "--file", keys).stdout.decode().split()[-1]
        self.serve(LLAMA, "--api-keys", keys)
        for key, wanted in ((user, 403), (operator, 200)):
            status, text = self.ask("POST", "/api/pull", {"Authorization": f"Bearer {key}"}, model="tiny:qwen3-q4_1")
            self.assertEqual(status, wanted, text)
        status, text = self.ask("DELETE", "/api/delete", {"Authorization": f"Bearer {user}"}, model="tiny:qwen3-q4_1")
        self.assertEqual(status, 403, text)
        status, text = self.ask("POST", "/api/generate", {"Authorization": f"Bearer {user}"}, model="tiny:qwen3-q4_1",
                                prompt="Hi", stream=False, options={"num_predict": 3})
        self.assertEqual(status, 200, text)


if __name__ == "__main__":
    unittest.main()
