"""`schema check` says what a guide keeps of a schema, `schema test` whether exactly the valid instances pass."""
import gzip
import json
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, NO, NO_TOKENIZER, USAGE, CommandLineTest

PERSON = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[A-Z][a-z]+$"}, "age": {"type": "integer", "minimum": 3, "maximum": 140}},
          "required": ["name", "age"], "additionalProperties": False}


class SchemaCheck(CommandLineTest):
    def schema(self, schema):
        return self.file("schema.json", json.dumps(schema).encode())

    def test_values_satisfy_the_schema(self):
        found = self.json("schema", "check", self.schema(PERSON), "--sample", "5", "--seed", "7")
        self.assertTrue(found["supported"])
        self.assertEqual((found["unsupported"], found["refused"]), ([], []))
        self.assertGreater(found["cells"], 0)
        self.assertGreater(found["states"], 0)
        self.assertNotIn("worst_mask_us", found)
        self.assertEqual(len(found["sample"]), 5)
        for person in [found["least"], *found["sample"]]:
            self.assertEqual(set(person), {"name", "age"})
            self.assertRegex(person["name"], "^[A-Z][a-z]+$")
            self.assertTrue(3 <= person["age"] <= 140)
        self.assertEqual(found["least"]["age"], 3)
        self.assertEqual(len(found["least"]["name"]), 2)
        self.assertEqual(found, self.json("schema", "check", self.schema(PERSON), "--sample", "5", "--seed", "7"))

    def test_a_refusal_names_its_place_and_is_1(self):
        schema = self.schema({"properties": {"a": {"$ref": "#/nowhere"}}})
        found = self.json("schema", "check", schema, expect=NO)
        self.assertFalse(found["supported"])
        self.assertEqual(found["unsupported"], ["/properties/a/$ref"])
        self.assertEqual(found["refused"][0]["keyword"], "$ref")
        self.assertNotIn("least", found)
        self.assertIn("/properties/a/$ref", self.kvasir("schema", "check", schema, expect=NO).stdout.decode())

    def test_masks_are_timed_with_a_model(self):
        found = self.json("schema", "check", self.schema(PERSON), "--model", LLAMA)
        self.assertGreater(found["worst_mask_us"], 0)
        self.assertEqual(len(found["sample"]), 1)

    def test_what_is_no_schema_is_refused(self):
        self.refusal(BAD_FILE, "schema", "check", self.file("broken.json", b"{"), says="broken.json")
        self.refusal(BAD_FILE, "schema", "check", self.folder / "missing.json", says="missing.json")
        self.refusal(USAGE, "schema", "check")


class SchemaTest(CommandLineTest):
    def cases(self, *tests, name="cases.jsonl", schema=b'{"type":"integer","minimum":0}'):
        rows = b",".join(b'{"valid":%s,"data":%s}' % (b"true" if valid else b"false", data) for valid, data in tests)
        line = b'{"name":"one","schema":%s,"tests":[%s]}\n' % (schema, rows)
        return self.file(name, gzip.compress(line) if name.endswith(".gz") else line)

    def test_exactly_the_valid_instances_pass(self):
        for model in (LLAMA, GEMMA):
            found = self.json("schema", "test", model, "--cases", self.cases((True, b"17"), (False, b"-1"), (False, b"1.5")))
            self.assertEqual((found["schemas"], found["passed"], found["instances"]), (1, 1, 3))
            self.assertEqual(found["failures"], [])
            self.assertGreater(found["masks"], 0)
            for times in ("mask_us", "accept_us", "compile_ms"):
                self.assertEqual(set(found[times]), {"p50", "p99", "max"})
        zipped = self.json("schema", "test", LLAMA, "--cases", self.cases((True, b"17"), name="cases.jsonl.gz"))
        self.assertEqual(zipped["passed"], 1)

    def test_a_wrong_accept_is_1_and_a_wrong_refusal_is_not(self):
        lines = self.folder / "failures.jsonl"
        found = self.json("schema", "test", LLAMA, "--cases", self.cases((False, b"17")), "--failures", lines, expect=NO)
        self.assertEqual((found["passed"], found["wrong_accepts"]), (0, 1))
        self.assertEqual(found["failures"], [{"name": "one", "kind": "wrong_accept", "test": 0, "detail": "17"}])
        self.assertEqual([json.loads(line) for line in lines.read_text().splitlines()], found["failures"])
        found = self.json("schema", "test", LLAMA, "--cases", self.cases((True, b"-1")))
        self.assertEqual((found["wrong_accepts"], found["wrong_refusals"]), (0, 1))
        found = self.json("schema", "test", LLAMA, "--cases", self.cases(schema=b'{"type":"strin"}'))
        self.assertEqual((found["refused"], found["failures"][0]["kind"]), (1, "refused"))

    def test_cases_are_chosen_by_name(self):
        cases = self.cases((True, b"1"))
        self.assertEqual(self.json("schema", "test", LLAMA, "--cases", cases, "--only", "other,one")["schemas"], 1)
        self.refusal(BAD_FILE, "schema", "test", LLAMA, "--cases", cases, "--only", "other", says="there is no such case")

    def test_what_cannot_be_read_is_refused(self):
        self.refusal(BAD_FILE, "schema", "test", LLAMA, "--cases", self.file("bad.jsonl", b"\n{}\n"), says="bad.jsonl, line 2")
        self.refusal(BAD_FILE, "schema", "test", LLAMA, "--cases", self.file("bad.gz", b"\x1f\x8bxx"), says="gzip")
        self.refusal(BAD_FILE, "schema", "test", NO_TOKENIZER, "--cases", self.cases((True, b"1")))
        self.refusal(USAGE, "schema", "test", LLAMA)


if __name__ == "__main__":
    unittest.main()
