#!/usr/bin/env bash
# Makes the virtual environment build/clients/venv that the tests of this folder run their clients from.
#
#   tests/clients/install.sh              openai, litellm, langchain-openai, anthropic, websockets,
#                                         grpcio (conformance_test.py)
#   tests/clients/install.sh lm-eval      also lm-eval (lm_eval_test.py)
#   tests/clients/install.sh guidellm     also guidellm (guidellm_test.py)
#   tests/clients/install.sh page         also selenium (tests/page; the browser is Debian's chromium and chromium-driver)
#   tests/clients/install.sh traces       also opentelemetry-sdk and opentelemetry-proto (traces_test.py)
#
# Exit code 0: installed; 2: an unknown word; else what pip said.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/clients/venv
packages=(openai litellm mcp langchain-openai anthropic websockets
          grpcio grpcio-reflection)  # litellm needs mcp for requests with tools
for word in "$@"; do
  case $word in
    lm-eval) packages+=("lm-eval[api]") ;;
    guidellm) packages+=(guidellm) ;;
    page) packages+=(selenium) ;;
    traces) packages+=(opentelemetry-sdk opentelemetry-proto) ;;
    *) echo "install.sh: unknown: $word (lm-eval, guidellm, page and traces are known)" >&2; exit 2 ;;
  esac
done
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
"$venv/bin/pip" list --disable-pip-version-check 2>/dev/null |
  grep -iE '^(openai|litellm|langchain-openai|anthropic|websockets|grpcio|lm_eval|guidellm|selenium|opentelemetry-sdk) '
