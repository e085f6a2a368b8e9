"""The conversation at a terminal, through a pseudo-terminal."""
import fcntl
import json
import os
import re
import select
import signal
import stat
import struct
import termios
import time
import unicodedata
import unittest

from command_line import GEMMA, INTERRUPTED, LLAMA, USAGE, CommandLineTest

PATIENCE_S = 60
PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"
READY = "\x1b[?2004h"  # the terminal is asked to mark pastes just before each prompt
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class TerminalTest(CommandLineTest):
    ARGUMENTS = ["--temperature", "0", "--max-tokens", "8"]
    TERM = "xterm"
    MODEL = LLAMA

    def setUp(self):
        super().setUp()
        self.env = {"TERM": self.TERM, "XDG_STATE_HOME": str(self.folder / "state")}
        self.history = self.folder / "state" / "kvasir" / "history"

    def open_terminal(self, *args, columns=80):
        self.terminal, inner = os.openpty()
        self.addCleanup(os.close, self.terminal)
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.modes = termios.tcgetattr(self.terminal)
        self.process = self.start("run", self.MODEL, *args, env=self.env, stdin=inner, stdout=inner, stderr=inner,
                                  preexec_fn=self.take_terminal)
        os.close(inner)
        self.screen = self.everything = ""

    def chat(self, *args, **kwargs):
        self.open_terminal(*self.ARGUMENTS, *args, **kwargs)
        self.wait_for_prompt()

    def wait_for_prompt(self, prompt="> "):
        """The output before it."""
        before = self.wait_for(READY)
        self.wait_for(prompt)
        return before

    @staticmethod
    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def wait_for(self, text):
        """Reads until `text` has come; what was read is then behind us."""
        before = self.comes(text, PATIENCE_S)
        self.assertIsNotNone(before, f"no {text!r} in {self.screen!r}")
        return before

    def comes(self, text, within_s):
        """wait_for(), or None where it does not come so soon."""
        deadline = time.monotonic() + within_s
        while text not in self.screen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            try:
                piece = os.read(self.terminal, 4096).decode(errors="replace")
            except OSError:
                self.fail(f"the terminal closed; no {text!r} in {self.screen!r}")
            self.screen += piece
            self.everything += piece
        before, _, self.screen = self.screen.partition(text)
        return before

    def rest(self):
        """All that still comes until the process ends."""
        text = self.screen
        while True:
            try:
                piece = os.read(self.terminal, 4096).decode(errors="replace")
            except OSError:
                return text
            if not piece:
                return text
            text += piece

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def say(self, text):
        """The output between a typed line and the next prompt, without escape codes and the line's own echo."""
        self.type(text + "\n")
        self.wait_for("\n")
        return ESCAPES.sub("", self.wait_for_prompt()).replace("\r", "").strip()

    def ends_with(self, code):
        self.assertEqual(self.process.wait(PATIENCE_S), code)

    def saved(self, name="talk.json"):
        """The conversation, as /save writes it."""
        path = self.folder / name
        self.assertIn("messages in", self.say(f"/save {path}"))
        return json.loads(path.read_text())

    def questions(self):
        return [message["content"] for message in self.saved() if message["role"] == "user"]


