"""The unit under a real systemd: a Debian boots in a container with the package in it, and kvasir.service starts,
serves, drains, and comes back when it dies or hangs.

    unit_test.py

Needs root, mmdebstrap and systemd-nspawn (tests/deploy/install.sh) and a Debian mirror. Exit codes: 0, 1, 77 skipped.
"""
import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import tempfile
import threading
import time
import unittest

from booted_root import BootedRoot
from clean_root import ROOT, make_package, make_root, need

UNIT = "kvasir.service"
MODEL = ROOT / "tests/cases/models/llama-f32.gguf"
TIME_LIMIT_S = 120


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Stream(threading.Thread):
    """A streamed completion, and whether it came to its end."""

    def __init__(self, port):
        super().__init__()
        self.port, self.text, self.first = port, b"", threading.Event()
        self.start()
        self.first.wait(TIME_LIMIT_S)

    def run(self):
        body = {"prompt": "the quick", "max_tokens": 1000, "ignore_eos": True, "stream": True, "n": 8}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT_S)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            for line in connection.getresponse():
                self.text += line
                self.first.set()

    def is_whole(self):
        self.join(TIME_LIMIT_S)
        return self.text.count(b'"finish_reason":"length"') == 8 and self.text.rstrip().endswith(b"data: [DONE]")


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="kvasir-unit-")
        cls.addClassCleanup(folder.cleanup)
        cls.package = make_package()
        root = pathlib.Path(folder.name) / "root"
        make_root(root, cls.package, "systemd", "systemd-sysv", "dbus")
        shutil.copy(MODEL, root / "var/lib/kvasir/tiny.gguf")
        (root / "var/lib/kvasir/tiny.gguf").chmod(0o644)
        cls.port = free_port()
        cls.settings = root / "etc/kvasir/kvasir.toml"
        cls.as_installed = cls.settings.read_text()
        cls.system = BootedRoot(root)
        cls.addClassCleanup(cls.system.power_off)
        cls.system.boot()

    def setUp(self):
        self.system.inside("systemctl", "stop", UNIT)
        self.system.inside_try("systemctl", "reset-failed", UNIT)  # refused while systemd has not looked at it

    def start(self, more="", top=""):
        self.settings.write_text(f'{top}\n[serve]\nmodel = "tiny.gguf"\nport = {self.port}\n{more}\n')
        done = self.system.inside_try("systemctl", "restart", UNIT)
        self.assertEqual(done.returncode, 0, self.system.journal(UNIT))
        return self.system.shows(UNIT, "MainPID")[0]

    def ask(self, path="/health/ready", key=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT_S)
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body),
                           {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {}))
        try:
            return connection.getresponse().status
        finally:
            connection.close()

    def await_answer(self, status, *request, **options):
        deadline = time.monotonic() + TIME_LIMIT_S
        while (found := self.ask(*request, **options)) != status:
            self.assertLess(time.monotonic(), deadline, f"{found} instead of {status}")
            time.sleep(0.1)

    def process(self, pid):
        """/proc/PID/status inside."""
        text = self.system.inside("cat", f"/proc/{pid}/status")
        return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines())}

    def test_as_installed_it_waits_for_a_model_and_does_not_try_again(self):
        self.settings.write_text(self.as_installed)
        self.assertEqual(self.system.inside_try("systemctl", "is-enabled", UNIT).stdout.strip(), "disabled")
        self.assertNotEqual(self.system.inside_try("systemctl", "start", UNIT).returncode, 0)
        self.assertEqual(self.system.shows(UNIT, "ActiveState", "ExecMainStatus", "NRestarts"), ["failed", "3", "0"])
        self.assertIn("get it with: kvasir pull smollm2:135m", self.system.journal(UNIT))

    def test_it_has_started_when_it_answers_and_stops_when_told(self):
        self.system.inside("systemctl", "enable", UNIT)
        self.start()
        self.assertEqual(self.ask(), 200)
        self.assertEqual(self.system.shows(UNIT, "ActiveState", "SubState", "StatusText"),
                         ["active", "running", f"tiny at http://127.0.0.1:{self.port}"])
        self.system.inside("env", "KVASIR_CONFIG=/etc/kvasir/kvasir.toml", "kvasir", "health")
        self.system.inside("systemctl", "stop", UNIT)
        self.assertEqual(self.system.shows(UNIT, "ActiveState", "Result", "ExecMainStatus"),
                         ["inactive", "success", "0"])

    def test_it_may_do_little(self):
        status = self.process(self.start())
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(status["Seccomp"], "2")
        self.assertEqual([int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")], [0] * 4)
        user = self.system.inside("id", "--user", "kvasir").strip()
        self.assertEqual(status["Uid"].split(), [user] * 4)

    def test_everything_that_writes_files_works_in_it(self):
        self.start('kv-budget = "0.3"\nkv-log = "/var/lib/kvasir/kv.db"\n'
                   'access-log = "/var/lib/kvasir/access.log"', top='memory = "600MiB"')
        for _ in range(2):
            self.assertEqual(self.ask("/v1/completions", body={"prompt": "the quick " * 60, "max_tokens": 64}), 200)
        for name in ("kv.db", "access.log"):
            self.assertEqual(self.system.inside("stat", "-c", "%U %a", f"/var/lib/kvasir/{name}").strip(), "kvasir 600")
        self.assertNotIn("warning", self.system.journal(UNIT))

    def test_grpc_works_in_it(self):
        port = free_port()
        self.settings.write_text(f'[serve]\nmodel = "tiny.gguf"\nport = {self.port}\ngrpc-port = {port}\n')
        if self.system.inside_try("systemctl", "restart", UNIT).returncode != 0:
            self.assertIn("this build has no gRPC", self.system.journal(UNIT))
            self.skipTest("built without gRPC")
        with socket.create_connection(("127.0.0.1", port), TIME_LIMIT_S) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
            self.assertEqual(connection.recv(9)[3], 4)  # HTTP/2's SETTINGS

    def test_keys_count_without_a_restart(self):
        def keys(*words):
            return self.system.inside("runuser", "-u", "kvasir", "--", "kvasir", "keys", *words, "--file",
                                      "/var/lib/kvasir/keys").strip()
        first = keys("add", "ann")
        self.start('api-keys = "/var/lib/kvasir/keys"')
        self.assertEqual(self.ask("/v1/models"), 401)
        self.assertEqual(self.ask("/v1/models", key=first), 200)
        second = keys("add", "bob")
        keys("revoke", "ann")
        self.await_answer(200, "/v1/models", key=second)
        self.await_answer(401, "/v1/models", key=first)

    def test_a_stop_lets_streams_finish(self):
        self.start()
        stream = Stream(self.port)
        self.assertFalse(b"[DONE]" in stream.text)
        self.system.inside("systemctl", "stop", UNIT)
        self.assertTrue(stream.is_whole(), stream.text[-300:])
        self.assertEqual(self.system.shows(UNIT, "Result", "ExecMainStatus"), ["success", "0"])

    def test_an_upgrade_lets_streams_finish_and_starts_again(self):
        before = self.start()
        stream = Stream(self.port)
        self.system.inside("dpkg", "--install", f"/var/tmp/{self.package.name}")
        self.assertTrue(stream.is_whole(), stream.text[-300:])
        self.assertEqual(self.ask(), 200)
        self.assertNotEqual(self.system.shows(UNIT, "MainPID")[0], before)

    def test_what_dies_comes_back(self):
        self.start()
        self.system.inside("systemctl", "kill", "--kill-who=main", "--signal=KILL", UNIT)
        self.system.await_shown(UNIT, "NRestarts", "1")
        self.system.await_shown(UNIT, "ActiveState", "active")
        self.assertEqual(self.ask(), 200)

    def test_what_hangs_comes_back(self):
        folder = self.settings.parents[1] / "systemd/system/kvasir.service.d"
        folder.mkdir()
        self.addCleanup(self.system.inside, "systemctl", "daemon-reload")
        self.addCleanup(shutil.rmtree, folder)
        (folder / "watchdog.conf").write_text("[Service]\nWatchdogSec=2\n")
        self.system.inside("systemctl", "daemon-reload")
        process = self.start()
        time.sleep(5)
        self.assertEqual(self.system.shows(UNIT, "NRestarts", "MainPID"), ["0", process])  # it lives
        self.system.inside("systemctl", "kill", "--kill-who=main", "--signal=STOP", UNIT)
        self.system.await_shown(UNIT, "NRestarts", "1")
        self.system.await_shown(UNIT, "ActiveState", "active")
        self.assertIn("Watchdog timeout", self.system.inside("journalctl", "--no-pager", f"--unit={UNIT}"))
        self.assertEqual(self.ask(), 200)


if __name__ == "__main__":
    need("cpack", "mmdebstrap", "systemd-nspawn", "nsenter")
    unittest.main()
