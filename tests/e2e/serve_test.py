"""kvasir serve as an operator meets it: what it prints, what it answers, how it stops."""
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time
import unittest
import urllib.error
import urllib.request

from command_line import BAD_FILE, DONE, GEMMA, INTERRUPTED, LLAMA, MACHINE, TIME_LIMIT_S, USAGE, CommandLineTest


class Serve(CommandLineTest):
    def serve(self, model, *args):
        process = self.start("serve", model, "--port", "0", *args)
        self.lines = [process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        self.url = self.lines[1].split()[0] if self.lines[1] else self.fail(process.stderr.read().decode())
        return process

    def post(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            return json.load(answer)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=TIME_LIMIT_S) as answer:
            return answer.read().decode()

    def test_a_model_that_is_written_to_ends_the_server(self):
        model = self.file("model.gguf", pathlib.Path(LLAMA).read_bytes())
        process = self.serve(model)
        other = self.file("other.gguf", pathlib.Path(LLAMA).read_bytes())
        os.chmod(model, 0o600)
        os.replace(other, model)  # another file under its name: the mapped one stays as it was
        time.sleep(1.2)
        self.assertIsNone(process.poll())
        process.terminate()
        process.wait(TIME_LIMIT_S)

        process = self.serve(model)
        with open(model, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"x")
        self.assertEqual(process.wait(TIME_LIMIT_S), BAD_FILE)
        self.assertRegex(process.stderr.read().decode(), rf"(?m)^kvasir: {re.escape(model)}: changed since it was opened")

    def test_three_lines_say_what_runs_where_and_how_to_ask(self):
        self.serve(LLAMA)
        self.assertTrue(self.lines[0].startswith(f"{LLAMA} (llama, F32): "), self.lines[0])
        self.assertIn("weights", self.lines[0])
        self.assertTrue(self.url.startswith("http://127.0.0.1:"))
        self.assertTrue(self.lines[2].startswith(f"curl {self.url}/v1/chat/completions"))

    def test_a_model_file_that_is_shortened_meanwhile_is_named(self):
        model = self.folder / "shortened.gguf"
        model.write_bytes(pathlib.Path(LLAMA).read_bytes())
        process = self.serve(model)
        os.truncate(model, 0)
        with self.assertRaises((urllib.error.URLError, ConnectionError)):
            self.post("/v1/completions", model="shortened", prompt="Hello", max_tokens=4)
        self.assertEqual(process.wait(TIME_LIMIT_S), BAD_FILE)
        said = process.stderr.read().decode().splitlines()[-1]
        self.assertTrue(said.startswith(f"kvasir: {model}: shorter than when it was opened"), said)

    def test_keys_that_are_added_at_once_are_all_kept(self):
        names = [f"team-{number}" for number in range(8)]
        for adding in [self.start("keys", "add", name, "--file", "keys") for name in names]:
            self.assertEqual(adding.wait(TIME_LIMIT_S), DONE)
        self.assertEqual(sorted(key["name"] for key in self.json("keys", "list", "--file", "keys")), names)

    def test_only_who_has_a_key_is_answered(self):
        made = self.json("keys", "add", "ann", "--file", "keys")
        self.assertEqual(made["name"], "ann")
        self.assertNotIn(made["key"], (self.folder / "keys").read_text())
        self.assertEqual([key["name"] for key in self.json("keys", "list", "--file", "keys")], ["ann"])
        self.refusal(USAGE, "keys", "add", "ann", "--file", "keys", says="already")
        self.refusal(BAD_FILE, "keys", "revoke", "bob", "--file", "keys", says="bob")
        self.serve(LLAMA, "--api-keys", "keys")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("/v1/models")
        self.assertEqual(refused.exception.code, 401)
        request = urllib.request.Request(self.url + "/v1/models", headers={"Authorization": f"Bearer {made['key']}"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
            self.assertEqual(json.load(answer)["data"][0]["id"], "llama-f32")

    def test_tenants_share_the_computation_of_a_public_prefix_alone(self):
        keys = [self.json("keys", "add", name, "--file", "keys")["key"] for name in ("ann", "bob")]
        public = "You are a careful assistant of the library. " * 6
        (self.folder / "public.txt").write_text(public + "\n")
        self.refusal(BAD_FILE, "serve", LLAMA, "--public-prefix", "missing.txt", says="missing.txt")
        self.serve(LLAMA, "--api-keys", "keys", "--public-prefix", "public.txt")

        def num_cached(key, path, **body):
            request = urllib.request.Request(
                self.url + path, json.dumps({"max_tokens": 1, **body}).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:
                return json.load(answer)["usage"]["prompt_tokens_details"]["cached_tokens"]

        def chat(system):
            return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": "Hi " * 40}]}

        for path, said, other in (
                ("/v1/completions", {"prompt": public + "Hi " * 40}, {"prompt": "x" + public}),
                ("/v1/chat/completions", chat(public), chat("x" + public))):
            with self.subTest(path):
                self.assertEqual(num_cached(keys[0], path, **said), 0)
                shared = num_cached(keys[1], path, **said)
                own = num_cached(keys[0], path, **said)
                self.assertGreater(shared, 0)
                self.assertGreater(own, shared)
                self.assertEqual(num_cached(keys[0], path, **other), 0)
                self.assertEqual(num_cached(keys[1], path, **other), 0)

    def test_every_limit_has_a_flag(self):
        reference = self.start("serve", "--api-reference").communicate(timeout=TIME_LIMIT_S)[0].decode()
        rows = re.findall(r"^\| .* \| (\d+)(?: s)? \| .* \| `(--[a-z-]+)` \|$", reference, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 22)
        self.serve(LLAMA, *(f"{flag}={max(1, int(most) - 1)}" for most, flag in rows))
        for field, limit, value in (("n", 15, 16), ("top_logprobs", 19, 20), ("stop", 15, ["x"] * 16)):
            with self.subTest(field), self.assertRaises(urllib.error.HTTPError) as refused:
                self.post("/v1/chat/completions", messages=[{"role": "user", "content": "Hi"}], max_tokens=1,
                          logprobs=True, **{field: value})
            self.assertEqual(refused.exception.code, 400)
            self.assertIn(f"the limit is {limit}", json.load(refused.exception)["error"]["message"])
        for args, says in ((["--max-body-bytes", "0"], "--max-body-bytes: takes a whole number from 1 to"),
                           (["--max-header-bytes", "4096"], "--max-request-line-bytes must be at most"),
                           (["--max-body-bytes", "64000000", "--request-memory", "64MiB"], "--request-memory must be"),
                           (["--guide-memory", "7"], "--guide-memory must be")):
            self.refusal(USAGE, "serve", LLAMA, *args, says=says)

    def test_answers_by_the_name_of_the_file(self):
        self.serve(LLAMA)
        self.assertEqual(json.loads(self.get("/v1/models"))["data"][0]["id"], "llama-f32")
        answer = self.post("/v1/chat/completions", model="llama-f32", max_tokens=4, temperature=0,
                           messages=[{"role": "user", "content": "Hi"}])
        run = self.json("run", LLAMA, "Hi", "--max-tokens", "4", "--temperature", "0")
        self.assertEqual(answer["choices"][0]["message"]["content"], run["text"])

    def test_a_prompt_of_one_token_is_echoed_with_its_place_among_the_logprobs(self):
        self.serve(LLAMA)
        for max_tokens in (0, 2):
            with self.subTest(max_tokens):
                choice = self.post("/v1/completions", prompt=[20], max_tokens=max_tokens, temperature=0, echo=True,
                                   logprobs=1)["choices"][0]
                self.assertEqual(len(choice["logprobs"]["tokens"]), 1 + max_tokens)
                self.assertIsNone(choice["logprobs"]["token_logprobs"][0])
                self.assertTrue(choice["text"].startswith(choice["logprobs"]["tokens"][0]))

    def test_the_likeliest_of_several_answers_is_given(self):
        self.serve(LLAMA)
        asked = {"prompt": "one two", "max_tokens": 6, "temperature": 1, "seed": 5}
        drawn = self.post("/v1/completions", n=4, logprobs=1, **asked)["choices"]
        means = [sum(choice["logprobs"]["token_logprobs"]) / len(choice["logprobs"]["token_logprobs"]) for choice in drawn]
        best = [drawn[i]["text"] for i in sorted(range(4), key=lambda i: -means[i])]
        answer = self.post("/v1/completions", best_of=4, **asked)
        self.assertEqual([choice["text"] for choice in answer["choices"]], best[:1])
        self.assertIsNone(answer["choices"][0]["logprobs"])
        self.assertEqual(answer["usage"]["search_tokens"], sum(len(choice["logprobs"]["tokens"]) for choice in drawn))
        self.assertLess(answer["usage"]["completion_tokens"], answer["usage"]["search_tokens"])
        two = self.post("/v1/completions", best_of=4, n=2, **asked)["choices"]
        self.assertEqual([choice["text"] for choice in two], best[:2])
        self.assertEqual([choice["index"] for choice in two], [0, 1])
        chat = {"messages": [{"role": "user", "content": "one"}], "max_tokens": 4, "temperature": 1, "seed": 5}
        self.assertEqual(len(self.post("/v1/chat/completions", best_of=3, **chat)["choices"]), 1)
        self.assertEqual("complete", answer["search"]["ended_by"])
        self.assertNotIn("search", self.post("/v1/completions", **asked))
        for fields, says in (({"best_of": 1, "n": 2}, "best_of must be at least n, 2, is 1"),
                             ({"best_of": 2, "stream": True}, "not with stream: true")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.post("/v1/completions", **asked, **fields)
            self.assertEqual(refused.exception.code, 400)
            self.assertIn(says, json.load(refused.exception)["error"]["message"])

    def test_a_search_keeps_its_limits(self):
        self.serve(LLAMA)
        long = {"prompt": "one two", "max_tokens": 200, "ignore_eos": True, "temperature": 1, "seed": 5}
        for fields in ({}, {"n": 4}):
            cut = self.post("/v1/completions", **long, **fields, search={"method": "best_of", "n": 4, "max_total_tokens": 42})
            self.assertEqual("max_total_tokens", cut["search"]["ended_by"])
            self.assertEqual(40, cut["usage"]["search_tokens"])
            self.assertEqual("length", cut["choices"][0]["finish_reason"])
        two = self.post("/v1/completions", **{**long, "prompt": ["one", "two"]}, search={"method": "beam", "n": 4, "max_total_tokens": 42})
        self.assertEqual("max_total_tokens", two["search"]["ended_by"])
        self.assertLessEqual(two["usage"]["search_tokens"], 42)
        timed = self.post("/v1/completions", **{**long, "max_tokens": 4000}, search={"method": "best_of", "n": 2, "max_ms": 20})
        self.assertEqual("max_ms", timed["search"]["ended_by"])
        self.assertLess(timed["usage"]["search_tokens"], 8000)
        ranked = self.post("/v1/completions", **{**long, "max_tokens": 9}, n=3, logprobs=1, search={"method": "best_of", "n": 3})["choices"]
        means = [sum(choice["logprobs"]["token_logprobs"]) / 9 for choice in ranked]
        self.assertEqual(sorted(means, reverse=True), means)
        vote = {**long, "max_tokens": 12, "ignore_eos": False, "search": {"method": "vote", "n": 9, "answer": "text"}}
        first = self.post("/v1/completions", **vote)
        self.assertIn(first["search"]["ended_by"], ("decided", "complete"))
        for _ in range(5):
            self.assertEqual(first["choices"], self.post("/v1/completions", **vote)["choices"])
        for wrong in ({"max_total_tokens": 0}, {"max_total_tokens": 1}, {"max_ms": "soon"}, {"max_total_token": 9}):
            with self.subTest(wrong), self.assertRaises(urllib.error.HTTPError) as refused:
                self.post("/v1/completions", **long, search={"method": "best_of", "n": 2, **wrong})
            self.assertEqual(400, refused.exception.code)
            self.assertIn("search." + next(iter(wrong)), json.load(refused.exception)["error"]["message"])

    def test_the_likeliest_answers_are_searched(self):
        self.serve(LLAMA)
        asked = {"prompt": "Once upon a time", "max_tokens": 6, "ignore_eos": True, "logprobs": 1}

        def search(**body):
            answer = self.post("/v1/completions", **asked, **body)
            return [(choice["text"], sum(choice["logprobs"]["token_logprobs"])) for choice in answer["choices"]], answer["usage"]

        found, usage = search(use_beam_search=True, n=4)
        self.assertEqual(sorted((total for _, total in found), reverse=True), [total for _, total in found])
        self.assertEqual(4, len({text for text, _ in found}))
        self.assertEqual((24, 21), (usage["completion_tokens"], usage["search_tokens"]))
        greedy, _ = search(temperature=0)
        self.assertGreaterEqual(found[0][1], greedy[0][1])
        self.assertEqual([found[0]], search(search={"method": "beam", "n": 4})[0])
        self.assertEqual(found[:2], search(use_beam_search=True, best_of=4, n=2)[0])
        self.assertEqual(greedy, search(use_beam_search=True)[0])
        for wrong, says in (({"n": 65}, "n"), ({"length_penalty": 11}, "length_penalty"), ({"guided_regex": "a+"}, "use_beam_search"),
                            ({"kv_budget": "30%"}, "use_beam_search")):
            with self.subTest(wrong), self.assertRaises(urllib.error.HTTPError) as refused:
                self.post("/v1/completions", **asked, use_beam_search=True, **wrong)
            self.assertEqual(400, refused.exception.code)
            self.assertIn(says, json.load(refused.exception)["error"]["message"])

    def test_what_is_only_scored_runs_layer_by_layer_with_the_numbers_of_what_is_continued(self):
        self.serve(GEMMA)
        prompt = [20 + i % 100 for i in range(160)]

        def complete(**body):
            return self.post("/v1/completions", prompt=prompt, temperature=0, **body)

        scored = complete(max_tokens=0, echo=True, logprobs=2)["choices"][0]["logprobs"]
        first = complete(max_tokens=1)
        self.assertEqual(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0)  # scoring left nothing
        self.assertEqual(complete(max_tokens=1)["usage"]["prompt_tokens_details"]["cached_tokens"], 144)
        continued = complete(max_tokens=1, echo=True, logprobs=2)["choices"][0]["logprobs"]
        for field in ("token_logprobs", "top_logprobs"):
            self.assertEqual(scored[field], continued[field][:160])
        hidden_bytes = re.search(r"^kvasir_hidden_bytes_peak\S* (\d+)$", self.get("/metrics"), re.MULTILINE)
        self.assertGreater(int(hidden_bytes[1]), 0)

    def test_a_model_without_template_says_how_to_get_one(self):
        self.serve(GEMMA, "--served-model-name", "tiny")
        self.assertIn("/v1/completions", self.lines[2])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.post("/v1/chat/completions", model="tiny", messages=[{"role": "user", "content": "Hi"}])
        self.assertEqual(refused.exception.code, 400)
        self.assertIn("--chat-template", refused.exception.read().decode())

    def test_a_kv_log_knows_answers_by_their_id(self):
        log = self.folder / "kv.db"
        process = self.serve(GEMMA, "--kv-log", log)
        answers = [self.post("/v1/completions", prompt=[20 + i] * 150, max_tokens=32, temperature=0, kv_budget=0.3)
                   for i in range(2)]
        # While the server runs, what is a moment old can be read.
        deadline = time.monotonic() + TIME_LIMIT_S
        while len(self.json("kv", "explain", log)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([s["client_id"] for s in self.json("kv", "explain", log)], [a["id"] for a in answers])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE)
        for sequence in self.json("kv", "explain", log):
            self.assertGreater(sequence["num_actions"], 0)
            self.assertGreater(sequence["tokens"], 150)

    def test_stops_on_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                process = self.serve(LLAMA)
                process.send_signal(number)
                self.assertEqual(process.wait(TIME_LIMIT_S), DONE)

    def test_nohup_keeps_it_alive(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        process = self.serve(LLAMA)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.get("/health")
        self.assertIsNone(process.poll())

    def test_a_second_signal_ends_running_requests(self):
        process = self.serve(LLAMA)

        def ask():
            try:
                self.post("/v1/completions", model="llama-f32", prompt="Hi", n=16, max_tokens=2000, ignore_eos=True)
            except (OSError, ValueError):
                pass  # its connection ends with the server

        client = threading.Thread(target=ask)
        client.start()
        self.addCleanup(client.join)
        while not re.search(r"^kvasir_requests_running.* [1-9]", self.get("/metrics"), re.M) and client.is_alive():
            time.sleep(0.01)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(TIME_LIMIT_S), (INTERRUPTED, DONE))
        self.assertLess(time.monotonic() - begin, 10)  # two seconds, and room for a loaded machine

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            self.refusal(MACHINE, "serve", LLAMA, "--port", port, says=port)


if __name__ == "__main__":
    unittest.main()