class Conversation(TerminalTest):
    def test_answers_and_remembers(self):
        self.chat()
        self.say("Hello")
        first = int(re.search(r"prompt +(\d+)", self.say("/stats"))[1])
        self.say("And again")
        self.assertGreater(int(re.search(r"prompt +(\d+)", self.say("/stats"))[1]), first)
        self.assertEqual([m["role"] for m in self.saved()], ["user", "assistant"] * 2)
        self.type("/clear\n/exit\n")
        self.ends_with(0)

    def test_ctrl_c_drops_a_line_and_ctrl_d_leaves(self):
        self.chat()
        self.type("never mind\x03")
        self.wait_for_prompt()
        self.type("\x04")
        self.ends_with(0)

    def test_ctrl_c_shows_the_line_once(self):
        self.chat(columns=40)
        long = "a line that is longer than the window " + "is wide " * 3
        for line, keys in (("never mind", "never mind"), ("never mind", "never mind\x02\x02\x02"), (long, long + "\x01")):
            self.type(keys)
            self.wait_for(line[-8:].strip())
            time.sleep(0.2)  # the keys behind it have moved the cursor
            self.type("\x03")
            seen = self.wait_for("^C")
            self.assertNotIn(line[:10], seen)
            self.wait_for_prompt()

    def test_ctrl_c_twice_leaves(self):
        self.chat()
        self.type("\x03")
        self.assertIn("once more leaves", self.wait_for_prompt())
        self.say("/stats")
        self.type("\x03")
        self.wait_for_prompt()
        self.type("x\x03")  # what drops something does not count
        self.wait_for_prompt()
        self.type('"""\n')
        self.wait_for_prompt(". ")
        self.type("\x03")
        self.assertNotIn("once more leaves", self.wait_for_prompt())
        self.type("\x03")
        self.assertIn("once more leaves", self.wait_for_prompt())
        self.type("\x03")
        self.ends_with(INTERRUPTED)

    def test_undo_and_retry(self):
        self.chat()
        self.say("one")
        self.say("two")
        self.assertIn("taken back: two", self.say("/undo"))
        before = self.saved()
        self.assertEqual(len(before), 2)
        self.assertIn("temperature is 0", self.say("/retry"))
        self.assertEqual(self.saved(), before)
        self.say("/set temperature 2")
        self.say("/retry")
        again = self.saved()
        self.assertEqual(again[0], before[0])
        self.assertNotEqual(again[1], before[1])
        self.say("/undo")
        self.assertIn("nothing to take back", self.say("/undo"))
        self.assertIn("nothing to answer", self.say("/retry"))

    def test_an_unknown_command_is_named_with_the_nearest(self):
        self.chat()
        self.assertIn("did you mean /clear?", self.say("/claer"))
        self.assertIn("/help lists", self.say("/x"))
        self.assertIn("takes nothing", self.say("/clear all"))
        self.assertIn("needs the name of a file", self.say("/save"))
        self.say("/etc/passwd is a path")
        self.assertEqual(self.questions(), ["/etc/passwd is a path"])

    def test_help_names_every_command(self):
        self.chat()
        said = self.say("/help")
        for name in "help clear undo retry edit file system set tokens stats model save load exit".split():
            self.assertIn("/" + name, said)

    def test_system_message(self):
        self.chat("--system", "Be brief.")
        self.assertEqual(self.say("/system"), "Be brief.")
        self.say("/system Be long.")
        self.say("hi")
        self.assertEqual(self.saved()[0], {"role": "system", "content": "Be long."})
        self.say('/system ""')
        self.assertEqual([m["role"] for m in self.saved()], ["user", "assistant"])

    def test_parameters(self):
        self.chat()
        self.assertRegex(self.say("/set"), r"(?s)max_tokens +8 .*temperature +0 .*kv_budget")
        self.assertRegex(self.say("/set top-p 0.5"), r"^top_p +0\.5")
        self.assertIn("top_p must be between 0 and 1, got 3", self.say("/set top_p 3"))
        self.assertIn("takes a whole number", self.say("/set max_tokens many"))
        self.assertIn("did you mean 'temperature'", self.say("/set temprature 1"))
        self.assertIn("takes one of", self.say("/set kv_policy best"))
        self.assertRegex(self.say("/set top_p default"), r"^top_p +0\.95")
        self.say("/set max_tokens 3")
        self.assertIn("[cut after 3 tokens", self.say("hi"))
        self.say("/set max_tokens 200")
        self.say("/retry")
        answer = self.saved()[1]["content"]
        letter = re.search("[a-z]", answer[1:])[0]
        self.assertRegex(self.say(f"/set stop {letter}"), f'^stop +"{letter}"')
        self.say("/retry")
        self.assertEqual(self.saved()[1]["content"], answer[:answer.index(letter)])

    def test_tokens_and_model(self):
        self.chat()
        self.assertTrue(self.say("/tokens").startswith("0 of "))
        self.say("hi")
        self.assertRegex(self.say("/tokens"), r"^[1-9]\d* of \d+ tokens \(\d+%\) in 1 exchange$")
        self.assertIn("llama", self.say("/model"))

    def test_one_json_document_needs_one_prompt(self):
        self.open_terminal("--json")
        self.ends_with(USAGE)
        self.assertIn("--json: needs a prompt, not a conversation", self.rest())

    def test_model_without_template(self):
        self.MODEL = GEMMA
        self.chat()
        self.say("in the")
        self.assertIn("no system message", self.say("/system x"))
        self.assertIn("continued as it stands", self.say("/model"))


