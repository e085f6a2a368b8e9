"""What clients send first: each body is answered in every API that has it, whole and streamed."""
import http.client
import json
import unittest

from command_line import LLAMA, TIME_LIMIT_S, CommandLineTest
from first_contact_bodies import HELLO, KINDS

# The path, the least body, and what the last event of a stream has.
APIS = {
    "c": ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 3, "temperature": 0}, "data: [DONE]"),
    "p": ("/v1/completions", {"prompt": "hi", "max_tokens": 3, "temperature": 0}, "data: [DONE]"),
    "r": ("/v1/responses", {"input": "hi", "max_output_tokens": 3, "temperature": 0}, "response."),
    "m": ("/v1/messages", {"messages": HELLO, "max_tokens": 3, "temperature": 0}, "event: message_stop"),
}
LEAST_CHECKS = 200


class FirstContact(CommandLineTest):
    def serve(self, *arguments):
        process = self.start("serve", *arguments, "--port", "0")
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.assertIn("http://", lines[1], process.stderr.read().decode() if not lines[1] else "")
        self.connection = http.client.HTTPConnection("127.0.0.1", int(lines[1].split()[0].rsplit(":", 1)[1]),
                                                     timeout=TIME_LIMIT_S)
        self.addCleanup(self.connection.close)

    def ask(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.getheader("X-Kvasir-Warning", ""), answer.read().decode()

    def check(self, api, members, says):
        path, least, last = APIS[api]
        for stream in (False, True):
            status, warning, text = self.ask(path, least | members | ({"stream": True} if stream else {}))
            self.assertEqual(status, 200, text)
            if says:
                self.assertIn(says, warning)
            if stream:
                self.assertIn(last, text.strip().split("\n\n")[-1])
                self.assertNotIn('"error":{', text)
            self.num_checks += 1

    def test_each_body_is_answered(self):
        self.serve(LLAMA)
        self.num_checks = 0
        for kind, rows in KINDS.items():
            for name, bodies, says in rows:
                for api, members in bodies.items():
                    with self.subTest(kind=kind, body=name, api=APIS[api][0]):
                        self.check(api, members, says)
        self.assertGreater(self.num_checks, LEAST_CHECKS)


if __name__ == "__main__":
    unittest.main()
