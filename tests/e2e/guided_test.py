"""Answers of a given form at a terminal and in files of requests."""
import json
import re
import unittest

from command_line import BAD_FILE, LLAMA, USAGE, CommandLineTest

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"enum": ["x", "y"]}},
          "required": ["a", "b"], "additionalProperties": False}


class Guided(CommandLineTest):
    def answer(self, *args):
        bound = () if "--max-tokens" in args else ("--max-tokens", "200")
        return self.json("run", LLAMA, "Hello", *bound, *args)

    def test_a_schema(self):
        path = self.file("schema.json", json.dumps(SCHEMA).encode())
        for seed in range(5):
            answer = self.answer("--schema", path, "--seed", str(seed), "--temperature", "2")
            value = json.loads(answer["text"])
            self.assertEqual(list(value), ["a", "b"])
            self.assertIn(value["a"], range(10))
            self.assertIn(value["b"], ["x", "y"])
            self.assertEqual(answer["finish_reason"], "stop")
            self.assertEqual((answer["guide"]["kind"], answer["guide"]["ended_by"]), ("schema", "guide"))

    def test_a_regular_expression(self):
        answer = self.answer("--regex", "[0-9]{3}-[a-c]{2}")
        self.assertRegex(answer["text"], "^[0-9]{3}-[a-c]{2}$")
        self.assertEqual(answer["guide"]["kind"], "regex")

    def test_a_grammar(self):
        path = self.file("sum.gbnf", b'root ::= number (" + " number){1,2}\nnumber ::= [1-9] [0-9]?\n')
        answer = self.answer("--grammar", path)
        self.assertTrue(re.fullmatch(r"[1-9][0-9]?( \+ [1-9][0-9]?){1,2}", answer["text"]), answer["text"])

    def test_grammars_that_come_with_the_program(self):
        self.assertRegex(self.answer("--grammar", "arithmetic", "--temperature", "1")["text"], r"^[-0-9.+*/() ]+$")
        self.refusal(BAD_FILE, "run", LLAMA, "Hello", "--grammar", "algebra", says="algebra: cannot be read")

    def test_choices(self):
        for flags in (["--choice", "red,green"], ["--choice", "red", "--choice", "green"]):
            self.assertIn(self.answer(*flags)["text"], ["red", "green"])

    def test_an_answer_that_is_cut(self):
        answer = self.json("run", LLAMA, "Hello", "--max-tokens", "4", "--regex", "[a-z]{40}")
        self.assertEqual((answer["finish_reason"], answer["guide"]["ended_by"]), ("length", "length"))

    def test_an_only_way_is_forced(self):
        answer = self.answer("--regex", "\u0001\u0002\u0003")
        self.assertEqual(answer["guide"]["forced_tokens"], answer["completion_tokens"])

    def test_a_model_that_thinks_does_so_before_the_form(self):
        open_block = self.file("open.jinja", b"{{ messages[0].content }}<think>\n")
        perhaps = self.file("perhaps.jinja", b"{{ messages[0].content }}{# <think> </think> #}")
        for seed in range(3):
            flags = ("--regex", "[0-9]{3}", "--seed", str(seed), "--temperature", "1", "--max-tokens", "40")
            thought = self.answer(*flags, "--chat-template", open_block)
            self.assertEqual(thought["finish_reason"], "length")  # a model of random weights does not close its thoughts
            self.assertNotRegex(thought["text"], "^[0-9]{3}$")
            self.assertRegex(self.answer(*flags, "--chat-template", perhaps)["text"], "^([0-9]{3}$|<think>)")
            self.assertRegex(self.answer(*flags)["text"], "^[0-9]{3}$")

    def test_without_a_form_nothing_is_said_of_one(self):
        self.assertNotIn("guide", self.answer())

    def test_what_is_wrong_is_named(self):
        wrong = self.file("schema.json", b'{"properties": {"a": {"type": "none"}}}')
        for flags, says in ((["--schema", wrong], r"--schema: '/properties/a/type'"), (["--regex", "(a"], "--regex: "),
                            (["--choice", "a,,b"], "--choice: a choice is empty"),
                            (["--choice", "a", "--regex", "b"], "excludes")):
            with self.subTest(flags):
                self.assertRegex(self.kvasir("run", LLAMA, "Hello", *flags, expect=USAGE).stderr, says)

    def test_lines_of_a_batch(self):
        lines = [{"custom_id": "fine", "body": {"prompt": "Hello", "max_tokens": 40, "guided_choice": ["yes", "no"]}},
                 {"custom_id": "wrong", "body": {"prompt": "Hello", "max_tokens": 40, "guided_regex": "(a"}}]
        path = self.file("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
        self.kvasir("batch", LLAMA, path, "out.jsonl", expect=None)
        answers = {line["custom_id"]: line["response"]
                   for line in map(json.loads, (self.folder / "out.jsonl").read_text().splitlines())}
        self.assertIn(answers["fine"]["body"]["choices"][0]["text"], ["yes", "no"])
        self.assertEqual((answers["wrong"]["status_code"], answers["wrong"]["body"]["error"]["param"]),
                         (400, "guided_regex"))


if __name__ == "__main__":
    unittest.main()
