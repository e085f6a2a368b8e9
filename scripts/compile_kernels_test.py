#!/usr/bin/env python3
"""compile_kernels.py finds what it must in PTX, also in PTX of nvcc where that is installed."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compile_kernels

CLEAN = """
\tmul.rn.f32 \t%f3, %f1, %f2;
\tadd.rn.f32 \t%f4, %f3, %f1;
\t// begin inline asm
\tfma.rn.f32 %f5, %f3, %f4, %f1;
\t// end inline asm
\tdiv.rn.f32 \t%f6, %f5, %f4;
\tmad.lo.s32 \t%r1, %r2, %r3, %r4;
\tmul.wide.s32 \t%rd1, %r1, 4;
\tadd.s64 \t%rd2, %rd1, %rd3;
"""
PLANTED = ["\tfma.rn.f32 \t%f5, %f3, %f4, %f1;", "\tfma.rn.ftz.f32 \t%f5, %f3, %f4, %f1;", "\tmul.f32 \t%f3, %f1, %f2;",
           "\tadd.ftz.f32 \t%f3, %f1, %f2;", "\tdiv.approx.f32 \t%f3, %f1, %f2;", "\tmul.rn.ftz.f32 \t%f3, %f1, %f2;",
           "\tatom.global.add.f32 \t%f1, [%rd1], %f2;", "\tfma.rn.f64 \t%fd1, %fd2, %fd3, %fd4;"]
FUSES = "__global__ void k(const float* x, float* y) { y[0] = x[0] * x[1] + x[2]; }\n"


class CompileKernels(unittest.TestCase):
    def test_assembly_and_rounded_arithmetic_are_no_faults(self):
        self.assertEqual(compile_kernels.faults_of(CLEAN), [])

    def test_every_planted_instruction_is_found(self):
        for line in PLANTED:
            with self.subTest(line):
                self.assertTrue(compile_kernels.faults_of(CLEAN + line + "\n"))

    def test_a_flag_that_does_not_reach_nvcc_shows_in_its_ptx(self):
        if shutil.which("nvcc") is None:
            return  # the planted instructions above are all there is to see
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "k.cu"
            source.write_text(FUSES, encoding="utf-8")
            for flags, is_fault in (([], True), (["-fmad=false"], False)):
                subprocess.run(["nvcc", *flags, "-ptx", "-arch=compute_80", str(source), "-o", f"{folder}/k.ptx"], check=True)
                text = (pathlib.Path(folder) / "k.ptx").read_text(encoding="utf-8")
                self.assertEqual(bool(compile_kernels.faults_of(text)), is_fault)


if __name__ == "__main__":
    unittest.main()
