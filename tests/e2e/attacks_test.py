"""Clients that mean harm, without a key: memory, health and slots stay within their bounds."""
import concurrent.futures
import json
import re
import resource
import signal
import socket
import struct
import threading
import time
import unittest
import urllib.error
import urllib.request

from command_line import DONE, LLAMA, MACHINE, TIME_LIMIT_S, CommandLineTest

NUM_CONNECTIONS = 4
NUM_CALLS = 10000  # of each; gRPC held 27 KiB for one that was reset
MAX_GROWTH_KIB = 100 << 10
HEADERS, RESET, SETTINGS = 1, 3, 4
ENHANCE_YOUR_CALM = 11
NUM_SMALL_WORDS, NUM_LARGE_WORDS = 100, 2000000


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEAD = (b"\x83\x86" + literal(b":path", b"/kvasir.v1.Kvasir/Generate") + literal(b":authority", b"x")
        + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers"))


class ResetFlood(threading.Thread):
    """Calls that are reset at once (CVE-2023-44487); `end` is what the server sent last."""

    def __init__(self, port):
        super().__init__()
        self.port, self.end = port, b""

    def run(self):
        calls = b"".join(frame(HEADERS, 4, 2 * i + 1, HEAD) + frame(RESET, 0, 2 * i + 1, struct.pack(">I", 8))
                         for i in range(NUM_CALLS))
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client:
            try:
                client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0) + calls)
            except OSError:
                pass  # the server takes no more; what it said is there
            try:
                while piece := client.recv(65536):
                    self.end = (self.end + piece)[-17:]
            except OSError:
                pass