class Files(TerminalTest):
    def test_a_saved_conversation_goes_on(self):
        self.chat()
        self.say("Hello")
        before = self.saved()
        self.assertEqual(stat.S_IMODE((self.folder / "talk.json").stat().st_mode), 0o600)
        tokens = self.say("/tokens")
        self.say("/clear")
        self.assertIn("2 messages from talk.json", self.say("/load talk.json"))
        self.assertEqual(self.saved("again.json"), before)
        self.assertEqual(self.say("/tokens"), tokens)

    def test_what_is_no_conversation_is_refused_with_its_place(self):
        self.chat()
        self.file("roles.json", b'[{"role":"user","content":"a"},{"role":"user","content":"b"}]')
        self.file("member.json", b'[{"role":"user","content":1}]')
        self.file("notes.txt", b"mine")
        self.assertIn("roles.json: message 2: role must be assistant", self.say("/load roles.json"))
        self.assertIn("member.json: message 1: content must be a string", self.say("/load member.json"))
        self.assertIn("cannot be read", self.say("/load nowhere.json"))
        self.assertIn("stays as it is", self.say("/save notes.txt"))
        self.assertEqual((self.folder / "notes.txt").read_bytes(), b"mine")

    def test_a_question_without_answer_is_answered_by_retry(self):
        self.chat()
        self.file("open.json", b'[{"role":"user","content":"a"}]')
        self.assertIn("/retry answers it", self.say("/load open.json"))
        self.say("/retry")
        self.assertEqual(len(self.saved()), 2)
        self.say("/load open.json")
        self.say("another")
        self.assertEqual(self.questions(), ["another"])

    def test_a_file_goes_with_the_next_message(self):
        self.chat()
        self.file("code.md", b"```\nx\n```\n")
        self.file("bytes", b"\xff\x00")
        self.assertIn("is no text", self.say("/file bytes"))
        self.assertIn("goes with your next message", self.say("/file code.md"))
        self.say("what is it?")
        self.say("and now?")
        self.assertEqual(self.questions(), ["code.md:\n````\n```\nx\n```\n````\n\nwhat is it?", "and now?"])

    def test_editor(self):
        script = self.folder / "editor.sh"
        script.write_text('#!/bin/sh\n[ "$1" = --wait ] || exit 9\ncat "$2" > seen\n'
                          'printf "one\\ntwo\\n\\n" > "$2"\nstat -c %a "$2" > mode\n')
        script.chmod(0o755)
        self.env |= {"VISUAL": f"{script} --wait", "EDITOR": "false"}
        self.chat()
        self.say("/edit draft of it")
        self.assertEqual(self.questions(), ["one\ntwo"])
        self.assertEqual((self.folder / "seen").read_text(), "draft of it")
        self.assertEqual((self.folder / "mode").read_text().strip(), "600")

    def test_an_editor_that_fails_sends_nothing(self):
        self.env |= {"VISUAL": "false"}
        self.chat()
        self.assertIn("false ended with exit code 1", self.say("/edit"))
        self.assertEqual(self.questions(), [])


