"""Compares the embeddings of a model of the store with the reference's: real_encoder_test.py TEST_BINARY KVASIR MODEL.

Exit code 77 (skipped) when the model is not there.
"""
import json
import os
import subprocess
import sys

SKIPPED = 77


def main(test_binary, kvasir, model):
    shown = subprocess.run([kvasir, "show", model, "--json"], capture_output=True, text=True)
    if shown.returncode != 0:
        print(f"skipped: {shown.stderr.strip()}")
        return SKIPPED
    env = os.environ | {"KVASIR_ENCODER_MODEL": json.loads(shown.stdout)[0]["path"]}
    return subprocess.run([test_binary, "--gtest_filter=*RealEncoder*"], env=env).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
