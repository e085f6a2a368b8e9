"""The conversation at a terminal, through a pseudo-terminal."""
import fcntl
import json
import os
import select
import termios
import time
import unittest

from command_line import LLAMA, CommandLineTest

PATIENCE_S = 60


class Conversation(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.terminal, inner = os.openpty()
        self.addCleanup(os.close, self.terminal)
        self.process = self.start("run", LLAMA, "--temperature", "0", "--max-tokens", "8", env={"TERM": "xterm"},
                                  stdin=inner, stdout=inner, stderr=inner, preexec_fn=self.take_terminal)
        os.close(inner)
        self.screen = ""
        self.wait_for("> ")

    @staticmethod
    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def wait_for(self, text):
        """Reads until `text` has come; what was read is then behind us."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.screen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {self.screen!r}")
            try:
                self.screen += os.read(self.terminal, 4096).decode(errors="replace")
            except OSError:
                self.fail(f"the terminal closed; no {text!r} in {self.screen!r}")
        before, _, self.screen = self.screen.partition(text)
        return before

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def test_answers_and_remembers(self):
        self.type("Hello\n")
        self.wait_for("> ")
        self.type("/stats\n")
        first_prompt_tokens = int(self.wait_for(" tokens").split()[-1])
        self.wait_for("> ")
        self.type("And again\n")
        self.wait_for("> ")
        self.type("/stats\n")
        self.assertGreater(int(self.wait_for(" tokens").split()[-1]), first_prompt_tokens)
        self.wait_for("> ")
        saved = self.folder / "talk.json"
        self.type(f"/save {saved}\n")
        self.wait_for("4 messages")
        self.assertEqual([m["role"] for m in json.loads(saved.read_text())], ["user", "assistant"] * 2)
        self.type("/clear\n/exit\n")
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        self.assertIn("Hello", (self.folder / "home" / "history").read_text())

    def test_ctrl_c_drops_a_line_and_ctrl_d_leaves(self):
        self.type("never mind\x03")
        self.wait_for("> ")
        self.type("\x04")
        self.assertEqual(self.process.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
