#include "eval/gate/exact_answers.h"

namespace kvasir::eval {
namespace {

Result<bool> finds(GateArm& arm, const ExactQuestion& question) {
  const auto num_tokens = static_cast<std::int32_t>(question.answer.size());
  KVASIR_TRY(const ArmAnswer answer, answer_or_none(arm, {.prompt = question.prompt,
                                                          .max_tokens = num_tokens,
                                                          .ignores_end = true,
                                                          .policy_acts_at = question.policy_acts_at}));
  return answer.token_ids == question.answer;
}

}  // namespace

Result<ItemCount> count_exact_answers(const GateArms& arms, std::span<const ExactQuestion> questions,
                                      std::string_view name, const GateProgress& progress) {
  ItemCount count;
  for (const ExactQuestion& question : questions) {
    progress(name, static_cast<double>(count.num_asked) / static_cast<double>(questions.size()));
    ++count.num_asked;
    KVASIR_TRY(const bool is_counted, finds(arms.reference, question));
    if (!is_counted) continue;
    ++count.num_counted;
    KVASIR_TRY(const bool is_kept, finds(arms.changed, question));
    count.num_kept += is_kept ? 1 : 0;
  }
  return count;
}

}  // namespace kvasir::eval
