"""`calibrate-kv` measures a model's formats and heads, and what it leaves beside the model is used."""
import json
import pathlib
import shutil
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, MODELS, UNMET, CommandLineTest


class CalibrateKv(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 40)

    def model(self, path):
        return shutil.copy(path, self.folder)

    def test_weighs_each_kv_head_and_each_format(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        found = self.json("calibrate-kv", model, "--file", self.text)
        self.assertEqual(found["file"], str(model) + ".kv.json")
        kept = json.loads(pathlib.Path(found["file"]).read_text())
        self.assertEqual(len(found["head_weights"]), 2)  # a KV head in each of two layers
        self.assertEqual(kept["kv_head_weights"], found["head_weights"])
        self.assertEqual(set(kept["kv_format_costs"]), {f["format"] for f in found["formats"]})
        self.assertTrue(all(weight >= 0.1 for weight in found["head_weights"]))
        run = ["run", model, "--file", self.text, "--raw", "--max-tokens", "4", "--temperature", "0", "--kv-budget", "0.3"]
        self.assertLessEqual(self.json(*run)["memory"]["kv_bytes_share"], 0.3)

    def test_layers_with_a_window_have_no_weights(self):
        found = self.json("calibrate-kv", self.model(GEMMA), "--file", self.text)
        self.assertEqual(len(found["head_weights"]), 2)  # of the layer without a window

    def test_heads_too_small_for_coarse_formats_weigh_alike(self):
        self.assertEqual(self.json("calibrate-kv", self.model(LLAMA), "--file", self.text)["head_weights"], [1] * 4)

    def test_weights_of_another_model_are_refused(self):
        model = self.model(LLAMA)
        beside = self.file("llama-f32.gguf.kv.json", b'{"kv_format_costs": {}, "kv_head_weights": [1, 1, 1, 1, 1, 1, 1]}')
        self.refusal(BAD_FILE, "run", model, "hi", says="weights of 7 KV heads, the model has")
        self.refusal(BAD_FILE, "run", model, "hi", says=beside)

    def test_too_short_a_text(self):
        self.refusal(UNMET, "calibrate-kv", self.model(GEMMA), "--file", self.file("short.txt", b"too short"))


if __name__ == "__main__":
    unittest.main()
