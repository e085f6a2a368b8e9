#include "eval/gate/structured_layer.h"

#include <simdjson.h>

#include <algorithm>

#include "eval/gate/item_count.h"
#include "eval/gate/schema_reader.h"

namespace kvasir::eval {
namespace {

// Guided and free answers of one arm to all schemas.
struct ArmSchemas {
  std::int32_t num_ended = 0, num_right = 0, num_loops = 0;
  std::vector<FirstError> first_errors;  // by schema
};

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

Status answer_schema(GateArm& arm, const StructuredItems& items, const SchemaItem& item, ArmSchemas& answers) {
  KVASIR_TRY(const SchemaReader reader, SchemaReader::create(item.schema));
  KVASIR_TRY(const ArmAnswer guided,
             answer_or_none(arm, {.prompt = item.prompt, .max_tokens = items.max_tokens, .schema = item.schema}));
  KVASIR_TRY(const std::string guided_text, items.decode(guided.token_ids));
  answers.num_ended += guided.is_ended ? 1 : 0;
  const bool is_right = is_json(guided_text) && reader.is_value(guided_text);
  answers.num_right += guided.is_ended && is_right ? 1 : 0;
  KVASIR_TRY(const ArmAnswer free, answer_or_none(arm, {.prompt = item.prompt, .max_tokens = items.max_tokens}));
  KVASIR_TRY(const std::string free_text, items.decode(free.token_ids));
  answers.first_errors.push_back(reader.first_error(free_text));
  answers.num_loops += ends_in_loop(free.token_ids) ? 1 : 0;
  return {};
}

std::vector<GateCheck> compare(const ArmSchemas& reference, const ArmSchemas& changed, const StructuredLimits& limits) {
  const auto num_schemas = static_cast<std::int32_t>(reference.first_errors.size());
  ItemCount same{.num_asked = num_schemas};
  for (std::size_t i = 0; i < reference.first_errors.size(); ++i) {
    // Where the reference writes no JSON, there is nothing that a change could break.
    if (reference.first_errors[i].kind == FirstError::Kind::kNoJson) continue;
    ++same.num_counted;
    same.num_kept += reference.first_errors[i] == changed.first_errors[i] ? 1 : 0;
  }
  const double reference_right =
      reference.num_ended > 0 ? static_cast<double>(reference.num_right) / reference.num_ended : 1.0;
  GateCheck right = share_check("guided_right", changed.num_right, changed.num_ended, num_schemas, reference_right, 1);
  // A change after which none ends has not got them right.
  if (reference.num_ended > 0 && changed.num_ended == 0) {
    right.num_items = reference.num_ended;
    right.value = 0.0;
  }
  // Some end that did not before, and others no longer: the shares are compared, not the answers.
  GateCheck ended = share_check("guided_ended", changed.num_ended, num_schemas, num_schemas, 0.0, 1);
  if (num_schemas > 0) {
    ended.best = static_cast<double>(reference.num_ended) / num_schemas;
    ended.limit = limits.ended * ended.best;
  }
  GateCheck loops{.name = "free_loops", .num_items = num_schemas, .num_asked = num_schemas};
  if (num_schemas > 0) {
    loops.value = static_cast<double>(changed.num_loops) / num_schemas;
    loops.best = static_cast<double>(reference.num_loops) / num_schemas;
    loops.limit = loops.best + limits.more_loops;
  }
  return {right, ended, same.check("free_same_first_error", limits.same_error, limits.least_of_kind),
          loops};
}

}  // namespace

bool ends_in_loop(std::span<const TokenId> tokens) {
  constexpr std::size_t kRepeated = 16, kTimes = 4;
  if (tokens.size() < kRepeated * kTimes) return false;
  const auto last = tokens.last(kRepeated * kTimes);
  return std::ranges::equal(last.first(kRepeated * (kTimes - 1)), last.last(kRepeated * (kTimes - 1)));
}

Result<GateLayer> run_structured_layer(const GateArms& arms, const StructuredItems& items, const GateProgress& progress) {
  GateLayer layer{.name = "structured", .weight = 0.2, .least = items.limits.least};
  ArmSchemas reference, changed;
  for (const SchemaItem& item : items.schemas) {
    progress("structured schemas",
             static_cast<double>(reference.first_errors.size()) / static_cast<double>(items.schemas.size()));
    KVASIR_CHECKED(answer_schema(arms.reference, items, item, reference));
    KVASIR_CHECKED(answer_schema(arms.changed, items, item, changed));
  }
  layer.checks = compare(reference, changed, items.limits);
  layer.num_items = reference.num_ended;
  return layer;
}

}  // namespace kvasir::eval