class Input(TerminalTest):
    def test_lines_that_are_one_message(self):
        self.chat()
        for line in ('"""', "one", ""):
            self.type(line + "\n")
            self.wait_for_prompt(". ")
        self.say('  two"""')
        self.type("three\\\n")
        self.wait_for_prompt(". ")
        self.say("four")
        self.say("five\x1b\rsix")
        self.assertEqual(self.questions(), ["one\n\n  two", "three\nfour", "five\nsix"])

    def test_a_paste_is_one_message(self):
        self.chat()
        self.say(f"look: {PASTE}a\r\tb\x1b[31m\r\n/clear\n{PASTE_END} end")
        self.say(f"{PASTE}/clear\nx{PASTE_END}")
        self.assertEqual(self.questions(), ["look: a\n\tb[31m\n/clear end", "/clear\nx"])

    def test_a_paste_during_an_answer_is_one_message_too(self):
        self.chat()
        self.type(f"hi\n{PASTE}one\rtwo{PASTE_END}\r")
        self.wait_for_prompt()
        self.wait_for_prompt()
        self.assertEqual(self.questions(), ["hi", "one\ntwo"])

    def test_a_long_paste_is_shown_by_its_name(self):
        self.chat()
        lines = "\n".join(f"line {i}" for i in range(30))
        self.say("/set max_tokens 1")
        self.type(f"{PASTE}{lines}{PASTE_END}")
        self.wait_for("[paste 1: 30 lines]")
        self.say(" sum up")
        self.assertNotIn("line 15", self.everything)
        self.assertEqual(self.questions(), [lines + " sum up"])

    def test_tab_completes(self):
        self.chat()
        self.file("unusual-name.txt", b"text")
        self.assertIn("goes with", self.say("/fil\tunus\t"))
        self.assertIn("seed", self.say("/set see\t1"))
        self.type("/s\t\t")
        self.wait_for("/stats")
        self.wait_for("/system")
        self.type("\x03")

    def test_history_is_kept_across_conversations(self):
        self.chat()
        self.say("first words")
        self.type('"""two\n')
        self.wait_for_prompt(". ")
        self.say('lines"""')
        self.type("/exit\n")
        self.ends_with(0)
        self.assertEqual(self.history.read_text().splitlines(), ["first words", "two\\nlines", "/exit"])
        self.assertEqual(stat.S_IMODE(self.history.stat().st_mode), 0o600)
        self.chat()
        self.say("\x1b[A\x1b[A")
        self.assertEqual(self.questions(), ["two\nlines"])
        self.say("\x12first\x1b")  # Ctrl-R
        self.assertIn("first words", self.questions())

    def test_history_can_be_off(self):
        self.chat("--no-history")
        self.say("secret")
        self.type("/exit\n")
        self.ends_with(0)
        self.assertFalse(self.history.exists())
        self.env["KVASIR_NO_HISTORY"] = "1"
        self.chat()
        self.say("secret")
        self.type("\x04")
        self.ends_with(0)
        self.assertFalse(self.history.exists())

    def test_a_history_that_cannot_be_kept_is_said_and_that_is_all(self):
        self.env["XDG_STATE_HOME"] = self.file("state-file", b"")
        self.chat()
        self.assertIn("cannot keep the history", self.everything)
        self.say("hi")
        self.assertEqual(self.questions(), ["hi"])


