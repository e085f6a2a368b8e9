#include "eval/gate/item_count.h"


namespace kvasir::eval {

Result<ArmAnswer> answer_or_none(GateArm& arm, const ArmQuestion& question) {
  Result<ArmAnswer> answer = arm.answer(question);
  const bool is_refused =
      !answer && (answer.error().kind == ErrorKind::kUnmet || answer.error().kind == ErrorKind::kUsage);
  if (is_refused) return ArmAnswer{};
  return answer;
}

}  // namespace kvasir::eval
