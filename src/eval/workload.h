// Prompts from a file: what a model is to be measured or trained on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::eval {

struct WorkloadItem {
  std::vector<TokenId> prompt_token_ids;
  std::int32_t max_tokens = 0;  // 0: none is named
  std::uint64_t seed = 0;
};

// JSON lines {"prompt": text} or {"messages": [...]}, with "max_tokens" and "seed" where one likes; other members are
// skipped. Errors: kBadFile naming the line; as Engine::encode() and encode_chat().
// `name`: of the file, for errors.
Result<std::vector<WorkloadItem>> parse_workload(const Engine& engine, std::string_view lines, std::string_view name);

}  // namespace kvasir::eval
