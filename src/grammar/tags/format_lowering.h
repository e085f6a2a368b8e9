// Format objects of a structural tag as parts of a grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/ir/text_dispatch.h"
#include "grammar/regex/derivatives.h"
#include "grammar/schema/json_value.h"
#include "grammar/tags/structural_tag.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Thread safety: none.
class FormatLowering {
 public:
  // All outlive this.
  FormatLowering(GrammarBuilder& builder, TermStore& store, Derivatives& derivatives,
                 const StructuralTagOptions& options)
      : builder_(builder), store_(store), derivatives_(derivatives), options_(options) {}

  Result<Part> lower(const JsonValue& format) { return lower(format, {}); }
  // {"structures": [{"begin", "schema", "end"}], "triggers": [..]}
  Result<Part> lower_structures(const JsonValue& tag);

 private:
  // What ends a part; free text at its end holds none of them. None: nothing does.
  using Ends = std::vector<std::string>;
  using Lower = Result<Part> (FormatLowering::*)(const JsonValue&, const Ends&);
  struct Kind {
    std::string_view name;
    Lower lower;
  };
  static const std::vector<Kind>& kinds();

  // A part that ends with one of the ends, where there are some.
  Result<Part> lower(const JsonValue& format, const Ends& ends);
  Part with_end(const Part& part, const Ends& ends);

  Result<Part> lower_const_string(const JsonValue& format, const Ends& ends);
  Result<Part> lower_json_schema(const JsonValue& format, const Ends& ends);
  Result<Part> lower_grammar(const JsonValue& format, const Ends& ends);
  Result<Part> lower_regex(const JsonValue& format, const Ends& ends);
  Result<Part> lower_any_text(const JsonValue& format, const Ends& ends);
  Result<Part> lower_sequence(const JsonValue& format, const Ends& ends);
  Result<Part> lower_or(const JsonValue& format, const Ends& ends);
  Result<Part> lower_optional(const JsonValue& format, const Ends& ends);
  Result<Part> lower_star(const JsonValue& format, const Ends& ends);
  Result<Part> lower_plus(const JsonValue& format, const Ends& ends);
  Result<Part> lower_repeat(const JsonValue& format, const Ends& ends);
  Result<Part> lower_tag(const JsonValue& format, const Ends& ends);
  Result<Part> lower_triggered_tags(const JsonValue& format, const Ends& ends);
  Result<Part> lower_tags_with_separator(const JsonValue& format, const Ends& ends);
  Result<Part> lower_dispatch(const JsonValue& format, const Ends& ends);
  Result<Part> lower_token(const JsonValue& format, const Ends& ends);
  Result<Part> lower_exclude_token(const JsonValue& format, const Ends& ends);
  Result<Part> lower_any_tokens(const JsonValue& format, const Ends& ends);

  struct Triggered {
    std::vector<std::string> triggers;
    std::vector<std::string> excludes;
    bool at_least_one = false;
    bool stop_after_first = false;
  };
  // A tag, as it begins and what follows it.
  struct Tag {
    std::string begin;
    Part behind;
  };
  Result<Part> triggered(const JsonValue& format, const Triggered& triggered, const std::vector<Tag>& tags,
                         const Ends& ends);
  Result<Tag> read_tag(const JsonValue& format);
  Result<Part> tag_body(const JsonValue& format);
  Result<Part> schema(const JsonValue& schema);
  Result<Part> repeated(const JsonValue& format, std::uint32_t min, std::uint32_t max, const Ends& ends);
  Result<TokenId> token_of(const JsonValue& token);
  // One token with text that is none of the format's `exclude_tokens`, nor the token that ends its tag.
  Result<Part> other_token(const JsonValue& format);
  // Whether the format may have the empty text. Requires: a format that was lowered.
  static bool may_be_empty(const JsonValue& format);

  // Members of a format object.
  Result<const JsonValue*> member(const JsonValue& format, std::string_view name) const;
  Result<std::string> string_member(const JsonValue& format, std::string_view name) const;
  Result<bool> bool_member(const JsonValue& format, std::string_view name) const;  // false where it is not there
  Result<std::vector<std::string>> strings_member(const JsonValue& format, std::string_view name) const;
  Result<std::uint32_t> count_of(const JsonValue& value) const;

  GrammarBuilder& builder_;
  TermStore& store_;
  Derivatives& derivatives_;
  const StructuralTagOptions& options_;
  std::optional<TokenId> end_token_;    // of the tag whose content is lowered
  std::size_t num_other_tokens_ = 0;
};

// "structural tag, '/format/tags/0': .."
std::unexpected<Error> tag_fault(const JsonValue& at, std::string_view what, ErrorKind kind = ErrorKind::kUsage);

}  // namespace kvasir::grammar
