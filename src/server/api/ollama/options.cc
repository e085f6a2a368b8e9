#include "server/api/ollama/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "server/api/generation_request.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLeftOut = &read_ignored<OllamaRequest>;
constexpr std::string_view kMeaningOfBound = "longest answer; below 0: all that the context has left";

// Options that are fields of other APIs too: the name here, and there.
constexpr auto kShared = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"num_predict", "n_predict"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"repeat_penalty", "repeat_penalty"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"repeat_last_n", "repeat_last_n"},
    {"typical_p", "typical_p"},
    {"mirostat", "mirostat"},
    {"mirostat_tau", "mirostat_tau"},
    {"mirostat_eta", "mirostat_eta"},
    {"num_keep", "n_keep"},
});

constexpr auto kOwn = std::to_array<Field<OllamaRequest>>({
    {"num_ctx",
     "integer",
     {-kMaxInt32, kMaxInt32},
     "the context that is wanted; a warning says where the server's is shorter",
     read_integer<&OllamaRequest::num_ctx>},
    {"tfs_z", "number", {}, "left out: no such sampler is here", read_ignored_but_one<OllamaRequest>},
    {"penalize_newline", "boolean", {}, "left out: penalties see every token", kLeftOut},
    {"num_batch", "integer", {}, "left out: the server batches as it sees fit", kLeftOut},
    {"num_gpu", "integer", {}, "left out: the server has its device", kLeftOut},
    {"main_gpu", "integer", {}, "left out: the server has its device", kLeftOut},
    {"num_thread", "integer", {}, "left out: `--threads` says it", kLeftOut},
    {"numa", "boolean", {}, "left out: the server has its threads", kLeftOut},
    {"low_vram", "boolean", {}, "left out: `--memory` says it", kLeftOut},
    {"f16_kv", "boolean", {}, "left out: the server has a type of KV cache", kLeftOut},
    {"use_mmap", "boolean", {}, "accepted; a file is always mapped", read_unused<boolean_of, OllamaRequest>},
    {"use_mlock", "boolean", {}, "left out: no memory is locked", kLeftOut},
    {"vocab_only", "boolean", {}, "left out: the model is loaded", kLeftOut},
    {"logits_all", "boolean", {}, "left out: logits are computed where they are wanted", kLeftOut},
    {"embedding_only", "boolean", {}, "accepted; the model decides what it gives", read_unused<boolean_of, OllamaRequest>},
});

const Field<GenerationRequest>* shared_row(std::string_view option) {
  const auto* const known = std::ranges::find(kShared, option, &std::pair<std::string_view, std::string_view>::first);
  if (known == kShared.end()) return nullptr;
  const auto rows = generation_fields();
  return &*std::ranges::find(rows, known->second, &Field<GenerationRequest>::name);
}

void warn_unknown_option(const FieldInput& field, std::string_view option) {
  std::vector<std::string_view> known;
  for (const auto& [name, there] : kShared) known.push_back(name);
  for (const auto& row : kOwn) known.push_back(row.name);
  Warnings of_option;
  warn_unknown_field(option, known, of_option);
  for (const std::string& warning : of_option.messages) field.warnings->add(fmt::format("{}: {}", field.name, warning));
}

}  // namespace

ApiStatus read_options(const FieldInput& field, OllamaRequest& request) {
  KVASIR_TRY(const JsonObject options, object_of(field));
  for (const auto [key, json] : options) {
    if (json.is_null()) continue;
    FieldInput option = field.at(key, json);
    if (const Field<GenerationRequest>* const row = shared_row(key)) {
      option.range = row->range;
      option.meaning = row->meaning;
      KVASIR_CHECKED(row->read(option, request));
      continue;
    }
    const auto* const own = std::ranges::find(kOwn, key, &Field<OllamaRequest>::name);
    if (own == kOwn.end()) {
      warn_unknown_option(field, key);
      continue;
    }
    option.range = own->range;
    option.meaning = own->meaning;
    KVASIR_CHECKED(own->read(option, request));
  }
  return {};
}

std::vector<FieldRow> option_rows() {
  std::vector<FieldRow> rows;
  for (const auto& [name, there] : kShared) {
    const Field<GenerationRequest>& row = *shared_row(name);
    const bool is_bound = name == "num_predict";  // whose row elsewhere names another field
    rows.push_back({name, row.type, row.range, is_bound ? kMeaningOfBound : row.meaning});
  }
  for (const auto& row : kOwn) rows.push_back({row.name, row.type, row.range, row.meaning});
  return rows;
}

}  // namespace kvasir::server::api
