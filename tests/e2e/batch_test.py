"""`kvasir batch`: every line answered once, whatever comes between."""
import fcntl
import json
import os
import signal
import time
import unittest

from command_line import BAD_FILE, INTERRUPTED, LLAMA, NO, USAGE, CommandLineTest


def line(name, prompt="Hello", **body):
    return {"custom_id": name, "method": "POST", "url": "/v1/completions",
            "body": {"prompt": prompt, "max_tokens": 4, "temperature": 0, **body}}


class Batch(CommandLineTest):
    def requests(self, lines, name="in.jsonl"):
        path = self.folder / name
        path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
        return path

    def answers(self, name="out.jsonl"):
        lines = [json.loads(text) for text in (self.folder / name).read_text().splitlines()]
        by_id = {answer["custom_id"]: answer["response"] for answer in lines}
        self.assertEqual(len(by_id), len(lines), "a request was answered twice")
        return by_id

    def test_answers_every_line_as_the_server_would(self):
        chat = {"custom_id": "chat", "url": "/v1/chat/completions",
                "body": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "temperature": 0, "ignore_eos": True}}
        embedding = {"custom_id": "e", "url": "/v1/embeddings", "body": {"input": "Hi"}}
        bare = {"prompt": "Hello", "temperature": 0}
        lines = [line(f"c{i}", "Hello " * i + "x") for i in range(40)] + [chat, embedding, bare]
        summary = self.json("batch", LLAMA, self.requests(lines), "out.jsonl", "--max-tokens", "2", "--max-batch", "3")
        self.assertEqual(summary["answered"], 43)
        self.assertEqual(summary["completion_tokens"], 40 * 4 + 3 + 2)
        answers = self.answers()
        self.assertEqual({answer["status_code"] for answer in answers.values()}, {200})
        self.assertEqual(answers["43"]["body"]["usage"]["completion_tokens"], 2)  # a bare body is named by its line
        self.assertEqual(len(answers["e"]["body"]["data"]), 1)
        alone = self.json("run", LLAMA, "Hello " * 5 + "x", "--raw", "--max-tokens", "4", "--temperature", "0")
        self.assertEqual(answers["c5"]["body"]["choices"][0]["text"], alone["text"])

    def test_what_is_refused_is_an_answer_too(self):
        lines = [line("good"), line("bad", temperature="hot"), line("stream", stream=True),
                 {"custom_id": "nowhere", "url": "/v1/none", "body": {}}, "no JSON", {"custom_id": 7, "body": {}}]
        done = self.kvasir("batch", LLAMA, self.requests(lines), "out.jsonl", expect=NO)
        self.assertIn("in.jsonl:5: not a JSON object", done.stderr)
        self.assertIn("in.jsonl:6: custom_id", done.stderr)
        status = {name: answer["status_code"] for name, answer in self.answers().items()}
        self.assertEqual(status, {"good": 200, "bad": 400, "stream": 400, "nowhere": 404})

    def test_one_answer_has_one_name(self):
        lines = [line("a"), line("3"), {"prompt": "Hello", "max_tokens": 2}, line("a", "Another"), line("b", "cut \ud83d")]
        done = self.kvasir("batch", LLAMA, self.requests(lines), "out.jsonl", expect=NO)
        self.assertIn("in.jsonl:3: custom_id 3 is that of line 2", done.stderr)
        self.assertIn("in.jsonl:4: custom_id a is that of line 1", done.stderr)
        self.assertEqual(set(self.answers()), {"a", "3", "b"})

    def test_two_at_once_do_not_write_one_output(self):
        path = self.requests([line("a")])
        with open(self.folder / "out.jsonl", "w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)  # as a run does
            done = self.kvasir("batch", LLAMA, path, "out.jsonl", "--resume", expect=USAGE)
            self.assertIn("out.jsonl: another process", done.stderr)
        self.kvasir("batch", LLAMA, path, "out.jsonl", "--resume")
        self.assertEqual(set(self.answers()), {"a"})

    def test_an_input_is_no_output(self):
        path = self.requests([line("a")])
        path.write_text(path.read_text() + "cut off")
        before = path.read_text()
        refused = self.kvasir("batch", LLAMA, path, path, "--resume", expect=USAGE)
        self.assertIn("is IN and OUT", refused.stderr)
        self.assertEqual(path.read_text(), before)

    def test_goes_on_where_it_was_interrupted(self):
        lines = [line(f"c{i}", max_tokens=200, ignore_eos=True) for i in range(60)]
        path = self.requests(lines)
        process = self.start("batch", LLAMA, path, "out.jsonl", "--max-batch", "2")
        out = self.folder / "out.jsonl"
        while not (out.exists() and out.stat().st_size > 0):
            time.sleep(0.02)
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        before = self.answers()
        if process.returncode == INTERRUPTED:
            self.assertLess(len(before), 60)
        with open(out, "a") as file:
            file.write('{"custom_id":"c59","resp')  # as if it had been killed while writing
        refused = self.kvasir("batch", LLAMA, path, "out.jsonl", expect=USAGE)
        self.assertIn("--resume", refused.stderr)
        summary = self.json("batch", LLAMA, path, "out.jsonl", "--resume")
        self.assertEqual(summary["skipped"], len(before))
        answers = self.answers()
        self.assertEqual(set(answers), {f"c{i}" for i in range(60)})
        self.assertEqual({answer["status_code"] for answer in answers.values()}, {200})

    def test_reads_a_pipe_and_waits_for_company(self):
        done = self.kvasir("batch", LLAMA, "-", "out.jsonl", "--max-wait-ms", "50",
                           stdin=(json.dumps(line("a")) + "\n" + json.dumps(line("b"))).encode())
        self.assertEqual(set(self.answers()), {"a", "b"})
        self.assertIn("2 answered (0 refused)", done.stderr)

    def test_a_pipe_without_a_writer_holds_up_no_signal(self):
        os.mkfifo(self.folder / "pipe")
        process = self.start("batch", LLAMA, "pipe", "out.jsonl")
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), INTERRUPTED)

    def test_reads_a_named_pipe_to_its_end(self):
        os.mkfifo(self.folder / "pipe")
        process = self.start("batch", LLAMA, "pipe", "out.jsonl")
        (self.folder / "pipe").write_text(json.dumps(line("a")) + "\n" + json.dumps(line("b")) + "\n")
        self.assertEqual(process.wait(30), 0)
        self.assertEqual(set(self.answers()), {"a", "b"})

    def test_a_file_that_is_none(self):
        self.kvasir("batch", LLAMA, "missing.jsonl", "out.jsonl", expect=BAD_FILE)
        self.kvasir("batch", LLAMA, self.folder, "out.jsonl", expect=BAD_FILE)
        (self.folder / "other.txt").write_text("something else\n")
        self.kvasir("batch", LLAMA, self.requests([line("a")]), "other.txt", "--resume", expect=BAD_FILE)
        self.assertEqual((self.folder / "other.txt").read_text(), "something else\n")


if __name__ == "__main__":
    unittest.main()
