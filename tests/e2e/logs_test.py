"""A log whose reader stalls, a pipe that nobody reads, a file at its limit: requests go on, and SIGTERM ends the server."""
import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

from command_line import DONE, LLAMA, MACHINE, TIME_LIMIT_S, USAGE, CommandLineTest

NUM_REQUESTS = 300
PIPE_BYTES = 4096


class Logs(CommandLineTest):
    def serve(self, *args, **streams):
        process = self.start("serve", LLAMA, "--port", "0", *args, **streams)
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.url = lines[1].split()[0]
        return process

    def ask(self, times=1):
        for _ in range(times):
            with urllib.request.urlopen(self.url + "/v1/models", timeout=10) as answer:
                self.assertEqual(json.load(answer)["object"], "list")

    def end(self, process):
        if process.poll() is None and process.stdout and not process.stdout.closed:
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(TIME_LIMIT_S), DONE)
            self.assertLess(time.monotonic() - began, 10)
        super().end(process)

    def test_a_stalled_reader_of_the_access_log_stops_nobody(self):
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.serve("--access-log", "-", stderr=write_end)
        os.close(write_end)
        self.ask(NUM_REQUESTS)  # a hundred times what the pipe holds
        self.addCleanup(os.close, read_end)

    def test_lines_that_nobody_took_are_counted(self):
        os.mkfifo(self.folder / "log")
        self.serve("--access-log", "log", "--kv-log", "kv.db")
        # Far more than the pipe and what waits for it hold.
        request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + b"x" * 120 + b"\r\n\r\n"
        address = urllib.parse.urlsplit(self.url)
        with socket.create_connection((address.hostname, address.port)) as client, client.makefile("rb") as answers:
            for _ in range(60):
                client.sendall(request * 100)
                for _ in range(100):
                    while (line := answers.readline().lower()) != b"\r\n":
                        if line.startswith(b"content-length: "):
                            length = int(line.split()[1])
                    answers.read(length)
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        dropped = {line.split('"')[1]: int(line.split()[-1]) for line in lines
                   if line.startswith("kvasir_log_lines_dropped_total{")}
        self.assertEqual(sorted(dropped), ["access", "kv", "server"])
        self.assertGreater(dropped["access"], 0)
        self.assertEqual((dropped["kv"], dropped["server"]), (0, 0))

    def test_a_kv_log_that_breaks_is_a_line_of_the_servers_log(self):
        process = self.serve("--kv-log", "kv.db")
        with contextlib.closing(sqlite3.connect(self.folder / "kv.db")) as database:
            database.execute("DROP TABLE steps")
        body = json.dumps({"prompt": [20] * 150, "max_tokens": 4, "kv_budget": 0.3, "ignore_eos": True}).encode()
        request = urllib.request.Request(self.url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIME_LIMIT_S):
            pass
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE)
        self.assertRegex(process.stderr.read().decode(), r"(?m)^\d{4}-\S+ warning kv\.db: cannot be written: ")

    def test_a_pipe_without_a_reader_stops_neither_start_nor_requests(self):
        os.mkfifo(self.folder / "log")
        self.serve("--access-log", "log")
        self.ask(NUM_REQUESTS)

    def test_a_reader_that_comes_later_gets_lines(self):
        os.mkfifo(self.folder / "log")
        self.serve("--access-log", "log")
        self.ask()
        with open(self.folder / "log", "rb", buffering=0) as reader:
            self.assertEqual(json.loads(reader.read(4096).splitlines()[0])["path"], "/v1/models")

    def test_a_file_at_its_limit_is_said_once(self):
        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        process = self.serve("--access-log", "log", preexec_fn=limit_files)
        self.ask(20)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE)
        said = process.stderr.read().decode()
        self.assertEqual(said.count("access log log: File too large"), 1, said)


class Keys(CommandLineTest):
    def names(self):
        return [key["name"] for key in self.json("keys", "list", "--file", "keys")]

    def test_keys_go_through_links(self):
        (self.folder / "real").mkdir()
        (self.folder / "keys").symlink_to("real/keys")
        self.kvasir("keys", "add", "ann", "--file", "keys")
        self.kvasir("keys", "add", "bob", "--file", "keys")
        self.kvasir("keys", "revoke", "ann", "--file", "keys")
        self.assertTrue((self.folder / "keys").is_symlink())
        self.assertIn("bob", (self.folder / "real" / "keys").read_text())
        self.assertNotIn("ann", (self.folder / "real" / "keys").read_text())

    def test_links_to_one_file_have_one_lock(self):
        (self.folder / "link").symlink_to("keys")
        adding = [self.start("keys", "add", f"n{i}", "--file", ("keys", "link")[i % 2]) for i in range(12)]
        for process in adding:
            self.assertEqual(process.wait(TIME_LIMIT_S), DONE, process.stderr.read())
        self.assertEqual(sorted(self.names()), sorted(f"n{i}" for i in range(12)))
        self.assertFalse((self.folder / "link.lock").exists())

    def test_links_in_a_circle_are_refused(self):
        (self.folder / "keys").symlink_to("other")
        (self.folder / "other").symlink_to("keys")
        self.refusal(MACHINE, "keys", "add", "ann", "--file", "keys", says="no regular file")
        self.assertTrue((self.folder / "keys").is_symlink())

    def test_a_key_that_nobody_saw_is_not_kept(self):
        self.kvasir("keys", "add", "ann", "--file", "keys")
        with open("/dev/full", "wb") as full:
            adding = self.start("keys", "add", "bob", "--file", "keys", stdout=full)
            self.assertEqual(adding.wait(TIME_LIMIT_S), MACHINE)
        self.assertEqual(self.names(), ["ann"])


class Batch(CommandLineTest):
    def test_answers_go_to_files_only(self):
        requests = self.file("in.jsonl", b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":1}\n')
        os.mkfifo(self.folder / "pipe")
        for out in ("pipe", "/dev/null", "/dev/stdout", "/dev/zero", "-"):
            with self.subTest(out):
                self.refusal(USAGE, "batch", LLAMA, requests, out, says="answers go to a file")

    def test_a_line_has_a_limit(self):
        line = b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":1}\n'
        requests = self.file("in.jsonl", line + b"x" * (9 << 20) + b"\n" + line)
        began = time.monotonic()
        done = self.kvasir("batch", LLAMA, requests, "out.jsonl", expect=1)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("in.jsonl:2: a line of more than 8388608 bytes", done.stderr)
        self.assertEqual((self.folder / "out.jsonl").read_text().count("\n"), 2)


if __name__ == "__main__":
    unittest.main()
