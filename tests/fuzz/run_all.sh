#!/bin/sh
# Runs every libFuzzer target of a folder on its corpus, KVASIR_FUZZ_SECONDS (60) each; new inputs stay in the
# build folder. A finding stops it with libFuzzer's report.
set -eu
bin=$1
corpus="$(dirname "$0")/corpus"
for target in "$bin"/kvasir_*_fuzz; do
  name=$(basename "$target" _fuzz)
  name=${name#kvasir_}
  found="$bin/../found/$name"
  mkdir -p "$found"
  echo "fuzz: $name"
  "$target" -max_total_time="${KVASIR_FUZZ_SECONDS:-60}" -max_len=8192 -print_final_stats=1 -artifact_prefix="$found-" \
    "$found" "$corpus/$name"
done
