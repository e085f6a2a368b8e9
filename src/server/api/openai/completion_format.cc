#include "server/api/openai/completion_format.h"

#include <utility>

#include "server/api/timings_json.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kObject = "text_completion";

}  // namespace

CompletionFormat::CompletionFormat(Options options, const text::Tokenizer* tokenizer)
    : options_(std::move(options)), tokenizer_(tokenizer) {
  const auto num_prompts = static_cast<std::size_t>(options_.num_prompts);
  const std::size_t num_choices = num_prompts * static_cast<std::size_t>(options_.choices_per_prompt);
  logprobs_.assign(num_choices, LegacyLogprobs(tokenizer, options_.render_special,
                                               /*at_text_start=*/!options_.echo.empty()));
  has_begun_.resize(num_choices);
  prompt_logprobs_.resize(num_prompts);
}

std::size_t CompletionFormat::prompt_of(std::int32_t choice) const {
  return static_cast<std::size_t>(choice / options_.choices_per_prompt);
}

void CompletionFormat::add_echo(Piece& piece, const std::vector<PositionLogprobs>& prompt_logprobs) {
  if (options_.echo.empty()) return;
  const EchoedPrompt& prompt = options_.echo[prompt_of(piece.choice)];
  piece.text.insert(0, prompt.text);
  if (prompt_logprobs.size() != prompt.token_ids.size()) return;
  logprobs_[static_cast<std::size_t>(piece.choice)].begin_echo(prompt.text);
  piece.token_ids.insert(piece.token_ids.begin(), prompt.token_ids.begin(), prompt.token_ids.end());
  piece.logprobs.insert(piece.logprobs.begin(), prompt_logprobs.begin(), prompt_logprobs.end());
}

void CompletionFormat::write_piece(JsonWriter& json, const Piece& piece) {
  json.begin_object().member("index", piece.choice).member("text", piece.text);
  if (options_.logprobs && piece.logprobs.size() == piece.token_ids.size()) {
    json.key("logprobs");
    logprobs_[static_cast<std::size_t>(piece.choice)].write(json, piece.token_ids, piece.logprobs);
  } else {
    json.member_null("logprobs");
  }
  if (piece.finish_reason) {
    json.member("finish_reason", finish_reason_name(*piece.finish_reason));
  } else {
    json.member_null("finish_reason");
  }
}

std::string CompletionFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  std::string body;
  JsonWriter json(body);
  begin_answer(json, options_.header, kObject).key("choices").begin_array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto choice = static_cast<std::int32_t>(i);
    const auto first_of_prompt = prompt_of(choice) * static_cast<std::size_t>(options_.choices_per_prompt);
    const auto& prompt_logprobs = choices[first_of_prompt].prompt_logprobs;
    Piece piece{choice, choices[i].text, choices[i].token_ids, choices[i].logprobs, choices[i].finish_reason};
    add_echo(piece, prompt_logprobs);
    write_piece(json, piece);
    if (options_.prompt_logprobs) {
      json.key("prompt_logprobs");
      write_prompt_logprobs(json, prompt_logprobs, tokenizer_);
    }
    json.end_object();
  }
  json.end_array().key("usage");
  write_usage(json, usage);
  write_search(json, search_ended_by_);
  if (options_.timings) {
    json.key("timings");
    write_timings(json, usage, choices.back().cost);
  }
  json.end_object();
  return body;
}

void CompletionFormat::append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                                     http::Events& events) {
  auto& prompt_logprobs = prompt_logprobs_[prompt_of(choice)];
  if (!output.prompt_logprobs.empty()) prompt_logprobs = output.prompt_logprobs;
  Piece piece{choice, output.text, output.token_ids, output.logprobs, output.finish_reason};
  if (!has_begun_[static_cast<std::size_t>(choice)]) {
    has_begun_[static_cast<std::size_t>(choice)] = true;
    add_echo(piece, prompt_logprobs);
  }
  const bool has_news = !piece.text.empty() || (options_.logprobs && !piece.logprobs.empty());
  if (!has_news && !piece.finish_reason) return;
  std::string chunk;
  JsonWriter json(chunk);
  begin_answer(json, options_.header, kObject).key("choices").begin_array();
  write_piece(json, piece);
  json.end_object().end_array();
  if (options_.timings) {
    json.key("timings");
    write_timings(json, usage, output.cost);
  }
  end_chunk(json, options_.header, usage);
  events.push_back({.data = std::move(chunk)});
}

void CompletionFormat::append_last_events(const Usage& usage, http::Events& events) {
  if (options_.header.include_usage) events.push_back({.data = usage_chunk(options_.header, kObject, usage)});
}

}  // namespace kvasir::server::api