class LongAnswers(TerminalTest):
    ARGUMENTS = ["--temperature", "0", "--ignore-eos", "--max-tokens", "100000"]

    def begin_answer(self):
        self.type("Hello\n")
        self.wait_for("\n")
        while not self.wait_for("\n").strip():
            pass

    def stop_answer(self, keys):
        """Begins an answer in a new chat and types keys that stop it: the output before [stopped]. A busy machine may be so slow
        to type that the answer is over, which takes a twentieth of a second. Then another chat begins."""
        for _ in range(8):
            self.chat()
            self.begin_answer()
            self.type(keys)
            before = self.comes("[stopped]", 6)
            if before is not None:
                return before
            self.process.kill()
            self.process.wait()
        self.fail(f"no [stopped] behind {keys!r} in {self.screen!r}")

    def test_ctrl_c_stops_the_answer_alone(self):
        self.stop_answer("\x03")
        self.wait_for_prompt()
        question, answer = self.saved()
        self.assertTrue(answer["stopped"])
        self.assertTrue(answer["content"])
        self.say("/undo")  # the answer may have filled the context by then
        self.say("/set max_tokens 2")
        self.say("go on")
        self.assertEqual(self.questions(), ["go on"])

    def test_typing_meanwhile_does_not_show(self):
        self.assertNotIn("/tokens", self.stop_answer("/tokens\x03"))
        self.wait_for_prompt()

    def test_a_signal_that_ends_it_gives_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            for answers in (True, False):
                with self.subTest(number=number, answers=answers):
                    self.chat()
                    if answers:
                        self.begin_answer()
                    self.assertNotEqual(termios.tcgetattr(self.terminal), self.modes)
                    self.process.send_signal(number)
                    self.ends_with(-number)
                    self.assertEqual(termios.tcgetattr(self.terminal), self.modes)
                    self.wait_for(READY.replace("h", "l"))

    def test_a_conversation_that_does_not_fit_is_refused_with_both_numbers(self):
        self.chat("--ctx", "100")
        self.assertIn("[the context is full, 100 of 100 tokens: /undo", self.say("Hello"))
        said = self.say("And more")
        self.assertRegex(said, r"(?s)would take 1\d\d tokens of a context of 100 and stays .*/undo .*/clear")
        self.assertEqual(self.questions(), ["Hello"])
        self.say("/undo")
        self.assertRegex(self.say("x" * 200), r"the message takes \d\d\d tokens of a context of 100")


class Look(TerminalTest):
    """The random text of a tiny model; markdown_renderer_test.cc has Markdown."""
    HOT = ["--raw", "--temperature", "5", "--top-p", "1", "--seed", "3", "--ignore-eos", "--max-tokens", "600"]

    def output(self, *args, **kwargs):
        self.open_terminal(*args, "--quiet", **kwargs)
        text = self.rest()
        self.ends_with(0)
        return text.replace("\r\n", "\n")

    def raw_text(self, *args):
        return json.loads(self.kvasir("run", self.MODEL, *args, "--json").stdout)["text"]

    def test_what_a_model_writes_steers_no_terminal(self):
        self.assertRegex(self.raw_text("x", *self.HOT), r"[\x00-\x08\x0b-\x1f\x7f]", "the model writes controls")
        for extra in (["--plain"], []):
            shown = self.output("x", *self.HOT, *extra)
            self.assertNotRegex(shown, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
            self.assertIn("\\x", shown)
        chat = [a for a in self.HOT if a != "--raw"]
        shown = ESCAPES.sub("", self.output("x", *chat))
        self.assertNotRegex(shown, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_elsewhere_it_is_the_text_byte_for_byte(self):
        for args in (self.HOT, [a for a in self.HOT if a != "--raw"]):
            text = self.raw_text("x", *args)
            self.assertEqual(self.kvasir("run", self.MODEL, "x", *args).stdout, (text + "\n").encode())

    def test_a_dumb_terminal_gets_no_escape_codes(self):
        self.env["TERM"] = "dumb"
        self.assertNotIn("\x1b", self.output("hi", "--max-tokens", "30", "--temperature", "0"))

    def test_lines_end_at_the_width_of_the_window(self):
        shown = ESCAPES.sub("", self.output("hi", "--max-tokens", "200", "--seed", "1", columns=40))
        self.assertLessEqual(max(map(self.width, shown.split("\n"))), 40)

    @staticmethod
    def width(text):
        def columns(character):
            category = unicodedata.category(character)
            is_wide = unicodedata.east_asian_width(character) in "WF" and category != "Cn"
            return 0 if category in ("Mn", "Me", "Cf") else 1 + is_wide
        return sum(map(columns, text))


if __name__ == "__main__":
    unittest.main()
