#!/usr/bin/env python3
"""Stored things through the openai client: responses, files and batches, also over a restart.

Usage: stored_test.py [-v] [TEST]...   Skipped (77) without binary, model or client (install.sh).
"""
import json
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
        *_, last = self.ann.responses.create(model=MODEL, input="Hi", max_output_tokens=8, stream=True)
        self.assertEqual(self.ann.responses.retrieve(last.response.id), last.response)

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


def lines(count, max_tokens=8, **more):
    """A batch's input of chats with the custom_ids 0, 1, ..."""
    bodies = ({"model": MODEL, "messages": [{"role": "user", "content": f"Say {number}"}], "max_tokens": max_tokens,
               **more} for number in range(count))
    return "".join(json.dumps({"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions",
                               "body": body}) + "\n" for number, body in enumerate(bodies)).encode()


ENDS = ("completed", "failed", "cancelled", "expired")


class FilesAndBatches(Stored):
    def upload(self, content):
        return self.ann.files.create(file=("in.jsonl", content), purpose="batch")

    def begin(self, file):
        return self.ann.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions",
                                       completion_window="24h", metadata={"job": "1"})

    def answers(self, file_id):
        return [json.loads(line) for line in self.ann.files.content(file_id).text.splitlines()]

    def test_files(self):
        import openai
        made = self.upload(lines(1))
        self.assertEqual(made.bytes, len(lines(1)))
        self.assertEqual(self.ann.files.retrieve(made.id), made)
        self.assertEqual(self.ann.files.content(made.id).read(), lines(1))
        self.assertIn(made.id, [file.id for file in self.ann.files.list(limit=1)])
        self.assertNotIn(made.id, [file.id for file in self.bob.files.list()])
        with self.assertRaises(openai.NotFoundError):
            self.bob.files.content(made.id)
        self.assertTrue(self.ann.files.delete(made.id).deleted)
        with self.assertRaises(openai.NotFoundError):
            self.ann.files.retrieve(made.id)

    def test_a_batch_is_answered(self):
        begun = self.begin(self.upload(lines(12) + lines(1, n=99).replace(b'"0"', b'"bad"')))
        self.assertEqual(begun.metadata, {"job": "1"})
        ended = wait_for(lambda: self.ann.batches.retrieve(begun.id), ENDS)
        self.assertEqual(ended.status, "completed")
        self.assertEqual(ended.request_counts.to_dict(), {"total": 13, "completed": 12, "failed": 1})
        output = self.answers(ended.output_file_id)
        self.assertEqual({line["custom_id"] for line in output}, {str(number) for number in range(12)})
        self.assertTrue(all(line["response"]["body"]["choices"][0]["message"]["content"] for line in output))
        refused, = self.answers(ended.error_file_id)
        self.assertEqual((refused["custom_id"], refused["response"]["status_code"]), ("bad", 400))
        self.assertIn(begun.id, [batch.id for batch in self.ann.batches.list(limit=1)])

    def test_a_batch_is_cancelled(self):
        begun = self.begin(self.upload(lines(40, max_tokens=2000, ignore_eos=True)))
        self.assertIn(self.ann.batches.cancel(begun.id).status, ("cancelling", "cancelled"))
        self.assertEqual(wait_for(lambda: self.ann.batches.retrieve(begun.id), ENDS).status, "cancelled")

    def test_a_chat_is_answered_beside_a_batch(self):
        begun = self.begin(self.upload(lines(60, max_tokens=200, ignore_eos=True)))
        wait_for(lambda: self.ann.batches.retrieve(begun.id), ("in_progress",))
        began = time.monotonic()
        self.ann.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}], max_tokens=4)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.ann.batches.retrieve(begun.id).status, "in_progress")
        self.ann.batches.cancel(begun.id)


class Restart(unittest.TestCase):
    def test_a_batch_goes_on(self):
        with tempfile.TemporaryDirectory(prefix="kvasir-state-") as folder:
            options = ("--state-dir", folder, "--drain-timeout", "0")
            with served.serving(MODEL, None, options) as server:
                ann = client_of(server)
                file = ann.files.create(file=("in.jsonl", lines(60)), purpose="batch")
                begun = ann.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions",
                                           completion_window="24h")
                while ann.batches.retrieve(begun.id).request_counts.completed == 0:
                    time.sleep(0.01)
                server.process.kill()
                server.process.wait()
            with served.serving(MODEL, None, options) as server:
                ann = client_of(server)
                ended = wait_for(lambda: ann.batches.retrieve(begun.id), ENDS)
                self.assertEqual(ended.request_counts.to_dict(), {"total": 60, "completed": 60, "failed": 0})
                answered = ann.files.content(ended.output_file_id).text.splitlines()
                self.assertEqual(len({json.loads(line)["custom_id"] for line in answered}), len(answered))

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
