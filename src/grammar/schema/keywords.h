// The keywords of JSON Schema, 2020-12 and drafts 4 to 7.
#pragma once

#include "grammar/schema/keyword_context.h"

namespace kvasir::grammar {

// Adds everything that the keywords of a schema say. Errors: as SchemaEvaluator's.
Status read_keywords(KeywordContext& context);

// Each adds what one keyword says, or several that mean something together: it gets the first one that is there.
namespace keyword {
Status read_type(KeywordContext& context, const JsonValue& keyword);
Status read_enum(KeywordContext& context, const JsonValue& keyword);
Status read_const(KeywordContext& context, const JsonValue& keyword);
Status read_reference(KeywordContext& context, const JsonValue& keyword);
Status read_all_of(KeywordContext& context, const JsonValue& keyword);
Status read_any_of(KeywordContext& context, const JsonValue& keyword);
Status read_one_of(KeywordContext& context, const JsonValue& keyword);
Status read_not(KeywordContext& context, const JsonValue& keyword);
Status read_if(KeywordContext& context, const JsonValue& keyword);
Status read_bounds(KeywordContext& context, const JsonValue& keyword);
Status read_multiple_of(KeywordContext& context, const JsonValue& keyword);
Status read_length(KeywordContext& context, const JsonValue& keyword);
Status read_pattern(KeywordContext& context, const JsonValue& keyword);
Status read_format(KeywordContext& context, const JsonValue& keyword);
Status read_items(KeywordContext& context, const JsonValue& keyword);
Status read_item_count(KeywordContext& context, const JsonValue& keyword);
Status read_unique_items(KeywordContext& context, const JsonValue& keyword);
Status read_contains(KeywordContext& context, const JsonValue& keyword);
Status read_unevaluated_items(KeywordContext& context, const JsonValue& keyword);
Status read_members(KeywordContext& context, const JsonValue& keyword);
Status read_required(KeywordContext& context, const JsonValue& keyword);
Status read_member_count(KeywordContext& context, const JsonValue& keyword);
Status read_property_names(KeywordContext& context, const JsonValue& keyword);
Status read_dependencies(KeywordContext& context, const JsonValue& keyword);
Status read_unevaluated_properties(KeywordContext& context, const JsonValue& keyword);
}  // namespace keyword

}  // namespace kvasir::grammar
