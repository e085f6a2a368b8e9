"""A GPU as a user meets it, on a `kvasir` whose cuda:0 is the host executor: memory, refusals, a device that is lost."""
import http.client
import json
import unittest

from command_line import DONE, GEMMA, LLAMA, MACHINE, TIME_LIMIT_S, UNMET, USAGE, CommandLineTest

PROMPT = ["Once upon a time there was a river", "--raw", "--max-tokens", "8", "--temperature", "0"]
ON_GPU = ["--device", "cuda:0"]


class Gpu(CommandLineTest):
    def test_it_says_what_the_cpu_says(self):
        on_cpu = self.json("run", LLAMA, *PROMPT)
        on_gpu = self.json("run", LLAMA, *PROMPT, *ON_GPU)
        self.assertEqual(on_cpu["token_ids"], on_gpu["token_ids"])
        self.assertEqual("cuda:0", on_gpu["device"])

    def test_it_has_the_fast_mode(self):
        on_cpu = self.json("run", GEMMA, *PROMPT, "--fast")
        on_gpu = self.json("run", GEMMA, *PROMPT, "--fast", *ON_GPU)
        self.assertEqual(on_cpu["token_ids"], on_gpu["token_ids"])

    def test_doctor_lists_it(self):
        devices = {device["name"]: device for device in self.json("doctor", expect=None)["devices"]}
        self.assertTrue(devices["cuda:0"]["usable"])

    def test_its_memory_is_bounded(self):
        expected = self.json("run", LLAMA, *PROMPT)["token_ids"]
        for share in ("40MiB", "0.001", "0.1%"):
            with self.subTest(share):
                self.assertEqual(expected, self.json("run", LLAMA, *PROMPT, *ON_GPU, "--gpu-memory", share)["token_ids"])

    def test_layers_that_do_not_fit_stay_on_the_cpu(self):
        expected = self.json("run", LLAMA, *PROMPT)["token_ids"]
        for flags in (["--gpu-layers", "0"], ["-ngl", "1"], ["--n-gpu-layers", "99"], ["--gpu-layers", "all"]):
            with self.subTest(flags):
                self.assertEqual(expected, self.json("run", LLAMA, *PROMPT, *ON_GPU, *flags)["token_ids"])
        said = self.kvasir("run", LLAMA, *PROMPT, *ON_GPU, "-ngl", "1", expect=DONE).stderr
        self.assertRegex(said, "1 of [0-9]+ layers run on cuda:0, the matrices of the others .* on the CPU")
        said = self.kvasir("run", LLAMA, *PROMPT, "-ngl", "99", expect=DONE).stderr
        self.assertIn("no GPU runs the model", said)
        for value in ("some", "-1", "1.5"):
            self.refusal(USAGE, "run", LLAMA, "hi", *ON_GPU, f"--gpu-layers={value}", says="auto, all or a number")

    def test_what_does_not_fit_is_refused_before_anything_runs(self):
        for verb in (["run", LLAMA, "hi"], ["serve", LLAMA, "--port", "0"]):
            with self.subTest(verb):
                said = self.refusal(MACHINE, *verb, *ON_GPU, "--gpu-memory", "1MiB", says="gpu-memory: ")
                self.assertRegex(said, "--gpu-memory [0-9]+MiB would do")
        self.refusal(MACHINE, "run", LLAMA, "hi", *ON_GPU, "--gpu-memory", "1TiB",
                     says="gpu-memory: 64.0 GiB of 64.0 GiB are free on cuda:0, 1.00 TiB were asked for")

    def test_a_value_that_is_none_is_refused(self):
        for value, says in (("lots", "--gpu-memory"), ("0", "above 0 and at most 1, not 0"), ("150%", "not 150%"), ("1.1", "at most 1, not 1.1")):
            with self.subTest(value):
                self.refusal(USAGE, "run", LLAMA, "hi", *ON_GPU, "--gpu-memory", value, says=says)

    def test_verbs_that_know_no_device_refuse_it(self):
        self.refusal(UNMET, "plan", LLAMA, *ON_GPU, says="plans are of the processor's memory and speed")
        self.refusal(UNMET, "serve", LLAMA, "--port", "0", *ON_GPU, "--kv-budget", "30%", says="kv_policy")

    def test_what_it_lacks_is_refused(self):
        self.refusal(MACHINE, "run", LLAMA, "hi", "--device", "cuda:7", says="cuda:7")
        self.refusal(UNMET, "run", LLAMA, "hi", *ON_GPU, "--kv-budget", "30%", says="kv_policy")

    def test_a_device_that_is_lost_ends_run(self):
        said = self.refusal_after_text(MACHINE, "run", LLAMA, *PROMPT, *ON_GPU, env={"KVASIR_EXECUTOR_LAUNCHES": "300"})
        self.assertIn("device: cuda:0 gives no results any more", said)

    def refusal_after_text(self, expect, *args, env):
        return self.kvasir(*args, expect=expect, env=env).stderr

    def test_a_device_that_is_lost_ends_streams_and_the_server(self):
        process = self.start("serve", LLAMA, "--port", "0", "--json", *ON_GPU,
                             env={"KVASIR_EXECUTOR_LAUNCHES": "3000"})
        ready = json.loads(process.stdout.readline())
        self.assertEqual("cuda:0", ready["device"])
        self.assertIn("on cuda:0", ready["memory"])
        connection = http.client.HTTPConnection("127.0.0.1", int(ready["url"].rsplit(":", 1)[1]), timeout=TIME_LIMIT_S)
        connection.request("POST", "/v1/completions", json.dumps(
            {"model": ready["model"], "prompt": "Once", "max_tokens": 400, "stream": True, "ignore_eos": True}))
        stream = connection.getresponse().read().decode()
        self.assertIn("gives no results any more", stream)
        self.assertIn('"error"', stream)
        process.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(MACHINE, process.returncode)


if __name__ == "__main__":
    unittest.main()
