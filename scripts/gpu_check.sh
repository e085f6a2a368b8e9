#!/usr/bin/env bash
# Checks the CUDA kernels on a device: the bits of every op case against the CPU's, then their speed. Then the engine:
# every golden on the device and on the CPU, and models of the shapes of SmolLM2, Gemma, 8B and 30B-A3B, whose weights are
# drawn there: tokens on both, then the device's speed.
#
#   scripts/gpu_check.sh [BUNDLE]          default: build/gpu_bundle, as scripts/gpu_bundle.sh makes it
#   scripts/gpu_check.sh --sanitize [BUNDLE]   the cases under compute-sanitizer's memcheck and racecheck besides
#   scripts/gpu_check.sh --compile FILE    only compiles the check for sm_90
#
# Rows go to the screen and to bench/results/<gpu>/: ops.tsv, models.tsv, shapes.tsv and graphs.tsv. Needs nvidia-smi, and nvcc unless the bundle's program runs.
# Exit code: 0, 1 for a bit that differs, 3 without a device.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
arch=${KVASIR_GPU_ARCH:-90}

compile() {  # compile FILE
  local cuda=$here/src/backend/cuda objects source jobs=()
  objects=$(mktemp -d)
  for source in "$cuda"/kernels/*.cu "$cuda"/device/gpu_*.cu "$cuda"/cases/run_case.cu "$cuda"/cases/op_case.cc; do
    nvcc -std=c++20 -O3 --expt-relaxed-constexpr -fmad=false -arch="sm_$arch" -I"$here/src" -I"$here/include" -c "$source" \
      -o "$objects/$(basename "$source").o" &
    jobs+=($!)
    # A compiler takes a core and up to a gigabyte.
    if [ ${#jobs[@]} -ge "$(nproc)" ]; then wait "${jobs[0]}"; jobs=("${jobs[@]:1}"); fi
  done
  for job in "${jobs[@]}"; do wait "$job"; done
  nvcc -arch="sm_$arch" -cudart static "$objects"/*.o -o "$1"
  rm -r "$objects"
}

case "${1:-}" in
  -h|--help) sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit ;;
  --compile) [ -n "${2:-}" ] || { echo "gpu_check.sh --compile FILE: the file is missing" >&2; exit 2; } ;;
esac
if [ "${1:-}" = --compile ]; then
  compile "$2"
  exit
fi
sanitize=0
if [ "${1:-}" = --sanitize ]; then sanitize=1; shift; fi
bundle=${1:-$here/build/gpu_bundle}
[ -f "$bundle/cases.bin" ] || { echo "$bundle has no cases.bin: run scripts/gpu_bundle.sh" >&2; exit 2; }

name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 || true)
[ -n "$name" ] || { echo "no NVIDIA device here" >&2; exit 3; }
program=$bundle/kvasir_gpu_check
# A program of another C library says so here.
if ! { [ -x "$program" ] && ldd "$program" >/dev/null 2>&1 && ! ldd "$program" | grep -q 'not found'; }; then
  program=$(mktemp -d)/kvasir_gpu_check
  compile "$program"
fi
results=$here/bench/results/$(echo "$name" | tr 'A-Z ' 'a-z_' | tr -cd 'a-z0-9_-')
mkdir -p "$results"
{
  echo "# commit $(cat "$bundle/commit" 2>/dev/null || echo unknown), $(date -u +%Y-%m-%dT%H:%MZ)"
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader | sed 's/^/# /'
} >"$results/ops.tsv"
status=0
"$program" "$bundle/cases.bin" --bench | tee -a "$results/ops.tsv" || status=$?
if [ $sanitize -eq 1 ] && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 "$program" "$bundle/cases.bin" >"$results/$tool.txt" 2>&1 || status=1
    tail -n 1 "$results/$tool.txt"
  done
fi
# Every golden on the device and on the CPU, tokens and log-probabilities bit for bit.
models=$bundle/kvasir_device_check
if [ -x "$models" ]; then
  check() { (cd "$bundle" && LD_LIBRARY_PATH=$PWD/lib timeout 240 ./kvasir_device_check cuda:0 "$@"); }
  check | tee "$results/models.tsv" || status=1
  # Models of well-known shapes with random weights: bits, then speed. SmolLM2's by graphs of launches, too.
  folder=$(mktemp -d)
  check --shapes "$folder" | tee "$results/shapes.tsv" || status=1
  KVASIR_GPU_GRAPHS=1 check --shapes "$folder" smollm2 8b | tee "$results/graphs.tsv" || status=1
  rm -rf "$folder"
fi
exit $status
