// Answers of /api/chat and /api/generate: one object, or a line of JSON for each piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/id_source.h"
#include "server/request_memory.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

class OllamaFormat final : public AnswerFormat {
 public:
  struct Options {
    std::string model;  // as the request calls it
    std::chrono::steady_clock::time_point received_at;
    bool is_chat = true;
    bool logprobs = false;
    bool gives_context = false;          // the last piece has the tokens of prompt and answer
    std::vector<TokenId> prompt_tokens;  // of that
    ToolCallReading reading;
    RequestMemory::Share memory;  // of the context
  };

  // Borrows both.
  OllamaFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids);

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage&, http::Events&) override {}
  // The last line is the last piece.
  void append_end(http::Events&) const override {}
  void append_failure(const ApiError& error, http::Events& events) const override;

 private:
  // The content of one line.
  struct Piece {
    std::string text;
    std::string reasoning;
    std::vector<ToolCall> calls;
    std::span<const PositionLogprobs> logprobs = {};
  };
  void begin(JsonWriter& json, const Piece& piece);
  void write_message(JsonWriter& json, const Piece& piece);
  void write_calls(JsonWriter& json, const std::vector<ToolCall>& calls);
  void write_end(JsonWriter& json, FinishReason reason, const RequestCost& cost, const Usage& usage) const;
  void add_part(AnswerPart part, Piece& piece);
  void append_line(const Piece& piece, http::Events& events);

  const Options options_;
  const text::Tokenizer& tokenizer_;
  IdSource& ids_;
  ToolCallReader reader_;
  ToolCall open_call_;              // of a stream, until it is whole
  std::int32_t num_calls_ = 0;      // told
  std::vector<TokenId> token_ids_;  // of the answer, where the context is wanted
};

}  // namespace kvasir::server::api
