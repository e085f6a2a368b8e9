#!/usr/bin/env bash
# Makes build/gpu_bundle: what scripts/gpu_check.sh needs on a machine with a GPU but without network and our libraries.
#
#   scripts/gpu_bundle.sh [BUILD_FOLDER]     default: build/release
#
# It holds the op cases with the bits of this machine's CPU, the sources of the check, the check compiled for sm_90 where
# nvcc is installed here, and the engine's check with the goldens where the preset cuda was built. With the bundle as a folder beside the script, no checkout is needed there.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
bundle=build/gpu_bundle
limit_mib=48

[ -x "$build/bin/kvasir_cuda_cases" ] || cmake --build "$build" --target kvasir_cuda_cases
rm -rf "$bundle"
mkdir -p "$bundle/tree/scripts"
"$build/bin/kvasir_cuda_cases" "$bundle/cases.bin"
for folder in src/backend/cuda src/kernels src/quant src/kv/cells src/base include/kvasir; do
  mkdir -p "$bundle/tree/$folder"
  (cd "$folder" && find . \( -name '*.h' -o -name '*.cu' -o -name '*.def' -o -name op_case.cc \) -print0 | tar --null -T - -cf -) |
    tar -C "$bundle/tree/$folder" -xf -
done
cp scripts/gpu_check.sh "$bundle/tree/scripts/"
git rev-parse HEAD >"$bundle/commit" 2>/dev/null || rm -f "$bundle/commit"
if command -v nvcc >/dev/null; then
  scripts/gpu_check.sh --compile "$bundle/kvasir_gpu_check"
else
  echo "no nvcc here: the check is compiled on the machine with the GPU"
fi
# The engine's check, with the libraries that it needs beside the C library's: of the preset cuda, where that was built.
models=build/cuda/bin/kvasir_device_check
if [ -x "$models" ]; then
  mkdir -p "$bundle/lib" "$bundle/tests/cases/models"
  cp "$models" "$bundle/"
  strip "$bundle/kvasir_device_check"
  ldd "$models" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so/ { print $3 }' |
    xargs -I{} cp -L {} "$bundle/lib/"
  cp -r tests/goldens "$bundle/tests/"
  cp tests/cases/models/*.gguf "$bundle/tests/cases/models/"
else
  echo "no $models: goldens are not checked (cmake --preset cuda, and its target kvasir_device_check)"
fi
tar -C build -czf build/gpu_bundle.tar.gz gpu_bundle
size_kib=$(du -k build/gpu_bundle.tar.gz | cut -f1)
echo "build/gpu_bundle.tar.gz: $size_kib KiB"
[ "$size_kib" -le $((limit_mib * 1024)) ] || { rm build/gpu_bundle.tar.gz; echo "more than $limit_mib MiB: no archive is left" >&2; exit 1; }
