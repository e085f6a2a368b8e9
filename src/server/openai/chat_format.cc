#include "server/openai/chat_format.h"

#include <utility>

#include "server/http/sse.h"
#include "server/openai/logprobs_json.h"

namespace kvasir::server {
namespace {

constexpr std::string_view kChunk = "chat.completion.chunk";

}  // namespace

ChatFormat::ChatFormat(Options options, const text::Tokenizer& tokenizer)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      has_begun_(static_cast<std::size_t>(options_.num_choices)) {}

std::string ChatFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  std::string body;
  JsonWriter json(body);
  begin_answer(json, options_.header, "chat.completion").key("choices").begin_array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceResult& choice = choices[i];
    json.begin_object().member("index", i);
    json.key("message").begin_object();
    json.member("role", "assistant").member("content", choice.text).member_null("refusal").end_object();
    if (options_.logprobs) {
      json.key("logprobs");
      write_chat_logprobs(json, choice.logprobs, tokenizer_);
    } else {
      json.member_null("logprobs");
    }
    json.member("finish_reason", finish_reason_name(choice.finish_reason)).end_object();
  }
  json.end_array();
  if (options_.prompt_logprobs) {
    json.key("prompt_logprobs");
    write_prompt_logprobs(json, choices.front().prompt_logprobs, &tokenizer_);
  }
  json.key("usage");
  write_usage(json, usage);
  json.end_object();
  return body;
}

void ChatFormat::append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                               std::string& events) {
  if (!has_begun_[static_cast<std::size_t>(choice)]) {
    has_begun_[static_cast<std::size_t>(choice)] = true;
    const std::string nothing;
    append_chunk({.choice = choice, .has_role = true, .content = &nothing}, usage, events);
  }
  if (!output.text.empty() || (options_.logprobs && !output.logprobs.empty())) {
    append_chunk({.choice = choice, .content = &output.text, .logprobs = output.logprobs}, usage, events);
  }
  if (output.finish_reason) {
    append_chunk({.choice = choice, .finish_reason = output.finish_reason}, usage, events);
  }
}

void ChatFormat::append_chunk(const Delta& delta, const Usage& usage, std::string& events) const {
  std::string chunk;
  JsonWriter json(chunk);
  begin_answer(json, options_.header, kChunk).key("choices").begin_array().begin_object();
  json.member("index", delta.choice).key("delta").begin_object();
  if (delta.has_role) json.member("role", "assistant");
  if (delta.content != nullptr) json.member("content", *delta.content);
  json.end_object();
  if (options_.logprobs && !delta.logprobs.empty()) {
    json.key("logprobs");
    write_chat_logprobs(json, delta.logprobs, tokenizer_);
  } else {
    json.member_null("logprobs");
  }
  if (delta.finish_reason) {
    json.member("finish_reason", finish_reason_name(*delta.finish_reason));
  } else {
    json.member_null("finish_reason");
  }
  json.end_object().end_array();
  end_chunk(json, options_.header, usage);
  append_sse_event(events, chunk);
}

void ChatFormat::append_last_events(const Usage& usage, std::string& events) {
  if (options_.header.include_usage) append_sse_event(events, usage_chunk(options_.header, kChunk, usage));
}

}  // namespace kvasir::server
