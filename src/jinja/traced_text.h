// Text that remembers which of its bytes did not come from the template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace kvasir::jinja {

// Builds a string value, or the output of a render, piece by piece.
//
// Thread safety: none.
class TracedText {
 public:
  // The template's own.
  void append(std::string_view own) { bytes_ += own; }
  void append_foreign(std::string_view text);
  // With the origin that it has.
  void append(const Text& text) { append_part(text, 0, text.bytes.size()); }
  // `size` bytes of it from `begin`.
  void append_part(const Text& text, std::size_t begin, std::size_t size);

  const std::string& bytes() const { return bytes_; }
  // Ascending, without overlaps.
  const std::vector<TextSpan>& foreign() const { return foreign_; }
  std::size_t size() const { return bytes_.size(); }
  // Drops what comes behind the first `size` bytes. Requires: there are as many.
  void cut(std::size_t size);
  // Both are moved out.
  Value to_value(bool is_markup = false) &&;

 private:
  void add_span(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<TextSpan> foreign_;
};

// The value with all of its strings foreign, keys of dicts included.
Value as_foreign(const Value& value);
// Whether any string in it has foreign bytes.
bool has_foreign(const Value& value);
// A view into the text's bytes as a value of its own.
Value part_of(const Text& text, std::string_view view, bool is_markup = false);

}  // namespace kvasir::jinja
