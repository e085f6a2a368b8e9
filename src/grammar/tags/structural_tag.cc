#include "grammar/tags/structural_tag.h"

#include "grammar/tags/format_lowering.h"

namespace kvasir::grammar {
namespace {

Result<Part> lower_structural_tag(FormatLowering& lowering, const JsonValue& root) {
  if (!root.is_object()) return tag_fault(root, "this is no object");
  if (root.find("structures") != nullptr) return lowering.lower_structures(root);
  const JsonValue* type = root.find("type");
  if (type != nullptr && type->text != "structural_tag") return lowering.lower(root);
  const JsonValue* format = root.find("format");
  if (format == nullptr) return tag_fault(root, "'format' is missing");
  return lowering.lower(*format);
}

}  // namespace

Result<Grammar> grammar_from_structural_tag(TermStore& store, std::string_view json,
                                            const StructuralTagOptions& options) {
  KVASIR_TRY(const auto root, read_json(json));
  Derivatives derivatives(store);
  GrammarBuilder builder(store);
  FormatLowering lowering(builder, store, derivatives, options);
  KVASIR_TRY(const Part part, lower_structural_tag(lowering, *root));
  const RuleId start = builder.declare("structural tag");
  builder.define(start, part);
  Grammar grammar = builder.finish(start);
  if (store.is_exhausted()) return make_error(ErrorKind::kUnmet, "structural tag: it makes too many states");
  return grammar;
}

}  // namespace kvasir::grammar
