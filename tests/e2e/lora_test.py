"""Adapters as a user meets them: one of drawn numbers for the tiny model, at run and in a server."""
import json
import pathlib
import shutil
import sys
import unittest
import urllib.error
import urllib.request

from command_line import BAD_FILE, LLAMA, TIME_LIMIT_S, USAGE, CommandLineTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from make_lora_adapter import write_adapter  # noqa: E402

SIZES = {"hidden": 64, "queries": 64, "keys": 32, "wide": 64, "layers": 2}  # of the tiny model


class Lora(CommandLineTest):
    def adapter(self, name, seed, **config):
        return write_adapter(self.folder / name, SIZES, rank=4, seed=seed, spread=0.2, **config)

    def ask(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body else None,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return json.load(answer)

    def test_run_answers_with_an_adapter(self):
        words = ["run", LLAMA, "Hello there", "--temperature", "0", "--max-tokens", "16", "--ignore-eos"]
        adapter = self.adapter("style", 1)
        plain, styled = self.json(*words), self.json(*words, "--lora", adapter)
        self.assertNotEqual(plain["token_ids"], styled["token_ids"])
        self.assertEqual(styled["token_ids"], self.json(*words, "--lora", f"any={adapter}")["token_ids"])
        self.assertEqual(plain["token_ids"], self.json(*words, "--lora", adapter, "--lora-scale", "0")["token_ids"])

    def test_a_server_has_several(self):
        process = self.start("serve", LLAMA, "--port", "0", "--lora", f"one={self.adapter('one', 1)}",
                             "--lora", f"two={self.adapter('two', 2)}")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        models = self.ask("/v1/models")["data"]
        self.assertEqual([LLAMA.rsplit("/", 1)[1].removesuffix(".gguf"), "one", "two"], [model["id"] for model in models])
        self.assertEqual(models[0]["id"], models[1]["parent"])
        body = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 16}
        answers = {name: self.ask("/v1/chat/completions", model=name, **body) for name in (models[0]["id"], "one", "two")}
        self.assertEqual(3, len({answer["choices"][0]["message"]["content"] for answer in answers.values()}))
        for name, answer in answers.items():
            self.assertEqual(name, answer["model"])
        self.assertEqual("one", self.ask("/v1/messages", model="one", **body)["model"])
        spoken = {}
        for name in (models[0]["id"], "one"):
            plain = self.ask("/v1/completions", model=name, prompt="Hello", temperature=0, max_tokens=16)
            response = self.ask("/v1/responses", model=name, input="Hello there", temperature=0, max_output_tokens=16)
            ollama = self.ask("/api/generate", model=name, prompt="Hello", raw=True, stream=False,
                              options={"temperature": 0, "num_predict": 16})
            llama = self.ask("/completion", model=name, prompt="Hello", temperature=0, n_predict=16)
            embedding = self.ask("/v1/embeddings", model=name, input="Hello")["data"][0]["embedding"]
            spoken[name] = (plain["choices"][0]["text"], json.dumps(response["output"][0]["content"]), ollama["response"],
                            llama["content"], json.dumps(embedding))
        for api, (base, adapted) in enumerate(zip(*spoken.values())):
            self.assertNotEqual(base, adapted, api)
        again = self.ask("/v1/chat/completions", model="one", **body)
        self.assertEqual(answers["one"]["choices"][0]["message"], again["choices"][0]["message"])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.ask("/v1/chat/completions", model="three", **body)
        self.assertEqual(404, refused.exception.code)

    def post(self, path, **body):
        """The status and the answer's text."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]["message"]

    def test_adapters_come_and_go_while_it_serves(self):
        (self.folder / "adapters").mkdir()
        for seed, name in enumerate(("one", "two"), 1):
            self.adapter(f"adapters/{name}", seed)
        self.adapter("adapters/dora", 3, use_dora=True)
        self.adapter("outside", 4)
        folder = self.folder / "adapters"
        process = self.start("serve", LLAMA, "--port", "0", "--lora-dir", str(folder), "--adapter-memory", "8M",
                             "--metrics-alias", "vllm")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        body = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 16}

        def says(model):
            return self.ask("/v1/chat/completions", model=model, **body)["choices"][0]["message"]["content"]

        def names():
            return [model["id"] for model in self.ask("/v1/models")["data"]][1:]

        load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
        self.assertEqual([], names())
        self.assertEqual((200, "Success: LoRA adapter 'one' added successfully."), self.post(load, lora_name="one"))
        self.assertEqual(200, self.post(load, lora_name="second", lora_path=f"{folder}/two")[0])
        self.assertEqual(["one", "second"], names())
        base, one, two = says("llama-f32"), says("one"), says("second")
        self.assertEqual(3, len({base, one, two}))
        status, message = self.post(load, lora_name="one", lora_path="two")
        self.assertEqual((400, 'lora_name: the adapter "one" is loaded already (load_inplace replaces it)'), (status, message))
        self.assertEqual(200, self.post(load, lora_name="one", lora_path="two", load_inplace=True)[0])
        self.assertEqual(two, says("one"))
        for path in ("../outside", f"{self.folder}/outside", f"{folder}/../outside", "..", "/etc", "three", f"{folder}/"):
            self.assertEqual(404, self.post(load, lora_name="x", lora_path=path)[0], path)
        self.assertIn("use_dora: it is not supported", self.post(load, lora_name="dora")[1])
        self.assertEqual((400, 'lora_name: a model is called "llama-f32"'), self.post(load, lora_name="llama-f32", lora_path="one"))
        self.assertEqual((400, "lora_name is missing"), self.post(load, lora_path="one"))
        self.assertEqual(400, self.post(load, lora_name="n" * 300, lora_path="one")[0])
        with urllib.request.urlopen(self.url + "/metrics", timeout=TIME_LIMIT_S) as answer:
            metrics = answer.read().decode()
        self.assertRegex(metrics, r'kvasir_adapters\{model="llama-f32"\} 2\n')
        self.assertIn('vllm:lora_requests_info{running_lora_adapters="",waiting_lora_adapters="",max_lora="2"}', metrics)
        self.assertEqual((200, "Success: LoRA adapter 'second' removed successfully."), self.post(unload, lora_name="second"))
        self.assertEqual(["one"], names())
        self.assertEqual(404, self.post("/v1/chat/completions", model="second", **body)[0])
        self.assertEqual((404, 'no adapter is called "second"'), self.post(unload, lora_name="second"))
        self.assertEqual(base, says("llama-f32"))

    def test_lora_of_a_request_as_llama_server_has_it(self):
        process = self.start("serve", LLAMA, "--port", "0", "--lora", f"one={self.adapter('one', 1)}",
                             "--lora", f"two={self.adapter('two', 2)}", "--lora-scale", "two=0.5")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        chat = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 16}
        text = {"prompt": "Hello", "temperature": 0, "max_tokens": 16}
        apis = {"/v1/chat/completions": (chat, lambda answer: answer["choices"][0]["message"]["content"]),
                "/v1/completions": (text, lambda answer: answer["choices"][0]["text"]),
                "/completion": ({"prompt": "Hello", "temperature": 0, "n_predict": 16}, lambda answer: answer["content"])}

        def says(path, **more):
            body, content = apis[path]
            return content(self.ask(path, **body, **more))

        def set_scales(*scales):
            request = urllib.request.Request(self.url + "/lora-adapters", json.dumps(scales).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
                return json.load(answer)

        def scales():
            return [adapter["scale"] for adapter in self.ask("/lora-adapters")]

        def item(number, scale):
            return {"id": number, "scale": scale}

        self.assertEqual([{"id": 0, "path": "one", "scale": 0}, {"id": 1, "path": "two", "scale": 0}], self.ask("/lora-adapters"))
        for path in apis:
            base, one, half = says(path), says(path, model="one"), says(path, model="two")
            two = says(path, lora=[item(1, 1.0)])
            self.assertEqual(4, len({base, one, half, two}), path)
            self.assertEqual(one, says(path, lora=[item(0, 1)]))
            self.assertEqual(half, says(path, lora=[item(0, 0.0), item(1, 0.5)]))
            self.assertEqual(two, says(path, model="two", lora=[item(1, 1.0)]))
            self.assertEqual(base, says(path, lora=[item(0, 0), item(1, 0)]))
            self.assertEqual(base, says(path, lora=[]))
            status, message = self.post(path, **apis[path][0], lora=[item(0, 0.5), item(1, 1.0)])
            self.assertEqual((400, "lora: adapters 0 and 1 at once are not supported: one may have a scale other than 0"),
                             (status, message))
            status, message = self.post(path, **apis[path][0], lora=[item(2, 1.0)])
            self.assertEqual((400, "lora: there is no adapter 2, /lora-adapters lists 2"), (status, message))
            status, message = self.post(path, **apis[path][0], model="two", lora=[item(0, 1.0)])
            self.assertEqual((400, 'lora: it is about "one", and the model is "two": one adapter answers a request'),
                             (status, message))
            self.assertEqual({"success": True}, set_scales(item(1, 1.0)))
            self.assertEqual([0, 1], scales())
            self.assertEqual(two, says(path))
            self.assertEqual(half, says(path, model="two"))
            self.assertEqual(base, says(path, lora=[item(0, 0)]))
            self.assertEqual(one, says(path, lora=[item(0, 1)]))
            self.assertEqual({"success": True}, set_scales())
            self.assertEqual([0, 0], scales())
            self.assertEqual(base, says(path))

    def counter(self, name):
        with urllib.request.urlopen(self.url + "/metrics", timeout=TIME_LIMIT_S) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line.startswith(f"kvasir_{name}{{")]
        return float(lines[0].rsplit(" ", 1)[1])

    def test_more_adapters_than_memory_holds(self):
        folder = self.folder / "adapters"
        folder.mkdir()
        names = [f"style{i}" for i in range(16)]
        for seed, name in enumerate(names, 1):
            self.adapter(f"adapters/{name}", seed)
        process = self.start("serve", LLAMA, "--port", "0", "--lora", f"first={self.adapter('first', 99)}", "--lora-dir",
                             str(folder), "--adapter-memory", "1M")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        body = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 16}

        def says(model):
            return self.ask("/v1/chat/completions", model=model, **body)["choices"][0]["message"]["content"]

        answers = {"llama-f32": says("llama-f32"), "first": says("first")}
        for name in names:
            self.assertEqual(200, self.post("/v1/load_lora_adapter", lora_name=name)[0])
            answers[name] = says(name)
        self.assertEqual(18, len(set(answers.values())))
        evictions = self.counter("adapter_evictions_total")
        self.assertGreater(evictions, 3)
        self.assertEqual(0, self.counter("adapter_reloads_total"))
        self.assertEqual(17, self.counter("adapters"))
        self.assertLess(self.counter("adapter_bytes"), 1 << 20)
        self.assertEqual(["first", *names], [model["id"] for model in self.ask("/v1/models")["data"]][1:])
        for name, answer in answers.items():
            self.assertEqual(answer, says(name), name)
        self.assertEqual(16, self.counter("adapter_reloads_total"))  # each came when another had just taken its place
        vectors = {name: json.dumps(self.ask("/v1/embeddings", model=name, input="Hello")["data"]) for name in names}
        self.assertEqual(16, len(set(vectors.values())))
        guided = self.ask("/v1/chat/completions", model=names[0], guided_choice=["yes", "no"], **body)
        self.assertIn(guided["choices"][0]["message"]["content"], ("yes", "no"))

        gone, other = names[1], names[2]  # whose places others took
        config = folder / gone / "adapter_config.json"
        config.rename(folder / gone / "was")
        shutil.rmtree(folder / other)
        self.adapter(f"adapters/{other}", 50)
        status, message = self.post("/v1/chat/completions", model=gone, **body)
        self.assertEqual(400, status)
        self.assertTrue(message.startswith(f'the adapter "{gone}" could not be loaded: {folder}/{gone}'), message)
        self.assertNotIn("\n", message)
        self.assertNotIn(says(other), answers.values())
        self.assertEqual(answers["llama-f32"], says("llama-f32"))
        self.assertEqual(answers["first"], says("first"))
        (folder / gone / "was").rename(config)
        self.assertEqual(answers[gone], says(gone))

    def test_without_folders_nothing_is_loaded(self):
        process = self.start("serve", LLAMA, "--port", "0", "--lora", f"one={self.adapter('one', 1)}")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0] if lines[1] else self.fail(process.stderr.read().decode())
        status, message = self.post("/v1/load_lora_adapter", lora_name="two", lora_path="one")
        self.assertEqual((403, "adapters come and go while the server runs where it was started with --lora-dir"), (status, message))

    def test_what_cannot_be_used_is_one_line(self):
        words = ["run", LLAMA, "Hello", "--lora"]
        self.refusal(BAD_FILE, *words, "nowhere", says="nowhere: there is no such adapter")
        self.refusal(BAD_FILE, *words, self.adapter("dora", 3, use_dora=True), says="use_dora: it is not supported")
        self.refusal(BAD_FILE, *words, self.adapter("saved", 4, modules_to_save=["lm_head"]), says="modules_to_save")
        good = self.adapter("good", 5)
        self.refusal(USAGE, *words, good, "--lora", good, says="run answers with one adapter, 2 are given")
        self.refusal(USAGE, "serve", LLAMA, "--port", "0", "--lora", f"llama-f32={good}", says="llama-f32 is a name of the model")
        self.refusal(USAGE, "serve", LLAMA, LLAMA.replace("f32", "q4_k"), "--port", "0", "--lora-dir", str(self.folder), says="--lora-dir: it goes with one model")
        self.refusal(USAGE, "serve", LLAMA, "--port", "0", "--lora-dir", f"{good}/adapter_config.json", says="--lora-dir")
        self.refusal(USAGE, "serve", LLAMA, "--port", "0", "--adapter-memory", "3", says="--adapter-memory must be at least 1.00 MiB")
        self.refusal(USAGE, *words, good, "--lora-scale", "much", says="--lora-scale much: it is no number")
        self.refusal(USAGE, *words, good, "--lora-scale", "other=1", says="no adapter is called so")


if __name__ == "__main__":
    unittest.main()
