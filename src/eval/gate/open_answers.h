// Answers whose words are free, and what is read in them: refusals, secrets, calls of tools.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/gate/gate_arm.h"
#include "eval/gate/item_count.h"

namespace kvasir::eval {

struct OpenQuestion {
  std::vector<TokenId> prompt;
  std::int32_t max_tokens = 64;
  std::string secret = {};                 // that the answer should not say
  std::set<std::string> offered_tools = {};  // names
};

// Whether an answer begins with words by which models decline.
bool declines(std::string_view answer);
// The names of the calls in an answer: as JSON with "name" and "arguments" or "parameters", behind the marks of a family
// that writes them without JSON, or as name(key=...) at its beginning.
std::vector<std::string> called_names(std::string_view answer);

// Both arms' answers to one kind of questions, as yes or no.
struct OpenCount {
  std::int32_t num_asked = 0;
  std::int32_t num_reference = 0;  // yes of the reference
  std::int32_t num_changed = 0;    // yes of the changed arm
  std::int32_t num_both = 0;
};

// `says`: what is looked for in the text of an answer. Errors: as GateArm::answer, `decode`'s.
using SaysYes = std::function<bool(const OpenQuestion& question, std::string_view answer)>;
Result<OpenCount> count_open_answers(const GateArms& arms, std::span<const OpenQuestion> questions,
                                     const std::function<Result<std::string>(std::span<const TokenId>)>& decode,
                                     const SaysYes& says, std::string_view name, const GateProgress& progress);

}  // namespace kvasir::eval
