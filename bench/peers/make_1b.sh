#!/bin/sh
# Makes the 1B-shaped files that compare.py measures, with random weights and no tokenizer, in build/models: Llama 3.2 1B's
# shape, its matrices in Q4_0, Q4_K and Q8_0, embedding and head in Q6_K as llama.cpp's own quantiser leaves them. Needs
# install.sh's Python packages; what is there is not made again.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$root/build/models"
for type in Q4_0 Q4_K Q8_0; do
  model="$root/build/models/1b-$type.gguf"
  [ -f "$model" ] && continue
  echo "1b: making $model"
  "$root/build/peers/venv/bin/python" "$root/scripts/make_tiny_model.py" "$model.part" --type "$type" --embedding-type Q6_K \
    --layers 16 --embedding 2048 --ffn 8192 --heads 32 --kv-heads 8 --context 8192 --vocab 128256 --no-tokenizer
  mv "$model.part" "$model"
done
