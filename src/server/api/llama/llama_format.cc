#include "server/api/llama/llama_format.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/api/openai/logprobs_json.h"
#include "server/api/timings_json.h"
#include "server/observe/kv_usage_json.h"

namespace kvasir::server::api {
namespace {

constexpr int kSlot = 0;  // there are no slots: a number that clients may send back

void write_ids(JsonWriter& json, const std::vector<TokenId>& ids) {
  json.key("tokens").begin_array();
  for (const TokenId id : ids) json.value(id);
  json.end_array();
}

std::string_view stop_type_of(FinishReason reason, std::string_view stop_string) {
  if (reason == FinishReason::kLength) return "limit";
  return stop_string.empty() ? "eos" : "word";
}

}  // namespace

LlamaFormat::LlamaFormat(Options options, const text::Tokenizer* tokenizer)
    : options_(std::move(options)), tokenizer_(tokenizer) {
  const std::size_t count = options_.prompt_tokens.size() * static_cast<std::size_t>(options_.choices_per_prompt);
  num_tokens_.resize(count);
  has_new_line_.resize(count);
}

std::int32_t LlamaFormat::num_prompt_tokens(std::int32_t choice) const {
  return options_.prompt_tokens[static_cast<std::size_t>(choice / options_.choices_per_prompt)];
}

void LlamaFormat::write_probs(JsonWriter& json, const std::vector<PositionLogprobs>& positions) const {
  const bool is_prob = options_.has_post_sampling_probs;
  const auto write_token = [&](const TokenLogprob& token) {
    const std::string_view bytes = tokenizer_ == nullptr ? std::string_view() : tokenizer_->decode_token(token.token, true);
    json.begin_object().member("id", token.token).member("token", bytes).key("bytes").begin_array();
    for (const char byte : bytes) json.value(static_cast<unsigned>(static_cast<unsigned char>(byte)));
    json.end_array();
    const float logprob = finite_logprob(token.logprob);
    json.member(is_prob ? "prob" : "logprob", is_prob ? std::exp(logprob) : logprob);
  };
  json.key("completion_probabilities").begin_array();
  for (const PositionLogprobs& position : positions) {
    write_token(position.chosen);
    json.key(is_prob ? "top_probs" : "top_logprobs").begin_array();
    for (const TokenLogprob& token : position.top) {
      write_token(token);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void LlamaFormat::write_settings(JsonWriter& json) const {
  const SamplingParams& sampling = options_.sampling;
  json.key("generation_settings").begin_object().member("n_ctx", options_.context_tokens);
  json.member("n_predict", sampling.max_tokens.value_or(-1)).member("temperature", sampling.temperature);
  json.member("top_k", sampling.top_k).member("top_p", sampling.top_p).member("min_p", sampling.min_p);
  json.member("repeat_penalty", sampling.repetition_penalty).member("presence_penalty", sampling.presence_penalty);
  json.member("frequency_penalty", sampling.frequency_penalty).member("ignore_eos", sampling.ignore_eos);
  if (sampling.seed) json.member("seed", *sampling.seed);
  json.key("stop").begin_array();
  for (const std::string& stop : sampling.stop) json.value(stop);
  json.end_array().end_object();
}

std::string LlamaFormat::end_object(const End& end) const {
  const std::int32_t prompt = num_prompt_tokens(end.choice);
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("index", end.choice).member("content", end.content);
  write_ids(json, end.tokens);
  json.member("id_slot", kSlot).member("stop", true).member("model", options_.model);
  json.member("tokens_predicted", end.num_tokens).member("tokens_evaluated", prompt);
  write_settings(json);
  json.member("has_new_line", end.has_new_line).member("truncated", false);
  json.member("stop_type", stop_type_of(end.reason, end.stop_string)).member("stopping_word", end.stop_string);
  json.member("tokens_cached", prompt + end.num_tokens).key("timings");
  Usage usage;
  usage.prompt_tokens = prompt;
  usage.completion_tokens = end.num_tokens;
  usage.cached_tokens = end.num_cached;
  write_timings(json, usage, end.cost);
  observe::member_kv_usage(json, end.kv);
  if (options_.probs && !end.logprobs.empty()) write_probs(json, end.logprobs);
  json.end_object();
  return options_.response_fields.empty() ? body : with_fields(body, options_.response_fields);
}

std::string LlamaFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const std::vector<TokenId> no_tokens;
  std::string body;
  const bool is_list = options_.is_list || choices.size() > 1;
  if (is_list) body += '[';
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceResult& choice = choices[i];
    if (i > 0) body += ',';
    body += end_object({.choice = static_cast<std::int32_t>(i),
                        .content = choice.text,
                        .tokens = options_.return_tokens ? choice.token_ids : no_tokens,
                        .num_tokens = choices.size() == 1 ? usage.completion_tokens
                                                          : static_cast<std::int32_t>(choice.token_ids.size()),
                        .num_cached = choices.size() == 1 ? usage.cached_tokens : 0,
                        .reason = choice.finish_reason,
                        .stop_string = choice.stop_string,
                        .has_new_line = choice.text.contains('\n'),
                        .logprobs = choice.logprobs,
                        .cost = choice.cost,
                        .kv = usage.kv});
  }
  if (is_list) body += ']';
  return body;
}

void LlamaFormat::append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                                http::Events& events) {
  const auto index = static_cast<std::size_t>(choice);
  const bool is_alone = num_tokens_.size() == 1;
  num_tokens_[index] += static_cast<std::int32_t>(output.token_ids.size());
  if (is_alone) num_tokens_[index] = usage.completion_tokens;  // with the token that ends it
  has_new_line_[index] = has_new_line_[index] || output.text.contains('\n');
  const std::int32_t cached = is_alone ? usage.cached_tokens : 0;
  const bool has_probs = options_.probs && !output.logprobs.empty();
  if (!output.text.empty() || has_probs || (options_.return_tokens && !output.token_ids.empty())) {
    std::string data;
    JsonWriter json(data);
    json.begin_object().member("index", choice).member("content", output.text);
    write_ids(json, options_.return_tokens ? output.token_ids : std::vector<TokenId>());
    json.member("stop", false).member("id_slot", kSlot).member("tokens_predicted", num_tokens_[index]);
    json.member("tokens_evaluated", num_prompt_tokens(choice));
    if (options_.timings_per_token) {
      Usage so_far;
      so_far.prompt_tokens = num_prompt_tokens(choice);
      so_far.completion_tokens = num_tokens_[index];
      so_far.cached_tokens = cached;
      json.key("timings");
      write_timings(json, so_far, output.cost);
    }
    if (has_probs) write_probs(json, output.logprobs);
    json.end_object();
    events.push_back({.data = std::move(data)});
  }
  if (!output.finish_reason) return;
  const std::vector<TokenId> no_tokens;
  const std::vector<PositionLogprobs> no_logprobs;
  events.push_back({.data = end_object({.choice = choice,
                                        .content = {},
                                        .tokens = no_tokens,
                                        .num_tokens = num_tokens_[index],
                                        .num_cached = cached,
                                        .reason = *output.finish_reason,
                                        .stop_string = output.stop_string,
                                        .has_new_line = has_new_line_[index],
                                        .logprobs = no_logprobs,
                                        .cost = output.cost,
                                        .kv = usage.kv})});
}

std::string with_fields(const std::string& json, const std::vector<std::string>& paths) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string body;
  JsonWriter out(body);
  out.begin_object();
  std::vector<std::string_view> told;
  if (!parser.parse(json).get(root)) {
    for (const std::string& path : paths) {
      simdjson::dom::element found;
      const bool is_told = std::ranges::find(told, path) != told.end();
      if (path.empty() || is_told || root.at_pointer("/" + path).get(found)) continue;
      told.push_back(path);
      out.key(path).raw(simdjson::minify(found));
    }
  }
  out.end_object();
  return body;
}

}  // namespace kvasir::server::api
