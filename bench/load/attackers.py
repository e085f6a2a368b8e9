"""Clients that hold connections: headers that come byte by byte, and readers of streams who take nothing.

A library of connection_attack.py: `attack` runs in a process of its own, so that its work is not in the times that
the other measures.
"""
import collections
import json
import resource
import select
import socket
import time

NUM_ADDRESSES = 50
BYTE_PERIOD_S = 2.0  # between two bytes of one slow header
HEADER = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 4096
STREAM = json.dumps({"prompt": "Once upon a time", "max_tokens": 4000, "ignore_eos": True, "stream": True,
                     "temperature": 0, "logprobs": 20}).encode()
STREAM_REQUEST = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (len(STREAM), STREAM))


def raise_descriptor_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def address_of(index):
    """One of NUM_ADDRESSES: a server lets no address have all of its connections."""
    return (f"127.0.1.{index % NUM_ADDRESSES + 1}", 0)


def status_of(data):
    return data[9:12].decode() if data.startswith(b"HTTP/1.1 ") else "no answer"


class SlowHeaders:
    """Keeps `count` connections open that send a byte each BYTE_PERIOD_S; a closed one is opened again.

    They come within `spread_s`: with 0 the server's patience with all of them ends at the same moment.
    """

    def __init__(self, port, count, spread_s):
        self.port, self.poll = port, select.epoll()
        self.open = {}  # descriptor -> [socket, began, bytes sent, bytes received]
        self.ends = collections.Counter()  # status -> how many
        self.lifetimes_s = []
        self.num_connects = self.failed_connects = 0
        self.queue = collections.deque()  # (when, descriptor), each once while it is open
        for _ in range(count):
            self.connect()
            if spread_s:
                self.run_for(spread_s / count)

    def connect(self):
        try:
            client = socket.create_connection(("127.0.0.1", self.port), 5, address_of(self.num_connects))
        except OSError:
            self.failed_connects += 1
            return
        self.num_connects += 1
        client.setblocking(False)
        self.open[client.fileno()] = [client, time.monotonic(), 0, b""]
        self.poll.register(client, select.EPOLLIN)
        self.queue.append((time.monotonic(), client))

    def send_due(self):
        now = time.monotonic()
        while self.queue and self.queue[0][0] <= now:
            when, client = self.queue.popleft()
            if client.fileno() not in self.open:
                continue
            state = self.open[client.fileno()]
            try:
                client.send(HEADER[state[2]:state[2] + 1])
            except OSError:
                pass  # its end is read
            state[2] += 1
            self.queue.append((max(when + BYTE_PERIOD_S, now), client))

    def end(self, descriptor):
        client, began, _, received = self.open.pop(descriptor)
        self.poll.unregister(descriptor)
        client.close()
        self.ends[status_of(received)] += 1
        self.lifetimes_s.append(time.monotonic() - began)
        self.connect()

    def run_for(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.send_due()
            for descriptor, _ in self.poll.poll(min(left, 0.02), 256):
                try:
                    data = self.open[descriptor][0].recv(4096)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if data:
                    self.open[descriptor][3] += data
                else:
                    self.end(descriptor)


def stalled_reader(port, index):
    """A connection that asked for a stream; the kernel keeps as little for it as it may."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    reader.settimeout(10)
    reader.bind(address_of(index))
    reader.connect(("127.0.0.1", port))
    reader.sendall(STREAM_REQUEST)
    return reader


def first_bytes(reader):
    reader.settimeout(1)
    try:
        return reader.recv(4096)
    except OSError:
        return b""


def attack(port, num_headers, num_readers, spread_s, pipe):
    """Says "ready" when all have connected, goes on until something comes, then says what became of them."""
    raise_descriptor_limit()
    readers, failed_readers = [], 0
    for index in range(num_readers):
        try:
            readers.append(stalled_reader(port, index))
        except OSError:
            failed_readers += 1
    headers = SlowHeaders(port, num_headers, spread_s)
    pipe.send("ready")
    fewest = len(headers.open)
    while not pipe.poll():
        headers.run_for(0.5)
        fewest = min(fewest, len(headers.open))
    pipe.recv()
    answers = collections.Counter(status_of(first_bytes(reader)) for reader in readers)
    pipe.send({"open": len(headers.open), "fewest_open": fewest, "header_ends": dict(headers.ends),
               "header_lifetimes_s": headers.lifetimes_s, "failed_connects": headers.failed_connects,
               "reader_answers": dict(answers), "failed_readers": failed_readers})
