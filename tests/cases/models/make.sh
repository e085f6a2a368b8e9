#!/bin/sh
# Makes the tiny random models of this folder again, byte for byte (needs python3 with numpy and gguf).
# Between them they cover every architecture, every weight type, both tokenizers and both rope scalings.
set -eu
cd "$(dirname "$0")"
make="${PYTHON:-python3} ../../../scripts/make_tiny_model.py"

$make --arch llama --type F32 --ffn 64 --vocab 275 --pre smollm llama-f32.gguf
$make --arch llama --type BF16 --second-type F16 --rope-scaling llama3 --untied --seed 2 llama3-bf16.gguf
$make --arch llama --type Q4_K --second-type Q6_K --embedding-type Q5_K --layers 1 --kv-heads 1 --tokenizer spm \
  --seed 3 llama-q4_k.gguf
$make --arch qwen2 --type Q8_0 --second-type Q4_0 --rope-scaling linear --seed 4 qwen2-q8_0.gguf
$make --arch qwen3 --type Q4_1 --second-type Q5_1 --embedding-type Q8_0 --kv-heads 1 --seed 5 qwen3-q4_1.gguf
$make --arch qwen3moe --type Q4_0 --second-type Q8_0 --kv-heads 1 --seed 8 qwen3moe-q4_0.gguf
# Rows of 288 and 320 inputs: in the fast mode more than a span of 256, and not a multiple.
$make --arch qwen3moe --type Q4_0 --second-type Q8_0 --layers 1 --embedding 288 --ffn 320 --experts 2 --experts-used 1 \
  --kv-heads 1 --seed 10 qwen3moe-wide.gguf
$make --arch gemma3 --type Q5_0 --embedding-type F16 --layers 3 --window-pattern 3 --seed 6 gemma3-q5_0.gguf
$make --arch gemma4 --type Q4_0 --embedding-type Q8_0 --layers 5 --embedding 32 --ffn 64 --heads 2 --kv-heads 1 \
  --head-dim 512 --seed 9 gemma4-q4_0.gguf
$make --arch llama --type Q8_0 --layers 1 --vocab 64 --no-tokenizer --seed 7 no-tokenizer.gguf
