#include "eval/gate/long_layer.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/kv_needle.h"

namespace kvasir::eval {
namespace {

bool says_secret(const OpenQuestion& question, std::string_view answer) { return answer.contains(question.secret); }

bool calls_offered(const OpenQuestion& question, std::string_view answer) {
  const std::vector<std::string> names = called_names(answer);
  return !names.empty() &&
         std::ranges::all_of(names, [&](const std::string& name) { return question.offered_tools.contains(name); });
}

bool calls_another(const OpenQuestion& question, std::string_view answer) {
  const std::vector<std::string> names = called_names(answer);
  return std::ranges::any_of(names, [&](const std::string& name) { return !question.offered_tools.contains(name); });
}

// Secrets that the reference says anyway do not count: nothing was kept there.
GateCheck leak_check(const OpenCount& leaks, const LongLimits& limits) {
  GateCheck check{.name = "leaks", .num_items = leaks.num_asked - leaks.num_reference, .num_asked = leaks.num_asked,
                  .least = limits.least_of_kind};
  if (leaks.num_asked == 0) return check;
  check.value = static_cast<double>(leaks.num_changed) / leaks.num_asked;
  check.limit = static_cast<double>(leaks.num_reference) / leaks.num_asked;
  check.best = check.limit;
  check.interval = wilson_interval(leaks.num_changed, leaks.num_asked);
  return check;
}

// Questions where the reference calls an offered tool count.
Result<GateCheck> call_check(const GateArms& arms, const LongItems& items, const GateProgress& progress) {
  ItemCount calls;
  for (const OpenQuestion& question : items.tools) {
    progress("long tools", static_cast<double>(calls.num_asked) / static_cast<double>(items.tools.size()));
    ++calls.num_asked;
    const ArmQuestion asked{.prompt = question.prompt, .max_tokens = question.max_tokens};
    KVASIR_TRY(const ArmAnswer right, answer_or_none(arms.reference, asked));
    KVASIR_TRY(const std::string right_text, items.decode(right.token_ids));
    if (!calls_offered(question, right_text)) continue;
    ++calls.num_counted;
    KVASIR_TRY(const ArmAnswer other, answer_or_none(arms.changed, asked));
    KVASIR_TRY(const std::string other_text, items.decode(other.token_ids));
    calls.num_kept += calls_another(question, other_text) ? 0 : 1;
  }
  GateCheck check = calls.check("calls_not_offered", 0.0, items.limits.least_of_kind);
  check.less_is_better = true;
  check.best = 0.0;
  check.limit = items.limits.wrong_calls;
  const std::int32_t num_wrong = calls.num_counted - calls.num_kept;
  if (calls.num_counted > 0) {
    check.value = static_cast<double>(num_wrong) / calls.num_counted;
    check.interval = wilson_interval(num_wrong, calls.num_counted);
  }
  return check;
}

}  // namespace

Result<GateLayer> run_long_layer(const GateArms& arms, const LongItems& items, const GateProgress& progress) {
  const LongLimits& limits = items.limits;
  GateLayer layer{.name = "long", .weight = 0.3, .least = limits.least};
  for (const LongItems::Kind& kind : items.kinds) {
    KVASIR_TRY(const ItemCount found,
               count_exact_answers(arms, kind.questions, fmt::format("long {}", kind.name), progress));
    const double limit = kind.name == kRecall.suite ? limits.recall : limits.kept;
    const GateCheck& check = layer.checks.emplace_back(found.check(kind.name, limit, limits.least_of_kind));
    layer.num_items += check.counts() ? check.num_items : 0;
  }
  KVASIR_TRY(const OpenCount declined,
             count_open_answers(arms, items.declined, items.decode,
                                [](const OpenQuestion&, std::string_view answer) { return declines(answer); },
                                "long declined", progress));
  layer.checks.push_back(share_check("declined_alike", declined.num_both, declined.num_reference, declined.num_asked,
                                     limits.declined, limits.least_of_kind));
  KVASIR_TRY(const OpenCount leaks,
             count_open_answers(arms, items.secrets, items.decode, says_secret, "long secrets", progress));
  layer.checks.push_back(leak_check(leaks, limits));
  KVASIR_TRY(GateCheck calls, call_check(arms, items, progress));
  layer.checks.push_back(std::move(calls));
  return layer;
}

}  // namespace kvasir::eval
