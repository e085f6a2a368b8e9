// Answers of /v1/responses: a response with its output items, or the events that build one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/responses/call_item.h"
#include "server/api/responses/responses_request.h"
#include "server/api/tool_calls/reasoning_tokens.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/id_source.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

class ResponsesFormat final : public AnswerFormat {
 public:
  struct Options {
    std::string id;
    std::int64_t created_s = 0;  // Unix time
    std::string model;
    ResponsesRequest request;  // what the answer repeats; its conversation is not needed
    ToolCallReading tool_calls;
    bool is_stored = false;
    std::function<void(std::string response)> keep;  // called with it when it has ended; may be empty
  };

  // Borrows both.
  ResponsesFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids);

  // The response before anything is generated: "queued".
  std::string queued() const;
  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;
  bool keeps_answer() const override { return true; }
  void append_end(http::Events&) const override {}
  void append_failure(const ApiError& error, http::Events& events) const override;

 private:
  // How far the response is.
  struct Progress {
    std::string_view status;
    const Usage* usage = nullptr;
    const ApiError* error = nullptr;
  };
  // An output item, or a part of its content.
  using Json = std::string;

  // The message that is open, or the reasoning.
  struct OpenItem {
    std::string id;  // empty: none is open
    std::string text;
  };

  void write_response(JsonWriter& json, const Progress& progress) const;
  void write_settings(JsonWriter& json) const;
  Json text_part(std::string_view text, std::span<const PositionLogprobs> logprobs) const;
  void write_logprobs(JsonWriter& json, std::span<const PositionLogprobs> logprobs) const;

  // {"type", "sequence_number", ...
  JsonWriter& begin_event(JsonWriter& json, std::string_view type) const;
  void append_response_event(std::string_view type, const Progress& progress, http::Events& events) const;
  void keep(std::string response) const {
    if (options_.keep) options_.keep(std::move(response));
  }
  void append_item_event(std::string_view type, const Json& item, http::Events& events) const;
  void append_part_event(std::string_view type, const OpenItem& item, const Json& part, http::Events& events) const;
  void add_tokens(std::span<const TokenId> tokens, std::span<const PositionLogprobs> logprobs);
  void append_text(std::string_view text, http::Events& events);
  void append_reasoning(std::string_view text, http::Events& events);
  void append_reasoning_event(std::string_view type, std::string_view member, std::string_view text,
                              http::Events& events) const;
  void end_reasoning(std::string_view status, http::Events& events);
  void append_part(const AnswerPart& part, http::Events& events);
  void begin_call(const std::string& name, http::Events& events);
  void append_arguments(std::string_view arguments, http::Events& events);
  void append_call_event(std::string_view type, std::string_view member, std::string_view arguments,
                         http::Events& events) const;
  void end_call(CallEnd end, http::Events& events);
  void begin_text(http::Events& events);
  void end_text(std::string_view status, http::Events& events);
  std::string_view final_status() const;
  std::string next_item_id(std::string_view prefix);
  CallItem begin_item(ToolCall call);

  const Options options_;
  const text::Tokenizer& tokenizer_;
  IdSource& ids_;
  std::size_t num_ids_ = 0;  // of items, so far
  ToolCallReader reader_;
  ReasoningTokens reasoning_tokens_;
  std::vector<Json> items_;  // that are whole
  FinishReason finish_reason_ = FinishReason::kStop;

  // For streams. The events are numbered, also the one that tells of a failure.
  mutable std::int64_t num_events_ = 0;
  bool has_begun_ = false;
  OpenItem message_, reasoning_;
  std::vector<PositionLogprobs> logprobs_;  // of the message
  std::size_t num_logprobs_sent_ = 0;
  CallItem call_;  // that is open
};

}  // namespace kvasir::server::api
