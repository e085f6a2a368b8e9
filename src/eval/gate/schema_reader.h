// A JSON Schema that reads answers: whether they are right, and where they go wrong first.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/compile/compiled_grammar.h"
#include "kvasir/result.h"

namespace kvasir::eval {

// Where an answer leaves its schema.
struct FirstError {
  enum class Kind : std::uint8_t {
    kNone,    // the value satisfies the schema
    kNoJson,  // no object or list begins in the answer
    kWrong,   // a byte that the schema does not allow
    kCut,     // the answer ends before the value does
  };
  Kind kind = Kind::kNone;
  // Of kWrong: how many brackets, commas and colons outside of strings come before. So two answers that differ in their
  // texts and numbers may still go wrong at the same place.
  std::size_t place = 0;

  auto operator<=>(const FirstError&) const = default;
};

// Reads byte by byte, so by another way than the masks of tokens that guide an answer. Thread safety: none.
class SchemaReader {
 public:
  // Errors: as grammar::grammar_from_schema.
  static Result<SchemaReader> create(std::string_view schema);

  // Whether the whole text is a value of the schema.
  bool is_value(std::string_view text) const;
  // Of the first object or list in the text; what comes before it or behind it does not count.
  FirstError first_error(std::string_view text) const;

 private:
  explicit SchemaReader(std::shared_ptr<const grammar::CompiledGrammar> guide) : guide_(std::move(guide)) {}

  std::shared_ptr<const grammar::CompiledGrammar> guide_;
};

}  // namespace kvasir::eval
