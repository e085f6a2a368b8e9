"""kvasir show: what is in a model, here and on the hub before its download."""
import pathlib
import struct
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, CommandLineTest
from hub_server import Hub, Repository

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "qwen3moe"


class Show(CommandLineTest):
    def show(self, model, *args, **kwargs):
        return self.json("show", model, *args, **kwargs)[0]

    def test_the_facts_of_a_file(self):
        shown = self.show(LLAMA)
        self.assertEqual(shown["runs"], "yes")
        self.assertEqual(shown["types"], {"F32": shown["weight_bytes"]})
        self.assertEqual(shown["num_active_parameters"], shown["num_parameters"])
        self.assertEqual(shown["tokenizer"], "gpt2")
        self.assertTrue(shown["rope"].startswith("base 10000 over "), shown["rope"])
        [group] = shown["kv_groups"]
        self.assertEqual(group["window_tokens"], 0)
        per_token = 2 * 2 * group["num_layers"] * group["num_kv_heads"] * group["key_dim"]
        self.assertEqual(shown["kv_bytes_per_token"]["f16"], per_token)
        self.assertNotIn("experts", shown)
        self.assertNotIn("nearest", shown)

    def test_windows_and_two_kinds_of_rope(self):
        shown = self.show(GEMMA)
        self.assertEqual(sorted(group["window_tokens"] > 0 for group in shown["kv_groups"]), [False, True])
        self.assertIn("; ", shown["rope"])

    def test_people_get_lines(self):
        said = self.kvasir("show", LLAMA).stdout.decode()
        for label in ("architecture", "types", "attention", "rope", "KV cache", "runs"):
            self.assertRegex(said, rf"(?m)^{label} +\S")


class OnTheHub(Show):
    def setUp(self):
        super().setUp()
        self.hub = Hub({"owner/model": Repository({"tiny.gguf": pathlib.Path(LLAMA).read_bytes()})})
        self.addCleanup(self.hub.close)

    def environment(self, **changes):
        env = {name: value for name, value in super().environment().items() if not name.lower().endswith("_proxy")}
        return env | {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder / "hf"), "TMPDIR": str(self.folder)} | changes

    def assert_as_here(self, model):
        remote, here = self.show("hf:owner/model"), self.show(model)
        self.assertEqual(remote.pop("path"), "hf:owner/model")
        here.pop("path")
        for shown in (remote, here):
            shown.pop("license")
            shown.pop("name")
        self.assertEqual(remote, here)
        self.assertEqual(list(self.folder.glob("kvasir-headers-*")), [])

    def test_a_file_before_its_download(self):
        self.assert_as_here(LLAMA)

    def test_only_the_header_is_fetched(self):
        weights = bytes(32 << 20)
        content = pathlib.Path(LLAMA).read_bytes()
        self.hub.repositories["owner/model"] = Repository({"tiny.gguf": content + weights})
        self.show("hf:owner/model")
        ranges = [headers.get("Range") for _, _, _, headers in self.hub.asked("files", "GET")]
        self.assertEqual(ranges, [f"bytes=0-{(1 << 20) - 1}"])

    def test_a_folder_before_its_download(self):
        files = {name: (GOLDEN / name).read_bytes() for name in ("config.json", "model.safetensors")}
        here = self.folder / "here"
        here.mkdir()
        for name, content in files.items():
            (here / name).write_bytes(content)
        self.hub.repositories["owner/model"] = Repository(files)
        self.assert_as_here(here)
        self.assertIn("experts", self.show("hf:owner/model"))

    def test_a_server_that_ignores_ranges_and_one_that_drops(self):
        for fault, value in (("ignore_ranges", True), ("drop_after", 100_000)):
            with self.subTest(fault):
                setattr(self.hub.faults, fault, value)
                self.assert_as_here(LLAMA)
                setattr(self.hub.faults, fault, 0)

    def test_what_the_hub_refuses_is_one_line(self):
        self.refusal(BAD_FILE, "show", "hf:owner/other", "--quiet", says="hf:owner/other: no such model")
        self.hub.faults.statuses = [(416, {})] * 3
        self.refusal(BAD_FILE, "show", "hf:owner/model", "--quiet",
                     says="tiny.gguf: the server refuses a range inside of the file (416)")
        self.hub.faults.statuses = []
        self.hub.faults.range_shift = 1
        self.refusal(BAD_FILE, "show", "hf:owner/model", "--quiet", says="instead of bytes 0 to ")

    def test_a_broken_file_is_named_as_the_hub_names_it(self):
        self.hub.repositories["owner/model"] = Repository({"tiny.gguf": b"GGUF" + struct.pack("<IQQ", 9, 0, 0)})
        self.refusal(BAD_FILE, "show", "hf:owner/model", "--quiet", says="hf:owner/model/tiny.gguf: header: GGUF version 9")


if __name__ == "__main__":
    unittest.main()
