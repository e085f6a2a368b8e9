#!/bin/sh
# Fetches and builds what Kvasir is compared with, into build/peers: llama.cpp from the source in llama-cpp-python, and
# the Python packages of the comparison scripts. Takes about half an hour on 2 cores, once.
set -eu

version=0.3.36
root=$(cd "$(dirname "$0")/.." && pwd)
peers="$root/build/peers"
llama="$peers/llama_cpp_python-$version/vendor/llama.cpp"

mkdir -p "$peers"
if [ ! -x "$peers/venv/bin/python" ]; then
  python3 -m venv "$peers/venv"
fi
if [ ! -f "$peers/packages-installed" ]; then
  echo "peers: installing Python packages"
  "$peers/venv/bin/pip" install -q cmake ninja numpy gguf jinja2 diskcache typing_extensions openai
  touch "$peers/packages-installed"
fi
if [ ! -d "$llama" ]; then
  echo "peers: fetching llama-cpp-python $version"
  "$peers/venv/bin/pip" download -q --no-deps --no-build-isolation --no-binary :all: -d "$peers" "llama-cpp-python==$version" ||
    "$peers/venv/bin/pip" download -q --no-deps --no-binary :all: -d "$peers" "llama-cpp-python==$version"
  tar -xzf "$peers/llama_cpp_python-$version.tar.gz" -C "$peers"
fi
if [ ! -x "$llama/build/bin/llama-perplexity" ]; then
  echo "peers: building llama.cpp"
  PATH="$peers/venv/bin:$PATH"
  cmake -S "$llama" -B "$llama/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DBUILD_SHARED_LIBS=ON >"$peers/configure.log"
  cmake --build "$llama/build" --target llama-bench llama-perplexity llama mtmd -j "$(nproc)"
fi
ln -sfn "$llama/build/bin" "$peers/bin"
ln -sfn "$peers/llama_cpp_python-$version/llama_cpp" "$peers/llama_cpp"
echo "peers: ready in $peers"
