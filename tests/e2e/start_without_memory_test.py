"""A program that starts with too little memory of addresses (`ulimit -v`), at many limits."""
import re
import resource
import signal
import unittest

from command_line import DONE, INTERRUPTED, LLAMA, MACHINE, TIME_LIMIT_S, CommandLineTest


class StartWithoutMemory(CommandLineTest):
    def size_of_a_server_kib(self):
        process = self.start("serve", LLAMA, "--port", "0", "--memory", "600M")
        for _ in range(3):
            process.stdout.readline()
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            size_kib = int(re.search(r"VmSize:\s+(\d+)", status.read())[1])
        self.end(process)
        return size_kib

    def test_the_least_program_says_that_it_cannot_start(self):
        ends = set()
        for kib in range(8 << 10, 1 << 20, 1 << 10):
            limit_bytes = kib << 10
            process = self.start("version",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)))
            said = process.communicate(timeout=TIME_LIMIT_S)[1].decode()
            if process.returncode == DONE:
                break
            if "no memory to start" in said:  # below that the system's loader cannot map the libraries
                ends.add(process.returncode)
        self.assertEqual(process.returncode, DONE, said)
        self.assertEqual(ends, {MACHINE})

    def test_every_start_ends_in_words(self):
        size_kib = self.size_of_a_server_kib()
        if size_kib > 4 << 20:
            self.skipTest("a sanitizer's process takes terabytes of addresses")
        kib, ends = 64 << 10, set()
        while kib < size_kib + (4 << 10):
            limit_bytes = kib << 10
            process = self.start("serve", LLAMA, "--port", "0", "--memory", "600M",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)))
            has_started = len([process.stdout.readline() for _ in range(3)][2]) > 0
            process.send_signal(signal.SIGTERM)
            code = process.wait(TIME_LIMIT_S)
            said = process.stderr.read().decode().splitlines()
            with self.subTest(kib=kib, said=said):
                self.assertIn(code, (DONE, MACHINE, INTERRUPTED, -signal.SIGTERM))
                self.assertTrue(code != MACHINE or said[-1].startswith("kvasir: "))
                self.assertTrue(code == DONE or not has_started or code == MACHINE)
            ends.add(code)
            kib += (size_kib - (60 << 10)) // 24
        self.assertIn(MACHINE, ends)


if __name__ == "__main__":
    unittest.main()
