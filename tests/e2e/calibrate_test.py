"""`calibrate-kv` measures a model's formats and heads, and what it leaves beside the model is used."""
import json
import pathlib
import shutil
import unittest

from command_line import BAD_FILE, GEMMA, LLAMA, MODELS, UNMET, USAGE, CommandLineTest


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

    def test_the_model_writes_the_text_of_self(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        found = self.json("calibrate-kv", model, "--file", "self")
        self.assertEqual(self.json("calibrate-kv", model, "--file", "self"), found)
        beside = self.json("calibrate-kv", model, "--file", self.text, "--file", "self", "--windows", "2")
        self.assertNotEqual(beside["formats"], found["formats"])
        self.assertNotEqual(beside["formats"], self.json("calibrate-kv", model, "--file", self.text)["formats"])
        self.refusal(USAGE, "calibrate-kv", model, "--file", "self", "--file", "self", says="--file: self may be given once")

    def test_layers_with_a_window_have_no_weights(self):
        found = self.json("calibrate-kv", self.model(GEMMA), "--file", self.text)
        self.assertEqual(len(found["head_weights"]), 2)  # of the layer without a window

    def test_heads_too_small_for_coarse_formats_weigh_alike(self):
        self.assertEqual(self.json("calibrate-kv", self.model(LLAMA), "--file", self.text)["head_weights"], [1] * 4)

    def test_weights_of_another_model_are_refused(self):
        model = self.model(LLAMA)
        beside = self.file("llama-f32.gguf.kv.json", b'{"kv_format_costs": {"q8": 0.002}, "kv_head_weights": [1, 1, 1, 1, 1, 1, 1]}')
        self.refusal(BAD_FILE, "run", model, "hi", says="weights of 7 KV heads, the model has")
        self.refusal(BAD_FILE, "run", model, "hi", says=beside)

    def test_statistics_of_keys_make_a_coarser_format(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        short = self.file("short.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 20)
        run = ["run", model, "--file", self.text, "--raw", "--max-tokens", "8", "--temperature", "0", "--kv-policy", "k2pv2"]
        self.refusal(UNMET, *run, says="kv_policy: k2pv2 needs statistics of the model's keys; kvasir calibrate-kv makes them")
        self.assertNotIn("k2pv2", {f["format"] for f in self.json("calibrate-kv", model, "--file", short)["formats"]})
        long = self.file("long.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 600)
        formats = {f["format"]: f for f in self.json("calibrate-kv", model, "--file", long)["formats"]}
        self.assertLess(formats["k2pv2"]["bytes_share"], formats["k3v2"]["bytes_share"])
        self.assertEqual(self.json(*run)["text"], self.json(*run)["text"])
        self.assertLess(self.json(*run)["memory"]["kv_bytes_share"], 0.5)
        keys = pathlib.Path(f"{model}.kv.keys")
        whole = keys.read_bytes()
        keys.write_bytes(whole[:-40])
        self.refusal(BAD_FILE, "run", model, "hi", says=str(keys))
        shutil.copy(GEMMA, model)
        pathlib.Path(f"{model}.kv.json").unlink()
        keys.write_bytes(whole)
        self.refusal(BAD_FILE, "run", model, "hi", says="of another model than this file's; kvasir calibrate-kv writes it anew")

    def test_a_forecast_is_used_and_kept(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        path = pathlib.Path(self.json("calibrate-kv", model, "--file", self.text)["file"])
        forecast = {"input_weights": [0.01 * i for i in range(7 * 16)], "hidden_biases": [0.1] * 2 * 16,
                    "output_weights": [0.05 * (-1) ** i for i in range(16)], "output_biases": [0, 1]}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"kv_forecast": forecast}))
        run = ["run", model, "--file", self.text, "--raw", "--max-tokens", "4", "--temperature", "0", "--kv-budget", "0.3", "--kv-quality",
               "best_effort", "--kv-policy"]
        self.assertLessEqual(self.json(*run, "ladder-learned")["memory"]["kv_bytes_share"], 0.31)
        self.json("calibrate-kv", model, "--file", self.text)
        self.assertEqual(forecast["output_biases"], json.loads(path.read_text())["kv_forecast"]["output_biases"])
        path.write_text(json.dumps(json.loads(path.read_text()) | {"kv_forecast": forecast | {"output_biases": [0]}}))
        self.refusal(BAD_FILE, *run, "ladder-learned", says="its forecast is not of 2 KV heads, 16 units and 7 inputs")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"kv_forecast": forecast | {"asked_biases": [0, 1]}}))
        self.refusal(BAD_FILE, *run, "ladder-learned", says="its forecast is not of 2 KV heads, 16 units and 7 inputs")

    def test_a_forecast_of_another_file_counts(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        path = pathlib.Path(self.json("calibrate-kv", model, "--file", self.text)["file"])
        kept = json.loads(path.read_text())
        other = pathlib.Path(self.file("other.json", b""))
        run = ["run", model, "--file", self.text, "--raw", "--max-tokens", "4", "--temperature", "0", "--kv-budget", "0.3", "--kv-quality",
               "best_effort", "--kv-policy", "ladder-learned", "--kv-forecast", other]
        self.refusal(BAD_FILE, *run, says="other.json: no JSON")
        other.write_text(json.dumps(kept))
        self.refusal(BAD_FILE, *run, says="other.json: it has no forecast; kvasir calibrate-kv --forecast learns one")
        forecast = {"input_weights": [0.01 * i for i in range(7 * 16)], "hidden_biases": [0.1] * 2 * 16,
                    "output_weights": [0.05 * (-1) ** i for i in range(16)], "output_biases": [0, 1],
                    "asked_weights": [0.02] * 16, "asked_biases": [-3, -2]}
        other.write_text(json.dumps(kept | {"kv_forecast": forecast}))
        self.assertLessEqual(self.json(*run)["memory"]["kv_bytes_share"], 0.31)
        other.write_text(json.dumps(kept | {"kv_forecast": forecast, "model": "1-0"}))
        self.refusal(BAD_FILE, *run, says="other.json: of another model than this file's")
        path.write_text(json.dumps(kept | {"kv_forecast": forecast | {"output_biases": [0]}}))  # nobody needs it
        other.write_text(json.dumps(kept | {"kv_forecast": forecast}))
        self.json(*run)
        self.refusal(USAGE, "serve", model, GEMMA, "--kv-forecast", other, says="--kv-forecast: it goes with one model, 2 are served")

    def test_a_forecast_is_learned(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        text = self.file("long.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 600)
        other = self.file("other.txt", b"def fox(dog): return dog.quick(12)  # lazy\n" * 600)
        found = self.json("calibrate-kv", model, "--file", text, "--file", other, "--forecast", "--forecast-windows", "3")
        forecast = found["forecast"]
        self.assertEqual(2, forecast["windows"])
        self.assertLess(forecast["loss"], forecast["loss_of_mean"])
        for kl in ("kl_ladder_20", "kl_decayed_mass_20", "kl_learned_20"):
            self.assertGreaterEqual(forecast[kl], 0)
        kept = json.loads(pathlib.Path(found["file"]).read_text())["kv_forecast"]
        self.assertEqual((7 * 16, 2 * 16, 16, 2), tuple(len(kept[name]) for name in ("input_weights", "hidden_biases", "output_weights", "output_biases")))
        self.assertEqual((16, 2), (len(kept["asked_weights"]), len(kept["asked_biases"])))
        self.refusal(UNMET, "calibrate-kv", model, "--file", text, "--file", self.file("short.txt", b"short"), says="short.txt")
        self.refusal(UNMET, "calibrate-kv", model, "--file", self.text, "--forecast", says="1920")

    def test_what_budgets_cost_is_measured_and_planned_with(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        text = self.file("long.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 200)
        self.json("calibrate-kv", model, "--file", text)
        self.assertNotIn("kv_cost", self.json("plan", model, "--context", "256"))
        found = self.json("calibrate-kv", model, "--file", text, "--cost-curve", "--cost-windows", "2")
        curve = found["cost_curve"]
        self.assertEqual([0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1], [point["budget"] for point in curve["points"]])
        planned = [point["planned"] for point in curve["points"]]
        self.assertEqual(sorted(planned), planned)
        self.assertGreater(planned[-1], planned[0])
        kept = json.loads(pathlib.Path(found["file"]).read_text())
        self.assertEqual(curve["points"], kept["kv_cost_curve"]["points"])
        point = curve["points"][4]
        cost = self.json("plan", model, "--context", "256", "--kv-budget", "0.2")["kv_cost"]
        self.assertEqual((0.2, "ladder-priced"), (cost["budget"], cost["policy"]))
        self.assertAlmostEqual(point["ratio_high"], cost["ratio_high"])
        self.assertIn("KV at 30%: perplexity ratio", self.kvasir("plan", model, "--context", "256").stdout.decode())
        self.assertNotIn("kv_cost", self.json("plan", model, "--context", "256", "--kv-budget", "0.05"))
        self.json("calibrate-kv", model, "--file", text)  # the same costs and weights
        self.assertEqual(kept["kv_cost_curve"], json.loads(pathlib.Path(found["file"]).read_text())["kv_cost_curve"])

    def test_the_regret_of_each_act_is_bounded(self):
        model = self.model(MODELS / "qwen3-q4_1.gguf")
        text = self.file("long.txt", b"the quick brown fox and the lazy dog in 12 stories, told anew " * 400)
        acts = pathlib.Path(self.folder) / "acts.csv"
        found = self.json("eval", "kv-regret", model, "--file", text, "--windows", "1", "--budgets", "0.3,0.15", "--acts", acts)
        for budget in found["budgets"]:
            self.assertEqual(11, budget["acts"])  # each 128 tokens, as far as more than 512 come
            self.assertEqual(11, budget["bounded_with_slack"])
            self.assertGreater(budget["planned"], 0)
        lines = acts.read_text().splitlines()
        self.assertEqual("policy,window,tokens,budget,planned,realised,best,left,middle,slack", lines[0])
        self.assertEqual(1 + 15 * 2, len(lines))
        self.refusal(UNMET, "eval", "kv-regret", model, "--file", text, "--windows-from", "99", says="--windows-from 99")

    def test_a_broken_file_is_made_anew_by_the_command_that_it_names(self):
        model = self.model(GEMMA)
        pathlib.Path(f"{model}.kv.json").write_text("{")
        self.refusal(BAD_FILE, "run", model, "hi", says="kvasir calibrate-kv writes it anew")
        self.json("calibrate-kv", model, "--file", self.text)
        self.json("run", model, "hi", "--max-tokens", "1", "--raw")

    def test_a_file_of_another_model_is_refused(self):
        model = self.model(GEMMA)
        path = pathlib.Path(self.json("calibrate-kv", model, "--file", self.text)["file"])
        path.write_text(json.dumps({**json.loads(path.read_text()), "model": "1-0"}))
        self.refusal(BAD_FILE, "run", model, "hi", says="of another model than this file's")

    def test_settings_of_the_environment_count(self):
        arguments = ["run", self.model(LLAMA), "--file", self.text, "--raw", "--max-tokens", "1", "--temperature", "0"]
        self.assertLess(self.json(*arguments, env={"KVASIR_KV_BUDGET": "0.5"})["memory"]["kv_bytes_share"], 0.9)
        self.refusal(USAGE, *arguments, env={"KVASIR_KV_BUDGET": "abc"}, says="KVASIR_KV_BUDGET")
        self.refusal(USAGE, *arguments, env={"KVASIR_KV_POLICY": "laddr"}, says="did you mean 'ladder'?")

    def test_too_short_a_text(self):
        self.refusal(UNMET, "calibrate-kv", self.model(GEMMA), "--file", self.file("short.txt", b"too short"))


if __name__ == "__main__":
    unittest.main()
