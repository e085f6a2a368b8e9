#!/usr/bin/env python3
"""Stored things through the openai client: responses that go on, in the background, over a restart.

Usage: stored_test.py [-v] [TEST]...   Skipped (77) without binary, model or client (install.sh).
"""
import os
import tempfile
import time
import unittest

import served

MODEL = "smollm2:135m"


def client_of(server, key="none"):
    import openai
    return openai.OpenAI(base_url=server.url + "/v1", api_key=server.keys.get(key, key), max_retries=0)


def wait_for(read, statuses, seconds=120):
    """What `read` gives once its status is one of them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = read()
        if found.status in statuses:
            return found
        time.sleep(0.1)
    raise AssertionError(f"still {found.status} after {seconds} s")


class Stored(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="kvasir-state-"))
        keys = {"keys": [{"name": "ann"}, {"name": "bob"}]}
        cls.server = cls.enterClassContext(served.serving(MODEL, keys, ("--state-dir", cls.folder)))
        cls.ann, cls.bob = client_of(cls.server, "ann"), client_of(cls.server, "bob")

    def respond(self, text, **more):
        return self.ann.responses.create(model=MODEL, input=text, max_output_tokens=16, temperature=0, **more)


class Responses(Stored):
    def test_a_conversation_goes_on(self):
        first = self.respond("My name is Ann.", instructions="Answer briefly.")
        second = self.respond("What is my name?", previous_response_id=first.id)
        self.assertEqual(second.previous_response_id, first.id)
        self.assertIsNone(second.instructions)
        self.assertGreater(second.usage.input_tokens, first.usage.output_tokens)
        whole = self.ann.responses.create(
            model=MODEL, max_output_tokens=16, temperature=0, store=False,
            input=[{"role": "user", "content": "My name is Ann."}, *first.output,
                   {"role": "user", "content": "What is my name?"}])
        self.assertEqual(whole.output_text, second.output_text)
        self.assertEqual(whole.usage.input_tokens, second.usage.input_tokens)

    def test_retrieve_and_delete(self):
        import openai
        made = self.respond("Hi", metadata={"a": "b"})
        found = self.ann.responses.retrieve(made.id)
        self.assertEqual(found.to_dict(), made.to_dict())
        with self.assertRaises(openai.NotFoundError):
            self.bob.responses.retrieve(made.id)
        self.ann.responses.delete(made.id)
        with self.assertRaises(openai.NotFoundError):
            self.ann.responses.retrieve(made.id)

    def test_a_stream_is_stored(self):
        with self.ann.responses.stream(model=MODEL, input="Hi", max_output_tokens=8) as stream:
            made = stream.get_final_response()
        self.assertEqual(self.ann.responses.retrieve(made.id).output_text, made.output_text)

    def test_input_items_come_in_pages(self):
        first = self.respond("one")
        second = self.respond("two", previous_response_id=first.id)
        items = list(self.ann.responses.input_items.list(second.id, limit=1, order="asc"))
        self.assertEqual([item.role for item in items], ["user", "assistant", "user"])
        self.assertEqual(items[0].content[0].text, "one")
        self.assertEqual(items[2].content[0].text, "two")

    def test_background(self):
        queued = self.respond("Count to ten.", background=True)
        self.assertEqual(queued.status, "queued")
        ended = wait_for(lambda: self.ann.responses.retrieve(queued.id), ("completed", "incomplete", "failed"))
        self.assertIn(ended.status, ("completed", "incomplete"))
        self.assertTrue(ended.output_text)

    def test_cancel(self):
        long = self.ann.responses.create(model=MODEL, input="Hi", background=True, max_output_tokens=4000,
                                         extra_body={"ignore_eos": True})
        self.assertEqual(self.ann.responses.cancel(long.id).status, "cancelled")
        self.assertEqual(self.ann.responses.retrieve(long.id).status, "cancelled")


class Restart(unittest.TestCase):
    def test_what_had_ended_is_there_and_what_ran_has_failed(self):
        with tempfile.TemporaryDirectory(prefix="kvasir-state-") as folder:
            options = ("--state-dir", folder, "--drain-timeout", "0")
            with served.serving(MODEL, None, options) as server:
                ann = client_of(server)
                done = ann.responses.create(model=MODEL, input="Hi", max_output_tokens=8)
                ran = ann.responses.create(model=MODEL, input="Hi", background=True, max_output_tokens=4000,
                                           extra_body={"ignore_eos": True})
                server.process.kill()
                server.process.wait()
            with served.serving(MODEL, None, options) as server:
                ann = client_of(server)
                self.assertEqual(ann.responses.retrieve(done.id).output_text, done.output_text)
                failed = ann.responses.retrieve(ran.id)
                self.assertEqual(failed.status, "failed")
                self.assertIn("stopped", failed.error.message)
                ann.responses.create(model=MODEL, input="more", previous_response_id=done.id, max_output_tokens=4)
            self.assertEqual({oct(os.stat(os.path.join(folder, name)).st_mode & 0o777) for name in os.listdir(folder)},
                             {"0o600"})


if __name__ == "__main__":
    served.need_model(MODEL)
    served.run_in_venv(["openai"])
    unittest.main()
