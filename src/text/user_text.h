// Keeps a user's text from becoming control tokens on its way through the chat template.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir::text {

// The prompt is tokenised as one text, so that words may cross from template into content, with control
// tokens parsed, since the template writes them. Where a user's text looks like the beginning of one, a mark
// (a private-use character that the conversation does not contain) goes in front before the template runs;
// afterwards the marks come out again and their places are barred to control tokens. Text without
// look-alikes, nearly all there is, passes through untouched: no template can tell, and the ids are those of
// the plain rendering.
//
// Thread safety: immutable; borrows the tokenizer.
class UserText {
 public:
  // Chooses a mark that none of the values contains. Error (kUsage) when they contain every candidate.
  static Result<UserText> create(const Tokenizer& tokenizer, std::span<const jinja::Value> values);

  // The value with marks in its strings, keys of objects included.
  jinja::Value marked(const jinja::Value& value) const;

  struct Unmarked {
    std::string text;
    std::vector<std::size_t> plain_at;  // for EncodeOptions
  };
  Unmarked unmarked(std::string_view rendered) const;

 private:
  UserText(const Tokenizer& tokenizer, std::string mark) : tokenizer_(tokenizer), mark_(std::move(mark)) {}
  std::string marked(const std::string& text) const;

  const Tokenizer& tokenizer_;
  std::string mark_;
};

}  // namespace kvasir::text
