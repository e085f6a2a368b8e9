"""The packed copy of a model's weights: written by the first start, mapped by the next, dropped when it is wrong."""
import json
import os
import pathlib
import shutil
import unittest

from command_line import BAD_FILE, CommandLineTest, LLAMA, NO, USAGE

QUESTION = ("Hi", "--max-tokens", "4", "--temperature", "0")


class PackedCopy(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "home"
        self.copies = self.store / "packed"
        (self.store / "models").mkdir(parents=True)
        self.model = self.store / "models" / "own.gguf"
        shutil.copy(LLAMA, self.model)
        self.expected = self.json("run", LLAMA, *QUESTION)["token_ids"]

    def run_model(self, *flags, model=None):
        """What the copy was to the run, and the lines on stderr."""
        done = self.kvasir("run", model or self.model, *QUESTION, "--json", *flags)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["token_ids"], self.expected)
        return answer["timing"]["packed_cache"], done.stderr.splitlines()

    def listed(self):
        return next(model for model in self.json("list") if model["name"] == "own.gguf")

    def the_copy(self):
        [copy] = self.copies.iterdir()
        return copy

    def test_a_model_of_the_store_is_packed_once(self):
        self.assertEqual(self.run_model(), ("written", []))
        written = self.the_copy().stat()
        self.assertEqual(self.run_model(), ("hit", []))
        self.assertEqual(self.the_copy().stat().st_ino, written.st_ino)

    def test_other_models_are_packed_where_one_says_so(self):
        self.assertEqual(self.run_model(model=LLAMA), ("off", []))
        place = self.folder / "elsewhere"
        for expected in ("written", "hit"):
            self.assertEqual(self.run_model("--packed-cache", place, model=LLAMA), (expected, []))
        self.assertEqual(self.run_model("--no-packed-cache"), ("off", []))
        self.assertFalse(self.copies.exists())
        self.refusal(USAGE, "run", LLAMA, "x", "--packed-cache", place, "--no-packed-cache", says="--no-packed-cache")

    def test_a_copy_is_of_one_kind_of_weights(self):
        self.run_model()
        self.assertEqual(self.kvasir("run", self.model, *QUESTION, "--json", "--fast").returncode, 0)
        self.assertEqual(len(list(self.copies.iterdir())), 2)
        self.assertEqual(self.run_model()[0], "hit")

    def test_a_damaged_copy_is_dropped_with_a_line(self):
        self.run_model()
        for damage in ("short", "header", "weights", "empty"):
            with self.subTest(damage):
                copy = self.the_copy()
                content = bytearray(copy.read_bytes())
                if damage == "short":
                    content = content[:-1]
                elif damage == "empty":
                    content = b""
                else:
                    content[100 if damage == "header" else 4096] ^= 1
                copy.write_bytes(content)
                state, said = self.run_model()
                self.assertEqual((state, len(said)), ("written", 1), said)
                self.assertIn("it is removed and made anew", said[0])
                self.assertEqual(self.run_model(), ("hit", []))

    def test_a_model_that_changed_is_packed_anew(self):
        self.run_model()
        os.utime(self.model)
        state, said = self.run_model()
        self.assertEqual(state, "written")
        self.assertIn("was made of another version of the model", said[0])

    def test_a_folder_that_cannot_be_written_is_a_line_and_no_more(self):
        (self.folder / "file").write_bytes(b"")
        state, said = self.run_model("--packed-cache", self.folder / "file" / "below")
        self.assertEqual((state, len(said)), ("off", 1), said)
        self.assertIn("no packed copy of the weights is kept: ", said[0])

    def test_list_shows_it_and_rm_removes_it(self):
        self.assertNotIn("packed_bytes", self.listed())
        self.run_model()
        size = self.the_copy().stat().st_size
        self.assertEqual(self.listed()["packed_bytes"], size)
        self.assertIn(" + ", self.kvasir("list").stdout.decode())
        freed = self.json("rm", "own.gguf")[0]["freed_bytes"]
        self.assertEqual(freed, size + os.stat(LLAMA).st_size)
        self.assertEqual(list(self.copies.iterdir()), [])

    def test_list_verify_reads_copies_whole(self):
        self.run_model()
        self.assertNotIn("packed_ok", self.listed())
        verified = next(model for model in self.json("list", "--verify") if model["name"] == "own.gguf")
        self.assertIs(verified["packed_ok"], True)
        copy = self.the_copy()
        content = bytearray(copy.read_bytes())
        content[4096] ^= 1
        copy.write_bytes(content)
        done = self.kvasir("list", "--verify", expect=NO)
        self.assertIn(str(copy), done.stderr)
        self.assertIn("has damaged weights", done.stderr)
        self.assertIn(" damaged", done.stdout.decode())

    def test_a_copy_without_its_model_goes_with_the_next_write(self):
        self.run_model()
        orphan = self.the_copy()
        other = self.model.with_name("other.gguf")
        shutil.copy(LLAMA, other)
        self.model.unlink()
        with other.open("ab") as file:
            file.write(bytes(32))
        self.assertEqual(self.run_model(model=other)[0], "written")
        self.assertFalse(orphan.exists())

    def test_bench_and_a_broken_model(self):
        self.kvasir("bench", self.model, "--prompt", "8", "--gen", "0", "--repeat", "1")
        self.assertEqual(self.run_model()[0], "hit")
        broken = self.store / "models" / "broken.gguf"
        broken.write_bytes(pathlib.Path(LLAMA).read_bytes()[:-100])
        self.kvasir("run", broken, "x", expect=BAD_FILE)
        self.assertEqual(len(list(self.copies.iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
