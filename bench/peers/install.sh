#!/bin/sh
# Fetches and builds the programs that Kvasir is measured against, into build/peers; pinned and idempotent, the builds take
# long. llama.cpp and ik_llama.cpp come as the sources inside the packages llama-cpp-python and ik-llama-cpp-python:
#   bin/llama-native    llama.cpp, Release, for this CPU
#   bin/llama-nofp16    the same without AVX512-FP16, on CPUs that have it: its attention of 64-wide heads is faster
#   bin/llama-noamx     the same without AMX besides, on CPUs that have it
# On CPUs with AMX the first two are made by Clang: GCC 12's _tile_loadconfig tells the compiler of eight bytes of the
# configuration, so the others are never stored, and what it makes of llama.cpp dies of an illegal instruction. Clang 14
# spells the macro that llama.cpp asks for __AMXINT8__, and left out its AMX code until told.
#   bin/ik              ik_llama.cpp, Release, for this CPU
# The comparison scripts' Python packages go to venv.
set -eu

llama_version=0.3.36
ik_version=0.1.5
openvino_version=2026.4.1.0
root=$(cd "$(dirname "$0")/../.." && pwd)
peers="$root/build/peers"
jobs=$(nproc)
mkdir -p "$peers/bin"

if [ ! -x "$peers/venv/bin/python" ]; then
  python3 -m venv "$peers/venv"
fi
if [ ! -f "$peers/packages-installed" ]; then
  echo "peers: installing Python packages"
  "$peers/venv/bin/pip" install -q cmake ninja numpy gguf jinja2 diskcache typing_extensions openai \
    openvino-genai=="$openvino_version"
  touch "$peers/packages-installed"
fi
PATH="$peers/venv/bin:$PATH"

# fetch PACKAGE VERSION: its source below $peers
fetch() {
  folder="$peers/$(echo "$1" | tr - _)-$2"
  if [ ! -d "$folder" ]; then
    echo "peers: fetching $1 $2"
    "$peers/venv/bin/pip" download -q --no-deps --no-binary "$1" -d "$peers" "$1==$2"
    tar -xzf "$folder.tar.gz" -C "$peers"
  fi
}

# build SOURCE NAME TARGETS CMAKE-FLAGS...: the programs in bin/NAME
build() {
  source=$1 name=$2 targets=$3
  shift 3
  if [ -f "$peers/bin/$name.built" ]; then
    return
  fi
  echo "peers: building $name"
  cmake -S "$source" -B "$peers/build-$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DBUILD_SHARED_LIBS=ON "$@" >"$peers/configure-$name.log"
  # shellcheck disable=SC2086
  cmake --build "$peers/build-$name" --target $targets -j "$jobs"
  ln -sfn "$peers/build-$name/bin" "$peers/bin/$name"
  touch "$peers/bin/$name.built"
}

fetch llama-cpp-python "$llama_version"
fetch ik-llama-cpp-python "$ik_version"
llama="$peers/llama_cpp_python-$llama_version/vendor/llama.cpp"
ik="$peers/ik_llama_cpp_python-$ik_version/vendor/ik_llama.cpp"
# The source package leaves out the script that writes build-info.cpp.
if [ ! -f "$ik/common/cmake/build-info-gen-cpp.cmake" ]; then
  mkdir -p "$ik/common/cmake"
  cat >"$ik/common/cmake/build-info-gen-cpp.cmake" <<EOF
set(BUILD_NUMBER 0)
set(BUILD_COMMIT "package $ik_version")
set(BUILD_COMPILER "unknown")
set(BUILD_TARGET "unknown")
configure_file("$ik/common/build-info.cpp.in" "$ik/common/build-info.cpp" @ONLY)
EOF
fi
tools="llama-bench llama-batched-bench llama-completion llama-perplexity llama-server llama mtmd"
benches="llama-bench llama-batched-bench"
no_fp16=-mno-avx512fp16 compiler= amx=
if grep -q amx_int8 /proc/cpuinfo; then
  no_amx="$no_fp16 -mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
  build "$llama" llama-noamx "$benches" -DCMAKE_C_FLAGS="$no_amx" -DCMAKE_CXX_FLAGS="$no_amx"
  compiler="-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DGGML_OPENMP=OFF" amx=-D__AMX_INT8__=1
fi
# shellcheck disable=SC2086
build "$llama" llama-native "$tools" -DCMAKE_C_FLAGS="$amx" -DCMAKE_CXX_FLAGS="$amx" $compiler
if grep -q avx512_fp16 /proc/cpuinfo; then
  # shellcheck disable=SC2086
  build "$llama" llama-nofp16 "$benches" -DCMAKE_C_FLAGS="$amx $no_fp16" -DCMAKE_CXX_FLAGS="$amx $no_fp16" $compiler
fi
build "$ik" ik "$benches"
ln -sfn "$peers/llama_cpp_python-$llama_version/llama_cpp" "$peers/llama_cpp"
echo "peers: ready in $peers"
