#include "cli/help_layout.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "server/limits.h"

namespace kvasir::cli {
namespace {

struct Group {
  std::string_view title;
  std::span<const std::string_view> flags;  // long names
};

constexpr std::string_view kModelFlags[] = {"model", "ctx",    "ctx-size", "max-model-len", "chat-template",
                                            "fast",  "system", "raw",      "special",       "no-special",
                                            "served-model-name", "model-dir", "any-model-name", "max-loaded-models", "keep-alive"};
constexpr std::string_view kSamplingFlags[] = {
    "max-tokens", "temperature", "temp",       "top-k",              "top-p",            "min-p",
    "seed",       "stop",        "ignore-eos", "repetition-penalty", "presence-penalty", "frequency-penalty"};
constexpr std::string_view kKvFlags[] = {"kv-type", "kv-policy", "kv-budget", "kv-quality", "kv-log", "kv-cache-tokens",
                                         "no-prefix-cache", "public-prefix", "no-prefill-only", "kv-max-lost",
                                         "kv-forecast", "kv-learn", "kv-shadow-share", "kv-learn-cpu"};
constexpr std::string_view kBatchingFlags[] = {"max-num-seqs", "max-num-batched-tokens", "chunk",      "max-step-ms",
                                               "max-batch",    "max-batch-tokens",       "max-wait-ms"};
constexpr std::string_view kQueueFlags[] = {"waiting-policy", "ageing-ms",     "ttft-target-ms", "max-queue",
                                            "max-queue-kv",   "queue-timeout", "drain-timeout"};
constexpr std::string_view kNetworkFlags[] = {"host",        "port",     "grpc-port", "ollama-port",  "api-keys",
                                              "allow-pull",  "tls-cert", "tls-key",   "allowed-host", "cors-origin",
                                              "base-path"};
constexpr std::string_view kLogFlags[] = {"access-log", "otlp-endpoint", "otlp-sample", "metrics-alias"};
constexpr std::string_view kStateFlags[] = {"state-dir", "state-bytes"};
constexpr std::string_view kLimitFlags[] = {"request-memory", "guide-memory", "adapter-memory", "strict-limits"};

// The flags of server::kLimits and kTimeLimits are limits too.
constexpr Group kGroups[] = {
    {"MODEL", kModelFlags}, {"SAMPLING", kSamplingFlags}, {"KV CACHE", kKvFlags},
    {"BATCHING", kBatchingFlags},      {"QUEUE", kQueueFlags},       {"NETWORK", kNetworkFlags},
    {"STORED OBJECTS", kStateFlags},   {"LOGS AND METRICS", kLogFlags}, {"LIMITS", kLimitFlags},
};

struct Examples {
  std::string_view verb;  // "eval ppl"
  std::string_view lines;
};

constexpr Examples kExamples[] = {
    {"run",
     "  kvasir run smollm2:135m \"Name three primary colours.\"\n"
     "  kvasir run model.gguf                       a conversation\n"
     "  cat notes.txt | kvasir run smollm2:135m     the prompt from a pipe\n"
     "  kvasir run gemma3:270m --raw \"Once upon a time\""},
    {"serve",
     "  kvasir serve smollm2:135m                   at http://127.0.0.1:8080, with a page for a browser\n"
     "  kvasir serve model.gguf --host 0.0.0.0 --api-keys keys.txt\n"
     "  kvasir --memory 8G serve model.gguf --kv-budget 0.25\n"
     "  kvasir serve model.gguf --ttft-target-ms 2000   refuses requests that would wait longer\n"
     "  kvasir serve smollm2:135m all-minilm:22m    several models, loaded when they are asked"},
    {"pull",
     "  kvasir pull smollm2:135m\n"
     "  kvasir pull smollm2:135m --from ~/Downloads   takes the file from there"},
    {"list", "  kvasir list\n  kvasir list --verify --json"},
    {"show", "  kvasir show smollm2:135m\n  kvasir show model.gguf --tensors"},
    {"rm", "  kvasir rm smollm2:135m"},
    {"tokenize",
     "  kvasir tokenize smollm2:135m \"Hello there\"\n"
     "  kvasir tokenize smollm2:135m --decode 19556 665"},
    {"bench",
     "  kvasir bench smollm2:135m\n"
     "  kvasir bench model.gguf --prompt 512 --gen 128 --depth 0,4096 --batch 1,8 --json"},
    {"eval",
     "  kvasir eval ppl smollm2:135m --file text.txt\n"
     "  kvasir eval kv --help                       the flags of one measurement"},
    {"eval ppl", "  kvasir eval ppl smollm2:135m --file text.txt --ctx 2048 --chunks 20"},
    {"eval logits", "  kvasir eval logits smollm2:135m --file text.txt --tokens 1000 --out logits.npy"},
    {"eval kv",
     "  kvasir eval kv smollm2:135m --file text.txt --report results\n"
     "  kvasir eval kv model.gguf --file text.txt --report results --policies ladder,snapkv --budgets 0.3,0.1"},
    {"calibrate-kv", "  kvasir calibrate-kv smollm2:135m --file text.txt\n  kvasir calibrate-kv smollm2:135m --file text.txt --file self --forecast"},
    {"kv", "  kvasir kv explain kv.db"},
    {"kv explain",
     "  kvasir kv explain kv.db                     lists the sequences of a log\n"
     "  kvasir kv explain kv.db --seq 3 --token 512"},
    {"kv shadows",
     "  kvasir kv shadows kv.db                     by policy, quality and budget\n"
     "  kvasir kv shadows kv.db --by prompt"},
    {"schema", "  kvasir schema check schema.json"},
    {"schema check", "  kvasir schema check schema.json --sample 5 --model smollm2:135m"},
    {"schema test", "  kvasir schema test smollm2:135m --cases cases.jsonl.gz --failures failures.jsonl"},
    {"batch",
     "  kvasir batch smollm2:135m requests.jsonl answers.jsonl\n"
     "  kvasir batch model.gguf requests.jsonl answers.jsonl --resume   goes on after an interruption"},
    {"keys",
     "  kvasir keys add ann --file keys.txt\n"
     "  kvasir serve smollm2:135m --api-keys keys.txt"},
    {"keys add", "  kvasir keys add ann --file keys.txt --rpm 60 --tpm 100000"},
    {"keys list", "  kvasir keys list --file keys.txt"},
    {"keys revoke", "  kvasir keys revoke ann --file keys.txt"},
    {"health", "  kvasir health http://127.0.0.1:8080"},
    {"ps", "  kvasir ps\n  kvasir ps --url http://127.0.0.1:8080 --json"},
    {"stop", "  kvasir stop gemma3:270m"},
    {"doctor", "  kvasir doctor\n  kvasir doctor --json"},
    {"config", "  KVASIR_PORT=9000 kvasir config"},
    {"completion",
     "  source <(kvasir completion bash)\n"
     "  kvasir completion fish > ~/.config/fish/completions/kvasir.fish"},
    {"man", "  kvasir man serve | man -l -\n  kvasir man --folder ~/.local/share/man/man1"},
    {"version", "  kvasir version --json"},
};

bool is_server_limit(std::string_view flag) {
  const server::Limits limits;
  return std::ranges::any_of(server::kLimits, [&](auto member) { return (limits.*member).flag == flag; }) ||
         std::ranges::any_of(server::kTimeLimits, [&](const auto& limit) { return limit.flag == flag; });
}

// Empty: none.
std::string_view group_of(const CLI::Option& option) {
  for (const std::string& name : option.get_lnames()) {
    for (const Group& group : kGroups) {
      if (std::ranges::find(group.flags, name) != group.flags.end()) return group.title;
    }
    if (is_server_limit(name)) return "LIMITS";
  }
  return {};
}

void lay_out(CLI::App& verb, const std::string& path) {
  for (CLI::Option* const option : verb.get_options()) {
    const std::string_view group = group_of(*option);
    if (!group.empty()) option->group(std::string(group));
  }
  const auto examples = std::ranges::find(kExamples, path, &Examples::verb);
  const bool has_verbs = !verb.get_subcommands([](CLI::App*) { return true; }).empty();
  std::string footer = examples == std::end(kExamples) ? "" : "Examples:\n" + std::string(examples->lines) + "\n\n";
  if (has_verbs) footer += "kvasir " + path + " VERB --help: the flags of one verb.\n";
  verb.footer(footer + "kvasir --help: the flags of every verb (--threads, --memory, --json, ...) and exit codes.");
  for (CLI::App* const below : verb.get_subcommands([](CLI::App*) { return true; })) {
    lay_out(*below, path + " " + below->get_name());
  }
}

}  // namespace

void lay_out_help(CLI::App& app) {
  for (CLI::App* const verb : app.get_subcommands([](CLI::App*) { return true; })) lay_out(*verb, verb->get_name());
}

}  // namespace kvasir::cli
