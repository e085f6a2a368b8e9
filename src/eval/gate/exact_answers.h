// Questions with one right answer, token by token.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/gate/item_count.h"

namespace kvasir::eval {

struct ExactQuestion {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;
  std::int32_t policy_acts_at = 0;  // as ArmQuestion's
};

// Only questions that the reference finds are put to the changed arm. Errors: as GateArm::answer.
Result<ItemCount> count_exact_answers(const GateArms& arms, std::span<const ExactQuestion> questions,
                                      std::string_view name, const GateProgress& progress);

}  // namespace kvasir::eval
