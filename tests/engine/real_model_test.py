"""Runs an invariance test on a model of the store: real_model_test.py TEST_BINARY KVASIR MODEL ISA PROMPTS.

Without an ISA it runs a test of the executor's device. Exit code 77 (skipped) when the model is not there or the host
lacks the ISA.
"""
import json
import os
import subprocess
import sys

SKIPPED = 77


def main(test_binary, kvasir, model, isa, prompts):
    shown = subprocess.run([kvasir, "show", model, "--json"], capture_output=True, text=True)
    if shown.returncode != 0:
        print(f"skipped: {shown.stderr.strip()}")
        return SKIPPED
    if not isa:  # on the executor of GPU kernels
        env = os.environ | {"KVASIR_EXECUTOR_MODEL": json.loads(shown.stdout)[0]["path"]}
        return subprocess.run([test_binary, "--gtest_filter=*SaysWhatTheCpuSays*"], env=env).returncode
    doctor = json.loads(subprocess.run([kvasir, "doctor", "--json"], capture_output=True, text=True).stdout)
    if isa not in doctor["isas"]:
        print(f"skipped: this host has no {isa}")
        return SKIPPED
    path = json.loads(shown.stdout)[0]["path"]
    env = os.environ | {"KVASIR_INVARIANCE_MODEL": path, "KVASIR_INVARIANCE_PROMPTS": prompts,
                        "KVASIR_GUIDED_MODEL": path, "KVASIR_ISA": isa}
    return subprocess.run([test_binary, "--gtest_filter=*Invariance*Solo*:*GuidedInvariance.*"], env=env).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
