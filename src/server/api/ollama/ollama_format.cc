#include "server/api/ollama/ollama_format.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/api/ollama/ollama_json.h"
#include "server/api/openai/logprobs_json.h"

namespace kvasir::server::api {

OllamaFormat::OllamaFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids)
    : options_(std::move(options)), tokenizer_(tokenizer), ids_(ids), reader_(options_.reading, options_.reading.counts) {}

// Arguments are an object, so a call that was cut is none.
void OllamaFormat::write_calls(JsonWriter& json, const std::vector<ToolCall>& calls) {
  json.key("tool_calls").begin_array();
  for (const ToolCall& call : calls) {
    json.begin_object().member("id", ids_.next("call_")).key("function").begin_object();
    json.member("index", num_calls_++).member("name", call.name).key("arguments").raw(call.arguments);
    json.end_object().end_object();
  }
  json.end_array();
}

void OllamaFormat::write_message(JsonWriter& json, const Piece& piece) {
  json.key("message").begin_object().member("role", "assistant").member("content", piece.text);
  if (!piece.reasoning.empty()) json.member("thinking", piece.reasoning);
  if (!piece.calls.empty()) write_calls(json, piece.calls);
  json.end_object();
}

void OllamaFormat::begin(JsonWriter& json, const Piece& piece) {
  json.begin_object().member("model", options_.model);
  json.member("created_at", rfc3339(std::chrono::system_clock::now()));
  if (options_.is_chat) {
    write_message(json, piece);
  } else {
    json.member("response", piece.text);
    if (!piece.reasoning.empty()) json.member("thinking", piece.reasoning);
  }
  if (!options_.logprobs || piece.logprobs.empty()) return;
  json.key("logprobs");
  write_token_logprobs(json, piece.logprobs, tokenizer_);
}

void OllamaFormat::write_end(JsonWriter& json, FinishReason reason, const RequestCost& cost, const Usage& usage) const {
  json.member("done", true).member("done_reason", reason == FinishReason::kLength ? "length" : "stop");
  if (options_.gives_context) {
    json.key("context").begin_array();
    for (const TokenId token : options_.prompt_tokens) json.value(token);
    for (const TokenId token : token_ids_) json.value(token);
    json.end_array();
  }
  const auto total = std::chrono::steady_clock::now() - options_.received_at;
  write_durations(json, std::chrono::duration_cast<std::chrono::nanoseconds>(total), cost, usage);
}

std::string OllamaFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const ChoiceResult& choice = choices.front();
  ReadAnswer answer = read_answer(options_.reading, choice.text);
  std::erase_if(answer.calls, [](const ToolCall& call) { return !call.is_complete; });
  const Piece piece{.text = std::move(answer.text),
                    .reasoning = std::move(answer.reasoning),
                    .calls = std::move(answer.calls),
                    .logprobs = choice.logprobs};
  if (options_.gives_context) token_ids_ = choice.token_ids;
  std::string body;
  JsonWriter json(body);
  begin(json, piece);
  write_end(json, choice.finish_reason, choice.cost, usage);
  json.end_object();
  return body;
}

void OllamaFormat::add_part(AnswerPart part, Piece& piece) {
  switch (part.kind) {
    case AnswerPart::Kind::kText:
      piece.text += part.text;
      return;
    case AnswerPart::Kind::kReasoning:
      piece.reasoning += part.text;
      return;
    case AnswerPart::Kind::kCall:
      open_call_ = {.name = std::move(part.text), .arguments = {}};
      return;
    case AnswerPart::Kind::kArguments:
      open_call_.arguments += part.text;
      return;
    case AnswerPart::Kind::kCallEnd:
      if (part.end == CallEnd::kComplete) piece.calls.push_back(std::move(open_call_));
      return;
  }
}

void OllamaFormat::append_line(const Piece& piece, http::Events& events) {
  std::string line;
  JsonWriter json(line);
  begin(json, piece);
  json.member("done", false).end_object();
  events.push_back({.data = std::move(line)});
}

void OllamaFormat::append_events(std::int32_t, const RequestOutput& output, const Usage& usage, http::Events& events) {
  ToolCallReader::Parts parts;
  reader_.push(output.text, parts);
  if (output.finish_reason) reader_.finish(parts);
  if (options_.gives_context) std::ranges::copy(output.token_ids, std::back_inserter(token_ids_));
  Piece piece{.text = {}, .reasoning = {}, .calls = {}, .logprobs = output.logprobs};
  for (AnswerPart& part : parts) add_part(std::move(part), piece);
  const bool has_news = !piece.text.empty() || !piece.reasoning.empty() || !piece.calls.empty() ||
                        (options_.logprobs && !piece.logprobs.empty());
  if (has_news) append_line(piece, events);
  if (!output.finish_reason) return;
  std::string line;
  JsonWriter json(line);
  begin(json, Piece{});
  write_end(json, *output.finish_reason, output.cost, usage);
  json.end_object();
  events.push_back({.data = std::move(line)});
}

void OllamaFormat::append_failure(const ApiError& error, http::Events& events) const {
  events.push_back({.data = error_json(error, ErrorShape::kOllama), .kind = http::Event::Kind::kFailure});
}

}  // namespace kvasir::server::api
