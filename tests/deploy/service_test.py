"""The server as a service: what it tells systemd, settings in the place of arguments, `kvasir health`, and the manual
pages.

    service_test.py
"""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

os.environ.setdefault("KVASIR_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/kvasir"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from command_line import BAD_FILE, BINARY, DONE, LLAMA, NO, TIME_LIMIT_S, USAGE, CommandLineTest  # noqa: E402

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LISTENING = re.compile(r"https?://\S+")


@contextlib.contextmanager
def stopped(test, thread):
    """One thread of a child does not run."""
    if LIBC.ptrace(PTRACE_SEIZE, thread, None, None) != 0:
        test.skipTest(f"ptrace: {os.strerror(ctypes.get_errno())}")
    LIBC.ptrace(PTRACE_INTERRUPT, thread, None, None)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        LIBC.ptrace(PTRACE_DETACH, thread, None, None)


class Service(CommandLineTest):
    def serve(self, *args, env=None):
        process = self.start("serve", *args, env=env)
        lines = [process.stdout.readline().decode() for _ in range(3)]
        self.assertRegex(lines[1], LISTENING)
        return process, LISTENING.match(lines[1])[0]

    def manager(self, name):
        """A socket as systemd has one."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(name)
        manager.settimeout(TIME_LIMIT_S)
        return manager

    def test_systemd_is_told_that_it_is_ready_alive_and_stopping(self):
        for name, variable in ((str(self.folder / "notify"), None), ("\0kvasir-test-" + self.folder.name, "@")):
            with self.subTest(name):
                manager = self.manager(name)
                address = name if variable is None else "@" + name[1:]
                process, url = self.serve(LLAMA, "--port", "0",
                                          env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "400000"})
                self.assertEqual(manager.recv(4096).decode(), f"READY=1\nSTATUS=llama-f32 at {url}")
                self.assertEqual([manager.recv(4096) for _ in range(5)], [b"WATCHDOG=1"] * 5)
                process.send_signal(signal.SIGTERM)
                told = b"WATCHDOG=1"
                while told == b"WATCHDOG=1":
                    told = manager.recv(4096)
                self.assertTrue(told.startswith(b"STOPPING=1\n"), told)
                self.assertEqual(process.wait(TIME_LIMIT_S), DONE)

    def test_a_server_whose_engine_hangs_is_not_said_to_be_alive(self):
        manager = self.manager(str(self.folder / "notify"))
        process, _ = self.serve(LLAMA, "--port", "0", env={"NOTIFY_SOCKET": str(self.folder / "notify"),
                                                           "WATCHDOG_USEC": "400000"})
        self.assertTrue(manager.recv(4096).startswith(b"READY=1"))
        silenced = 0
        for thread in sorted(int(name) for name in os.listdir(f"/proc/{process.pid}/task")):
            if thread == process.pid:
                continue  # the one that tells
            with stopped(self, thread):
                silenced += not self.hears(manager, after_s=0.5, within_s=1.5)
            self.assertTrue(self.hears(manager, after_s=0, within_s=TIME_LIMIT_S))
        self.assertGreaterEqual(silenced, 1)

    @staticmethod
    def hears(manager, after_s, within_s):
        """Whether it is told anything, but for what is under way."""
        deadline = time.monotonic() + after_s
        manager.settimeout(0.05)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                manager.recv(4096)
        manager.settimeout(within_s)
        with contextlib.suppress(TimeoutError):
            return bool(manager.recv(4096))
        return False

    def test_nobody_is_told_where_nobody_asked(self):
        manager = self.manager(str(self.folder / "notify"))
        manager.settimeout(1)
        process, _ = self.serve(LLAMA, "--port", "0", env={"NOTIFY_SOCKET": "", "WATCHDOG_USEC": "400000"})
        with self.assertRaises(TimeoutError):
            manager.recv(4096)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), DONE)

    def test_the_settings_name_the_model(self):
        self.refusal(USAGE, "serve", says="MODEL is required")
        self.file("kvasir.toml", f'[serve]\nmodel = "{LLAMA}"\nport = 0\n'.encode())
        _, url = self.serve()
        self.assertIn("ready", self.kvasir("health", url).stdout.decode())
        self.refusal(BAD_FILE, "serve", "nosuch.gguf", says="nosuch.gguf")
        self.refusal(BAD_FILE, "serve", env={"KVASIR_MODEL": "other.gguf"}, says="other.gguf")

    def test_health_is_an_exit_code(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            answer = self.json("health", f"http://127.0.0.1:{port}", "--timeout-ms", "200", expect=NO)
            self.assertFalse(answer["ready"])
            self.assertIn("nothing came within 200 ms", answer["detail"])
        self.assertIn(b"does not answer: Connection refused", self.kvasir(
            "health", env={"KVASIR_PORT": str(port)}, expect=NO).stdout)
        process, url = self.serve(LLAMA, "--port", "0")
        self.assertEqual(self.json("health", url + "/"), {"url": url + "/", "ready": True, "detail": "ready"})
        self.kvasir("health", env={"KVASIR_PORT": url.rsplit(":", 1)[1], "KVASIR_HOST": "0.0.0.0"})
        for wrong in ("127.0.0.1:80", "http://", "http://a:b", "http://a:70000", "http://a/v1", "http://[::1",
                      "ftp://a"):
            self.refusal(USAGE, "health", wrong, says=wrong)

    def test_health_of_a_server_that_speaks_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
                        "cert.pem", "-subj", "/CN=elsewhere.example", "-days", "1"], cwd=self.folder, check=True,
                       capture_output=True)
        _, url = self.serve(LLAMA, "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
        self.assertTrue(url.startswith("https://"))
        self.kvasir("health", url)
        self.kvasir("health", url.replace("https", "http"), expect=NO)
        self.kvasir("health", env={"KVASIR_PORT": url.rsplit(":", 1)[1], "KVASIR_TLS_CERT": "cert.pem"})


class ManPages(CommandLineTest):
    def pages(self):
        self.kvasir("man", "--folder", ".")
        return {path.name: path.read_text() for path in self.folder.glob("*.1")}

    def test_every_verb_has_a_page_with_every_flag(self):
        pages = self.pages()
        settings = self.json("config")
        plain = {name: page.replace("\\-", "-").replace("\\e", "\\") for name, page in pages.items()}
        for setting in settings:
            verb = setting["verb"].split(".")[0]
            self.assertIn(f"\\fB--{setting['flag']}\\fR", plain[f"kvasir-{verb}.1" if verb else "kvasir.1"])
        for verb in {setting["verb"].split(".")[0] for setting in settings} - {""}:
            self.assertIn(f"\n.B {verb}\n", plain["kvasir.1"])
            self.assertIn(f".BR kvasir-{verb} (1)", plain["kvasir.1"])
        self.assertEqual(self.kvasir("man", "serve").stdout.decode(), pages["kvasir-serve.1"])
        self.assertEqual(self.json("man"), {"verb": "", "page": pages["kvasir.1"]})
        self.refusal(USAGE, "man", "nosuch", says="nosuch")

    def test_man_reads_them(self):
        if shutil.which("mandoc") is None and shutil.which("groff") is None:
            self.skipTest("neither mandoc nor groff")
        for name, page in self.pages().items():
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            if shutil.which("mandoc"):
                done = subprocess.run(["mandoc", "-T", "lint", "-W", "error"], input=page, capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stdout), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
