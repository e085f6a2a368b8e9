#include "grammar/schema/check.h"

#include <set>
#include <utility>

#include "grammar/regex/derivatives.h"
#include "grammar/schema/empty_place.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxRefused = 32;

// Reads the schema without the keywords in `skipped`. Whether it is read to its end; if not, `skipped` has one more,
// or the report says the last.
bool read_without(const JsonValue& root, const SchemaOptions& options, std::set<std::string>& skipped,
                  SchemaReport& report) {
  TermStore store;
  Derivatives derivatives(store);
  SchemaEvaluator evaluator(root, store, derivatives);
  evaluator.keep_notes();
  evaluator.skip(skipped);
  GrammarBuilder builder(store);
  SchemaLowering lowering(evaluator, builder, options);
  const Result<RuleId> start = lowering.lower_document(evaluator.name_of(root));
  const SchemaNotes& notes = evaluator.notes();
  report.narrowed.assign(notes.narrowed.begin(), notes.narrowed.end());
  report.ignored.assign(notes.ignored.begin(), notes.ignored.end());
  report.num_cells = evaluator.num_cells();
  if (!start) {
    report.refused.push_back(notes.refused.value_or(SchemaNote{.reason = start.error().message}));
    const std::string& keyword = evaluator.refused_keyword();
    return keyword.empty() || !skipped.insert(keyword).second;
  }
  if (store.is_exhausted()) {
    report.refused.push_back({.reason = "the schema makes too many states"});
  } else if (report.refused.empty() && builder.finish(*start).rules.empty()) {
    report.refused.push_back(reason_of_emptiness(root, store, options));
  }
  return true;
}

}  // namespace

Result<SchemaReport> check_schema(std::string_view schema, const SchemaOptions& options) {
  KVASIR_TRY(const auto root, read_json(schema));
  SchemaReport report;
  std::set<std::string> skipped;
  while (report.refused.size() < kMaxRefused && !read_without(*root, options, skipped, report)) {
  }
  return report;
}

}  // namespace kvasir::grammar
