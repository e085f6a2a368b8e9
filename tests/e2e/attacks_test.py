"""Clients that mean harm, without a key: memory, health and slots stay within their bounds."""
import re
import resource
import signal
import socket
import struct
import threading
import time
import unittest
import urllib.request

from command_line import DONE, LLAMA, TIME_LIMIT_S, CommandLineTest

NUM_CONNECTIONS = 4
NUM_CALLS = 10000  # of each; gRPC held 27 KiB for one that was reset
MAX_GROWTH_KIB = 100 << 10
HEADERS, RESET, SETTINGS = 1, 3, 4
ENHANCE_YOUR_CALM = 11


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
        limit_bytes = (self.size_kib(process) << 10) + (4 << 20)  # a thread's stack takes 8 MiB
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        self.await_no_other_connection()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE, process.stderr.read().decode())


if __name__ == "__main__":
    unittest.main()
