"""kvasir quantize as a user meets it: files that load and answer, what it says, refusals, runs that were stopped."""
import hashlib
import json
import os
import pathlib
import signal
import time
import unittest

from command_line import BAD_FILE, DONE, INTERRUPTED, LLAMA, MACHINE, MODELS, NO, USAGE, CommandLineTest

QUANTIZED = str(MODELS / "gemma3-q5_0.gguf")
TEXT = "The river runs past the mill, and the old bridge stands where the road begins. " * 120


class Quantize(CommandLineTest):
    def quantize(self, *args, expect=DONE, **kwargs):
        return self.json("quantize", *args, expect=expect, **kwargs)

    def test_a_file_loads_and_is_near_its_source(self):
        out = self.folder / "q8.gguf"
        said = self.quantize(LLAMA, out, "--type", "Q8_0")
        self.assertEqual(str(out), said["out"])
        self.assertEqual(out.stat().st_size, said["bytes"])
        self.assertEqual(hashlib.sha256(out.read_bytes()).hexdigest(), said["sha256"])
        self.assertEqual("rtn", said["method"])
        self.assertEqual(4, said["verify"]["windows"])
        self.assertLess(said["verify"]["kl"], 0.01)
        self.assertFalse(said["rejected"])
        answer = self.json("run", out, "Once", "--raw", "--max-tokens", "4", "--temperature", "0")
        self.assertEqual(4, len(answer["token_ids"]))
        self.assertFalse(out.with_name("q8.gguf.part").exists())

    def test_the_same_bytes_whatever_the_threads(self):
        sums = {self.quantize(LLAMA, self.folder / f"{threads}.gguf", "--type", "Q4_K_M", "--no-verify", "--threads", threads)["sha256"]
                for threads in ("1", "2", "5")}
        self.assertEqual(1, len(sums))

    def test_corrected_codes_are_the_same_bytes_whatever_threads_and_instructions(self):
        text = self.file("text.txt", TEXT.encode())
        sums = {self.quantize(LLAMA, self.folder / "out.gguf", "--type", "Q4_1", "--calibrate", text, "--no-verify", *flags)["sha256"]
                for flags in (["--threads", "1"], ["--threads", "2"], ["--isa", "avx2"])}
        self.assertEqual(1, len(sums))

    # The model's norms stand beside others behind each sub-layer, and two of them feed inputs of which some are large.
    def test_scales_in_norms_change_no_answer(self):
        text, wide, made = self.file("text.txt", TEXT.encode()), self.folder / "wide.gguf", self.folder / "made.gguf"
        self.quantize(QUANTIZED, wide, "--type", "F32", "--requantize", "--no-verify")
        sums = {}
        for kind in ("F32", "Q4_0"):
            for flags in ([], ["--awq"]):
                said = self.quantize(wide, made, "--type", kind, "--calibrate", text, *flags)
                sums[kind, bool(flags)] = said["sha256"]
                if kind == "F32":
                    self.assertLess(said["verify"]["kl"], 1e-6)
        self.assertEqual(4, len(set(sums.values())), sums)

    def test_experts_get_codes_by_importance(self):
        text = self.file("text.txt", TEXT.encode())
        said = self.quantize(MODELS / "qwen3moe-wide.gguf", self.folder / "out.gguf", "--type", "IQ4_NL", "--requantize", "--calibrate", text,
                             "--no-verify")
        methods = {tensor["name"]: tensor["method"] for tensor in said["tensors"]}
        self.assertEqual("imatrix", methods["blk.0.ffn_down_exps.weight"])
        self.assertEqual("gptq", methods["blk.0.attn_output.weight"])

    def test_calibrated_codes_are_nearer_than_others(self):
        errors = {}
        for name, flags in {"rtn": ["--method", "rtn"], "imatrix": ["--calibrate", "self", "--method", "imatrix"],
                            "gptq": ["--calibrate", "self"]}.items():
            said = self.quantize(LLAMA, self.folder / "out.gguf", "--type", "Q4_0", *flags)
            self.assertEqual(name, said["method"])
            errors[name] = said["verify"]["kl"]
        self.assertGreater(said["calibration_tokens"], 0)
        self.assertLess(errors["gptq"], errors["rtn"])
        self.assertLess(errors["gptq"], errors["imatrix"])

    def test_importance_is_kept_and_taken(self):
        text, kept = self.file("text.txt", TEXT.encode()), self.folder / "kept.imatrix"
        made = self.quantize(LLAMA, self.folder / "a.gguf", "--type", "Q4_0", "--calibrate", text, "--method", "imatrix",
                             "--imatrix-out", kept, "--no-verify")
        taken = self.quantize(LLAMA, self.folder / "b.gguf", "--type", "Q4_0", "--imatrix-in", kept, "--no-verify")
        self.assertEqual("imatrix", taken["method"])
        self.assertEqual([t["type"] for t in made["tensors"]], [t["type"] for t in taken["tensors"]])

    def test_a_dry_run_writes_nothing_and_says_all(self):
        out = self.folder / "dry.gguf"
        said = self.quantize(LLAMA, out, "--type", "Q4_K_M", "--dry-run")
        self.assertFalse(out.exists())
        for absent in ("out", "sha256", "verify"):
            self.assertNotIn(absent, said)
        for present in ("predicted_kl", "predicted_seconds", "predicted_peak_bytes"):
            self.assertIn(present, said)
        made = self.quantize(LLAMA, out, "--type", "Q4_K_M", "--no-verify")
        self.assertEqual(said["bytes"], made["bytes"])
        self.assertEqual([(t["name"], t["type"], t["bytes"]) for t in said["tensors"]],
                         [(t["name"], t["type"], t["bytes"]) for t in made["tensors"]])

    def test_what_is_quantised_already_needs_a_word(self):
        self.refusal(USAGE, "quantize", QUANTIZED, self.folder / "o.gguf", "--type", "Q4_0",
                     says="is quantised already (Q5_0); --requantize takes its numbers as exact")
        self.quantize(QUANTIZED, self.folder / "o.gguf", "--type", "F32", "--requantize", "--no-verify")

    def test_wrong_usage_is_one_line(self):
        for args, says in [
            (["--type", "Q9"], "type: one of F32, F16"),
            (["--type", "Q4_0", "--keep", "ffn"], "keep: ffn: it must be REGEX=TYPE"),
            (["--type", "Q4_0", "--awq"], "--awq: needs --calibrate"),
            (["--type", "Q4_0", "--method", "gptq"], "--method gptq: needs --calibrate"),
            (["--type", "Q4_0", "--method", "imatrix"], "--method imatrix: needs --imatrix-in"),
            (["--type", "Q4_0", "--method", "rtn", "--calibrate", "self"], "--method rtn"),
            (["--type", "Q4_0", "--imatrix-out", "x"], "--imatrix-out: needs --calibrate"),
        ]:
            with self.subTest(args):
                self.refusal(USAGE, "quantize", LLAMA, self.folder / "o.gguf", *args, says=says)
        self.refusal(USAGE, "quantize", LLAMA, LLAMA, "--type", "Q4_0", says="OUT is IN")
        self.refusal(BAD_FILE, "quantize", self.folder / "none.gguf", self.folder / "o.gguf", "--type", "Q4_0", says="none.gguf")
        self.refusal(BAD_FILE, "quantize", LLAMA, self.folder / "o.gguf", "--type", "Q4_0", "--imatrix-in",
                     self.file("wrong", b"no matrix"), says="is no importance matrix")
        self.refusal(MACHINE, "quantize", LLAMA, "/nowhere/o.gguf", "--type", "Q4_0", says="/nowhere/o.gguf")

    def test_the_words_of_llama_quantize_are_understood(self):
        self.assertEqual("Q8_0", {t["name"]: t["type"] for t in self.quantize(LLAMA, self.folder / "o.gguf", "Q8_0", "--no-verify")["tensors"]}["token_embd.weight"])
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "o.gguf", "Q4_0", "--allow-requantize", says="--requantize")
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "o.gguf", "Q4_0", "--imatrix", "x", says="--imatrix-in")

    def test_nothing_else_is_written_over(self):
        source = self.file("in.gguf.part", pathlib.Path(LLAMA).read_bytes())
        self.refusal(USAGE, "quantize", source, self.folder / "in.gguf", "--type", "Q4_0", says="is IN, and quantize would write there")
        self.assertEqual(pathlib.Path(LLAMA).read_bytes(), pathlib.Path(source).read_bytes())
        foreign = self.folder / "out.gguf.part"
        foreign.write_text("mine")
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "out.gguf", "--type", "Q4_0", says="is no journal of quantize")
        self.assertEqual("mine", foreign.read_text())
        foreign.unlink()
        foreign.symlink_to(source)
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "out.gguf", "--type", "Q4_0", says="is a link")
        folder = self.folder / "a-folder"
        folder.mkdir()
        self.refusal(USAGE, "quantize", LLAMA, folder, "--type", "Q4_0", says="is there and is no file")
        self.refusal(USAGE, "quantize", LLAMA, "", "--type", "Q4_0", says="OUT is empty")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.refusal(USAGE, "quantize", LLAMA, pipe, "--type", "Q4_0", says="is there and is no file")

    def test_patterns_take_linear_time_and_touch_matrices_alone(self):
        said = self.quantize(LLAMA, self.folder / "o.gguf", "--type", "Q4_0", "--no-verify", "--keep", "(.*)*(.*)*(.*)*(.*)*Z=Q8_0",
                             "--keep", "norm=F16", "--keep", "^blk.0.ffn_down=Q8_0")
        types = {tensor["name"]: tensor["type"] for tensor in said["tensors"]}
        self.assertEqual("F32", types["output_norm.weight"])
        self.assertEqual("Q8_0", types["blk.0.ffn_down.weight"])

    def test_a_size_is_kept(self):
        source_bytes = pathlib.Path(LLAMA).stat().st_size
        for share in (0.30, 0.40):
            wanted = int(share * source_bytes)
            said = self.quantize(LLAMA, self.folder / "o.gguf", "--bytes", str(wanted), "--calibrate", "self", "--no-verify")
            self.assertLessEqual(said["bytes"], wanted)
            self.assertGreater(said["bytes"], 0.97 * wanted)
            self.assertGreater(said["predicted_kl"], 0.0)
        said = self.quantize(LLAMA, self.folder / "o.gguf", "--bpw", "7", "--no-verify")
        self.assertLessEqual(said["bits_per_weight"], 7.0)
        self.assertGreater(said["bits_per_weight"], 6.5)
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "o.gguf", "--bytes", "1KiB", says="bytes: the model takes")
        self.refusal(USAGE, "quantize", LLAMA, self.folder / "o.gguf", "--type", "Q4_0", "--bpw", "4", says="one of --type, --bytes and --bpw")

    def test_a_run_that_was_killed_goes_on(self):
        out = self.folder / "killed.gguf"
        expected = self.quantize(LLAMA, self.folder / "whole.gguf", "--type", "Q6_K", "--no-verify")["sha256"]
        for _ in range(3):
            process = self.start("quantize", LLAMA, out, "--type", "Q6_K", "--no-verify")
            time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(expected, self.quantize(LLAMA, out, "--type", "Q6_K", "--no-verify")["sha256"])


if __name__ == "__main__":
    unittest.main()
