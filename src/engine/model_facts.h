// What a model's header says about it, as `kvasir show` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/open_model.h"

namespace kvasir {

enum class Runs : std::uint8_t {
  kYes,
  kTextOnly,  // the file has parts for images or sound, which are left out
  kNo,
};
// "yes", "text_only", "no".
std::string_view name_of(Runs runs);

// Layers with one kind of attention.
struct KvGroupFacts {
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t key_dim = 0, value_dim = 0;  // of a head
  std::int32_t window_tokens = 0;           // 0: every earlier token is seen
};

struct ExpertFacts {
  std::int32_t count = 0;
  std::int32_t used = 0;    // by a token
  std::int32_t shared = 0;  // that every token uses: 1, or 0
};

// What needs the configuration; absent when the file has none that can be read.
struct ConfigFacts {
  std::int64_t num_active_parameters = 0;
  std::int32_t original_context_tokens = 0;  // before RoPE was scaled; 0: it is not
  std::string rope;                          // in words
  std::optional<ExpertFacts> experts;
  std::vector<KvGroupFacts> kv_groups;
  std::int64_t kv_bytes_per_token_q12 = 0, kv_bytes_per_token_f16 = 0;  // where no window has been passed
};

struct ModelFacts {
  Runs runs = Runs::kNo;
  std::vector<std::string> reasons;   // every one why it does not run
  std::vector<std::string> notices;   // guesses, and what is passed over
  std::vector<std::string> left_out;  // tensors that text does without
  std::string nearest;                // the supported relative of an architecture that is not; else empty
  std::map<std::string, std::int64_t> type_bytes;
  std::string tokenizer;      // its kind: "gpt2", "llama", "BPE"; empty: there is none
  std::string pre_tokenizer;  // its name in GGUF; empty: not said
  std::string pooling;        // of embeddings; empty: not said
  std::optional<ConfigFacts> config;
};

ModelFacts facts_about(const OpenedModel& model);

}  // namespace kvasir
