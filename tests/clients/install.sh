#!/usr/bin/env bash
# Makes the virtual environments that the tests of this folder run their clients from: build/clients/venv, and
# build/clients/{llama_index,pydantic_ai} for packages that do not go with the newest openai or anthropic.
#
#   tests/clients/install.sh              openai, litellm, langchain-openai, anthropic, websockets, grpcio
#                                         (conformance_test.py), huggingface_hub, and those of toolkits_test.py
#   tests/clients/install.sh lm-eval      also lm-eval (lm_eval_test.py)
#   tests/clients/install.sh guidellm     also guidellm (guidellm_test.py)
#   tests/clients/install.sh page         also selenium (tests/page; the browser is Debian's chromium and chromium-driver)
#   tests/clients/install.sh traces       also opentelemetry-sdk and opentelemetry-proto (traces_test.py)
#
# Exit code 0: installed; 2: an unknown word; else what pip said.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
packages=(openai litellm mcp langchain-openai anthropic websockets
          grpcio grpcio-reflection  # litellm needs mcp for requests with tools
          openai-agents langchain-anthropic instructor openapi-spec-validator huggingface_hub
          ollama langchain-ollama cohere)
# pip finds a LlamaIndex of years ago beside openai 3. pydantic-ai does not work with anthropic 2, nor do its releases
# that go with LlamaIndex's openai with anthropic 1.
llama_index=("llama-index-llms-openai-like>=0.5" llama-index-llms-ollama)
pydantic_ai=("pydantic-ai-slim[openai,anthropic]" "anthropic<2")
for word in "$@"; do
  case $word in
    lm-eval) packages+=("lm-eval[api]") ;;
    guidellm) packages+=(guidellm) ;;
    page) packages+=(selenium) ;;
    traces) packages+=(opentelemetry-sdk opentelemetry-proto) ;;
    *) echo "install.sh: unknown: $word (lm-eval, guidellm, page and traces are known)" >&2; exit 2 ;;
  esac
done

install() {
  local venv=$root/build/clients/$1
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
  "$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -iE \
    '^(openai(-agents)?|litellm|langchain-(openai|anthropic)|anthropic|websockets|grpcio|instructor|pydantic-ai-slim|llama-index-llms-openai-like|lm_eval|guidellm|selenium|opentelemetry-sdk) '
}

install venv "${packages[@]}"
install llama_index "${llama_index[@]}"
install pydantic_ai "${pydantic_ai[@]}"
