// How many tokens of an answer are thoughts.
#pragma once

#include <cstdint>
#include <span>

#include "kvasir/ids.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// Counts the tokens between the marks of reasoning, and the marks, as they come. Of a mark that opens a block and has
// several tokens the last counts.
//
// Thread safety: none; each choice has one.
class ReasoningTokens {
 public:
  // Borrows both.
  ReasoningTokens(const ToolCallReading& reading, const text::Tokenizer& tokenizer)
      : tokenizer_(tokenizer), thinks_(!reading.reasoning_marks.empty()), reader_(reading) {}

  // Whether the answer's next token is one of a thought, or of its marks.
  bool add(TokenId token);
  void add(std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) add(token);
  }
  std::int32_t count() const { return count_; }

 private:
  const text::Tokenizer& tokenizer_;
  const bool thinks_;
  ToolCallReader reader_;
  std::int32_t count_ = 0;
};

}  // namespace kvasir::server::api
