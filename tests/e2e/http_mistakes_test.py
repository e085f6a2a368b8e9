"""Typical mistakes of requests: each is answered with one line that names what to do."""
import http.client
import json
import socket
import ssl
import unittest

from command_line import LLAMA, TIME_LIMIT_S, CommandLineTest

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "hi"}]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]

# Method, path, body (an object or raw text), status, and words of the message.
MISTAKES = [
    ("GET", CHAT, None, 405, "/v1/chat/completions takes POST, not GET"),
    ("GET", "/v1/embeddings", None, 405, "takes POST, not GET"),
    ("GET", "/v1/messages", None, 405, "takes POST, not GET"),
    ("POST", "/v1/models", {}, 405, "takes GET, HEAD, not POST"),
    ("PUT", CHAT, {}, 405, "takes POST, not PUT"),
    ("POST", "/v1/chat/completion", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v1/chat/competions", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v1/embedding", {}, 404, "did you mean /v1/embeddings?"),
    ("GET", "/v1/model", None, 404, "did you mean /v1/models?"),
    ("GET", "/api/chat", None, 405, "/api/chat takes POST, not GET"),
    ("POST", "/api/create", {}, 404, "no such path: /api/create"),
    ("POST", "/completion", {}, 400, "prompt is missing"),
    ("POST", "/v1/audio/transcriptions", {}, 404, "no such path: /v1/audio/transcriptions; text is all that is read"),
    ("POST", "/v1/images/generations", {}, 404, "text is all that is read and made here"),
    ("POST", "/v1/chat", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v2/chat", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/invocations", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v1/complete", {}, 404, "did you mean /v1/messages?"),
    ("POST", "/v1/messages/batches", {}, 404, "did you mean /v1/batches?"),
    ("POST", "/v1/edits", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v1beta/models/m:generateContent", {}, 404, "did you mean /v1/chat/completions?"),
    ("POST", "/v1/embed", {}, 404, "did you mean /v1/embeddings?"),
    ("POST", "/embed", {}, 404, "did you mean /v1/embeddings?"),
    ("POST", "/predict", {}, 404, "did you mean /v1/score?"),
    ("GET", "/info", None, 404, "did you mean /v1/models?"),
    ("GET", "/get_server_info", None, 404, "did you mean /version?"),
    ("GET", "/health_generate", None, 404, "did you mean /health/ready?"),
    ("GET", "/healthz", None, 404, "did you mean /health?"),
    ("GET", "/startupz", None, 404, "did you mean /health/ready?"),
    ("GET", "/status", None, 404, "did you mean /health?"),
    ("GET", "/docs", None, 404, "did you mean /openapi.json?"),
    ("GET", "/redoc", None, 404, "did you mean /openapi.json?"),
    ("POST", "/v1/moderations", {}, 404, "texts are not judged here"),
    ("GET", "/v1/fine_tuning/jobs", None, 404, "models are not trained here"),
    ("POST", "/v1/assistants", {}, 404, "/v1/responses keeps conversations"),
    ("POST", "/v1/threads/t/runs", {}, 404, "/v1/responses keeps conversations"),
    ("POST", "/v1/conversations", {}, 404, "/v1/responses keeps conversations"),
    ("POST", "/v1/vector_stores", {}, 404, "/v1/embeddings makes them"),
    ("POST", "/v1/uploads", {}, 404, "did you mean /v1/files?"),
    ("POST", "/v1/load_lora_adapter", {}, 403, "started with --lora-dir"),
    ("GET", "/api/v0/models", None, 404, "did you mean /v1/models?"),
    ("POST", "/api/v1/generate", {}, 404, "did you mean /v1/completions?"),
    ("POST", "/v1/internal/encode", {}, 404, "did you mean /tokenize?"),
    ("POST", CHAT, "", 400, "the body is empty; it must be a JSON object"),
    ("POST", CHAT, "hello", 400, "not valid JSON"),
    ("POST", CHAT, "messages=hi&model=x", 400, "it begins messages=hi&model=x"),
    ("POST", CHAT, "{'messages': []}", 400, "it begins {'messages': []}"),
    ("POST", CHAT, '{"messages": [{"role": "user", "content": "hi"}', 400, "not valid JSON"),
    ("POST", CHAT, '{"messages": [],}', 400, "not valid JSON"),
    ("POST", CHAT, '[{"role": "user"}]', 400, "the body must be a JSON object"),
    ("POST", CHAT, {}, 400, "messages is missing"),
    ("POST", CHAT, {"mesages": HELLO}, 400, 'unknown field "mesages" ignored, did you mean "messages"?'),
    ("POST", CHAT, {"prompt": "hi"}, 400, 'messages is missing; unknown field "prompt"'),
    ("POST", CHAT, {"messages": []}, 400, "messages must not be empty"),
    ("POST", CHAT, {"messages": "hi"}, 400, "messages must be an array, got a string"),
    ("POST", CHAT, {"messages": [{"content": "hi"}]}, 400, "messages[0].role is missing"),
    ("POST", CHAT, {"messages": [{"role": "user", "content": 5}]}, 400, "messages[0].content must be a string"),
    ("POST", CHAT, {"messages": IMAGE}, 400, 'content of type "image_url" is not supported, only text'),
    ("POST", CHAT, {"messages": HELLO, "model": "gpt-4o"}, 404, 'the model "gpt-4o" is not served here, only "llama-f32"'),
    ("POST", CHAT, {"messages": HELLO, "max_tokens": "many"}, 400, "max_tokens must be an integer, got a string"),
    ("POST", CHAT, {"messages": HELLO, "max_tokens": -5}, 400, "max_tokens must be an integer of at least -2"),
    ("POST", CHAT, {"messages": HELLO, "temperature": "hot"}, 400, "temperature must be a number, got a string"),
    ("POST", CHAT, {"messages": HELLO, "n": 100}, 400, "n: 100 choices, the limit is 16 (--max-choices)"),
    ("POST", CHAT, {"messages": HELLO, "stream": "yes"}, 400, "stream must be a boolean, got a string"),
    ("POST", CHAT, {"messages": HELLO, "top_logprobs": 3}, 400, "top_logprobs needs logprobs: true"),
    ("POST", COMPLETIONS, {}, 400, "prompt is missing"),
    ("POST", COMPLETIONS, {"messages": HELLO}, 400, 'prompt is missing; unknown field "messages"'),
    ("POST", COMPLETIONS, {"prompt": []}, 400, "prompt must not be empty"),
    ("POST", COMPLETIONS, {"prompt": "hi", "logprobs": 99}, 400, "99 alternatives per token, the limit is 20 (--max-top-logprobs)"),
    ("POST", COMPLETIONS, {"prompt": [99999999]}, 400, "outside the vocabulary of"),
    ("POST", COMPLETIONS, {"prompt": "hi", "kv_budget": "150%"}, 400, "kv_budget must be a share above 0"),
    ("POST", COMPLETIONS, {"prompt": "hi", "kv_policy": "best"}, 400, "kv_policy must be one of none, ladder"),
    ("POST", "/v1/embeddings", {}, 400, "input is missing"),
    ("POST", "/v1/embeddings", {"imput": "hi"}, 400, 'did you mean "input"?'),
    ("POST", "/v1/messages", {"messages": HELLO}, 400, "max_tokens is missing"),
    ("POST", "/v1/messages", {"max_tokens": 2}, 400, "messages is missing"),
    ("POST", "/v1/responses", {}, 400, "input is missing"),
    ("POST", CHAT, {"messages": HELLO, "stop": ["a"] * 17}, 400, "stop: 17 stop sequences, the limit is 16 (--max-stops)"),
    ("POST", CHAT, {"messages": HELLO, "stop": "a" * 257}, 400, "(--max-stop-bytes)"),
    ("POST", COMPLETIONS, {"prompt": ["a"] * 129}, 400, "prompt: 129 prompts in one request, the limit is 128 (--max-prompts)"),
    ("POST", CHAT, '{"messages": ' + "[" * 70 + "]" * 70 + "}", 400, "(--max-json-depth)"),
    ("POST", CHAT, {"messages": HELLO, "tools": [{"type": "function", "function": {"name": "f"}}] * 129}, 400, "(--max-tools)"),
    ("POST", CHAT, {"messages": HELLO * 4097}, 400, "messages: 4097 messages, the limit is 4096 (--max-messages)"),
    ("POST", "/v1/embeddings", {"input": ["a"] * 2049}, 400, "(--max-inputs)"),
    ("POST", "/v1/batches", {"input_file_id": "file-x", "endpoint": CHAT, "completion_window": "24h"}, 404, "File with id 'file-x' not found"),
    ("GET", "/v1/models/gpt-4o", None, 404, 'the model "gpt-4o" is not served here'),
]


class HttpMistakes(CommandLineTest):
    def serve(self, *flags):
        process = self.start("serve", LLAMA, "--port", "0", *flags)
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.port = int(lines[1].split()[0].rsplit(":", 1)[1])

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT_S)
        raw = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method, path, raw, {"Content-Type": "application/json"} | headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def refusal(self, method, path, body, status, says, **headers):
        answer, text = self.ask(method, path, body, **headers)
        error = json.loads(text)["error"]
        message = error if isinstance(error, str) else error["message"]  # Ollama's paths have a text
        self.assertEqual(answer.status, status, message)
        self.assertIn(says, message)
        self.assertNotIn("\n", message)

    def test_every_mistake_is_answered_with_a_line_that_helps(self):
        self.serve()
        for mistake in MISTAKES:
            with self.subTest(mistake):
                self.refusal(*mistake)

    def test_headers(self):
        self.serve()
        answer, _ = self.ask("POST", CHAT, {"messages": HELLO, "max_token": 2, "max_tokens": 1})
        self.assertEqual(answer.status, 200)
        self.assertIn('unknown field "max_token" ignored, did you mean "max_tokens"?', answer.getheader("X-Kvasir-Warning"))
        answer, _ = self.ask("POST", CHAT, {"messages": HELLO, "max_tokens": 1}, **{"Content-Type": "text/plain"})
        self.assertEqual(answer.status, 200)  # the body counts, not what it is called
        self.refusal("GET", "/v1/models", None, 403, "--allowed-host names others", Host="evil.example")
        self.refusal("POST", CHAT, "xx", 415, "must be identity, got gzip", **{"Content-Encoding": "gzip"})

    def test_keys(self):
        made = self.json("keys", "add", "ann", "--file", "keys")["key"]
        self.serve("--api-keys", "keys")
        self.refusal("GET", "/v1/models", None, 401, "no API key came with the request: Authorization: Bearer KEY")
        self.refusal("GET", "/v1/models", None, 401, "not known here, or was revoked", Authorization="Bearer sk-wrong")
        for header in (made, "Basic YTpi", "Token " + made):
            self.refusal("GET", "/v1/models", None, 401, "must be: Bearer KEY", Authorization=header)

    def test_https_to_the_port_of_http(self):
        self.serve()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", self.port), TIME_LIMIT_S) as plain:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(plain)
        with socket.create_connection(("127.0.0.1", self.port), TIME_LIMIT_S) as plain:
            plain.sendall(b"\x16\x03\x01\x00\x40\x01")
            answer = b""
            while piece := plain.recv(4096):
                answer += piece
        self.assertIn(b"this port speaks http, not https", answer)

    def test_what_is_no_http(self):
        self.serve()
        for said in (b"hello there\r\n\r\n", b"GET /v1/models\r\n\r\n", b"GET /v1/models HTTP/2.0\r\nHost: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", self.port), TIME_LIMIT_S) as plain:
                plain.sendall(said)
                answer = b""
                while piece := plain.recv(4096):
                    answer += piece
            self.assertIn(b"malformed HTTP request: ", answer)


if __name__ == "__main__":
    unittest.main()
