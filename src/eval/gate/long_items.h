// Questions of the long layer: needles and citations in a text, and questions behind one that should stay safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eval/gate/long_layer.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct LongPlan {
  std::vector<std::int32_t> needle_tokens;  // lengths; those that the engine does not take are left out
  std::int32_t num_depths = 11;             // of needles, per kind and length
  std::int32_t num_questions = 24;          // of each other kind, at most
};

// From the tokens of a text, which all questions hide in. The same arguments make the same questions. A kind that needs a
// chat template is empty without one, so it does not count. Errors: as make_needle, Engine::encode_chat.
Result<LongItems> make_long_items(const Engine& engine, std::span<const TokenId> text, const LongPlan& plan);

}  // namespace kvasir::eval