class Attacks(CommandLineTest):
    def serve(self, *args):
        process = self.start("serve", LLAMA, "--port", "0", *args)
        lines = b"".join(process.stdout.readline() for _ in range(3)).decode()
        self.url = re.search(r"http://\S+", lines)[0]
        self.lines = lines
        return process

    def metric(self, name):
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:
            return int(float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M)[1]))

    def await_no_other_connection(self):
        deadline = time.monotonic() + 5
        while (connections := self.metric("kvasir_http_connections")) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(connections, 1)

    def ask(self, num_words):
        """The status of a completion's answer, or how its connection ended."""
        body = json.dumps({"prompt": "a " * num_words, "max_tokens": 8}).encode()
        request = urllib.request.Request(self.url + "/v1/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code
        except TimeoutError:
            return "timeout"
        except OSError as error:
            return "timeout" if isinstance(getattr(error, "reason", None), TimeoutError) else "closed"

    def leave_room(self, process, room_bytes):
        if self.size_kib(process) > 4 << 20:
            self.skipTest("a sanitizer's process takes terabytes of addresses")
        limit_bytes = (self.size_kib(process) << 10) + room_bytes
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))

    @staticmethod
    def size_kib(process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmSize:\s+(\d+)", status.read())[1])

    @staticmethod
    def peak_kib(process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])

    def test_a_flood_of_resets_fills_no_memory(self):
        process = self.serve("--grpc-port", "0")
        before_kib = self.peak_kib(process)
        floods = [ResetFlood(int(re.search(r"gRPC on port (\d+)", self.lines)[1])) for _ in range(NUM_CONNECTIONS)]
        for flood in floods:
            flood.start()
        while any(flood.is_alive() for flood in floods):
            began = time.monotonic()
            with urllib.request.urlopen(self.url + "/health/live", timeout=10) as answer:
                self.assertEqual(answer.status, 200)
            self.assertLess(time.monotonic() - began, 2)
            time.sleep(0.1)
        self.assertLess(self.peak_kib(process) - before_kib, MAX_GROWTH_KIB)
        self.assertEqual(self.metric("kvasir_grpc_connections_calmed_total"), NUM_CONNECTIONS)
        told = [flood for flood in floods if flood.end[-4:] == struct.pack(">I", ENHANCE_YOUR_CALM)]
        self.assertTrue(told)
        self.await_no_other_connection()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE)

    def test_a_server_without_memory_for_a_thread_ends_in_order(self):
        process = self.serve()
        self.metric("kvasir_http_connections")
        self.leave_room(process, 4 << 20)  # a thread's stack takes 8 MiB
        self.await_no_other_connection()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE, process.stderr.read().decode())

    def test_requests_without_memory_end_and_the_server_does_not(self):
        for room_mib in (0, 2, 8, 32):
            with self.subTest(room_mib=room_mib):
                process = self.serve("--memory", "600M")
                self.metric("kvasir_http_connections")  # its threads run
                self.leave_room(process, room_mib << 20)
                words = (10, NUM_SMALL_WORDS, NUM_LARGE_WORDS, NUM_SMALL_WORDS, NUM_LARGE_WORDS * 3 // 2, 50, 10) * 3
                with concurrent.futures.ThreadPoolExecutor(len(words)) as clients:
                    ends = list(zip(words, clients.map(self.ask, words)))
                self.assertNotIn("timeout", [end for _, end in ends])
                # Of a large one that is refused while it comes TCP may lose what was said.
                small = [end for num_words, end in ends if num_words <= NUM_SMALL_WORDS]
                self.assertLessEqual(set(small), {200, 503, "closed"}, ends)
                # Connections that clients saw end may still give their memory back.
                deadline = time.monotonic() + 10
                while (last := self.ask(10)) in (503, "closed") and time.monotonic() < deadline:
                    time.sleep(0.05)
                if last != 200:  # what became of the server says more than the requests do
                    process.send_signal(signal.SIGTERM)
                    process.wait(TIME_LIMIT_S)
                    self.fail(f"{last} after {ends}; the server ended with {process.returncode}: {process.stderr.read().decode()}")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(TIME_LIMIT_S), DONE, process.stderr.read().decode())

    def test_grpc_without_memory_takes_no_connection(self):
        process = self.serve("--grpc-port", "0")
        self.metric("kvasir_http_connections")  # its threads run
        port = int(re.search(r"gRPC on port (\d+)", self.lines)[1])
        self.leave_room(process, 4 << 20)
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
                try:
                    self.assertEqual(client.recv(1), b"")
                except ConnectionResetError:
                    pass
        self.assertEqual(self.ask(10), 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE, process.stderr.read().decode())

    def test_grpc_whose_memory_ends_does_not_abort(self):
        process = self.serve("--grpc-port", "0")
        self.metric("kvasir_http_connections")  # its threads run
        port = int(re.search(r"gRPC on port (\d+)", self.lines)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
            self.assertTrue(client.recv(1))
            self.leave_room(process, 0)
            try:
                for i in range(200):
                    client.sendall(frame(HEADERS, 4, 2 * i + 1, HEAD))
                client.settimeout(1)
                while client.recv(65536):
                    pass
            except OSError:
                pass
        process.send_signal(signal.SIGTERM)
        code = process.wait(TIME_LIMIT_S)
        said = process.stderr.read().decode()
        self.assertIn(code, (DONE, MACHINE), said)
        # A call whose end found no memory is not waited for: the server stops by its own limit, and says so.
        self.assertTrue(code == DONE or "kvasir: out of memory" in said or "did not end within 15 s of being cancelled" in said, said)

    def test_grpc_without_memory_to_start_is_refused(self):
        process = self.serve()
        limit_bytes = (self.size_kib(process) << 10) + (32 << 20)
        refused = self.start("serve", LLAMA, "--port", "0", "--grpc-port", "0",
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)))
        self.assertEqual(refused.wait(TIME_LIMIT_S), MACHINE)
        # Where the memory ends depends on which thread takes its arena first.
        self.assertRegex(refused.stderr.read().decode(), r"^kvasir: (--grpc-port: gRPC needs .* ulimit -v leaves .*|"
                         r"out of memory \(see --memory, ulimit -v\)|no thread can be started: .*)\n$")


if __name__ == "__main__":
    unittest.main()
