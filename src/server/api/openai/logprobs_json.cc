#include "server/api/openai/logprobs_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace kvasir::server::api {
namespace {

void write_chat_token(JsonWriter& json, const TokenLogprob& token, const text::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.decode_token(token.token, /*render_special=*/true);
  json.member("token", bytes).member("logprob", finite_logprob(token.logprob));
  json.key("bytes").begin_array();
  for (const char byte : bytes) json.value(static_cast<unsigned>(static_cast<unsigned char>(byte)));
  json.end_array();
}

bool has(const std::vector<TokenLogprob>& top, TokenId token) {
  return std::ranges::find(top, token, &TokenLogprob::token) != top.end();
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::int64_t count_characters(std::string_view bytes) {
  return std::ranges::count_if(bytes, [](char byte) { return !is_continuation(byte); });
}

}  // namespace

float finite_logprob(float logprob) { return std::isfinite(logprob) ? logprob : kLowestLogprob; }

void write_token_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                          const text::Tokenizer& tokenizer) {
  json.begin_array();
  for (const PositionLogprobs& position : positions) {
    json.begin_object();
    write_chat_token(json, position.chosen, tokenizer);
    json.key("top_logprobs").begin_array();
    for (const TokenLogprob& token : position.top) {
      json.begin_object();
      write_chat_token(json, token, tokenizer);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_chat_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                         const text::Tokenizer& tokenizer) {
  json.begin_object().key("content");
  write_token_logprobs(json, positions, tokenizer);
  json.member_null("refusal").end_object();
}

void write_prompt_logprobs(JsonWriter& json, std::span<const PositionLogprobs> positions,
                           const text::Tokenizer* tokenizer) {
  json.begin_array();
  for (const PositionLogprobs& position : positions) {
    if (position.chosen.token == kNoToken) {
      json.null();
      continue;
    }
    std::vector<TokenLogprob> tokens = position.top;
    if (!has(tokens, position.chosen.token)) tokens.push_back(position.chosen);
    json.begin_object();
    for (const TokenLogprob& token : tokens) {
      json.key(std::to_string(token.token)).begin_object();
      json.member("logprob", finite_logprob(token.logprob)).member("rank", token.rank);
      if (tokenizer != nullptr) {
        json.member("decoded_token", tokenizer->decode_token(token.token, /*render_special=*/true));
      }
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

// Parts of characters as "bytes:\xe2\x80", which is how OpenAI names them.
std::string LegacyLogprobs::name_of(TokenId token) const {
  if (tokenizer_ == nullptr) return fmt::format("token_id:{}", token);
  const std::string_view bytes = tokenizer_->decode_token(token, /*render_special=*/true);
  if (is_valid_utf8(bytes)) return std::string(bytes);
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

// The alternatives by name, and the chosen token even if it is none of them. The likeliest of several tokens
// with one name stays.
void LegacyLogprobs::write_alternatives(JsonWriter& json, const PositionLogprobs& position) const {
  std::vector<std::string> written;
  const auto write = [&](const TokenLogprob& token) {
    std::string name = name_of(token.token);
    if (std::ranges::find(written, name) != written.end()) return;
    json.member(name, finite_logprob(token.logprob));
    written.push_back(std::move(name));
  };
  json.begin_object();
  for (const TokenLogprob& token : position.top) write(token);
  if (!has(position.top, position.chosen.token)) write(position.chosen);
  json.end_object();
}

// A token that goes on with a character is where that character is, not after it.
std::int64_t LegacyLogprobs::next_offset(TokenId token) {
  if (tokenizer_ == nullptr) return offset_;
  std::string_view bytes = tokenizer_->decode_next(token, render_special_, at_text_start_);
  if (bytes.empty()) {
    const std::string_view named = tokenizer_->decode_token(token, /*render_special=*/true);
    if (echo_.starts_with(named)) bytes = named;
  }
  echo_.remove_prefix(std::min(bytes.size(), echo_.size()));
  const bool begins_inside = offset_ > 0 && !bytes.empty() && is_continuation(bytes.front());
  const std::int64_t begin = begins_inside ? offset_ - 1 : offset_;
  offset_ += count_characters(bytes);
  return begin;
}

void LegacyLogprobs::write(JsonWriter& json, std::span<const TokenId> tokens,
                           std::span<const PositionLogprobs> positions) {
  json.begin_object().key("tokens").begin_array();
  for (const TokenId token : tokens) json.value(name_of(token));
  json.end_array().key("token_logprobs").begin_array();
  for (const PositionLogprobs& position : positions) {
    if (position.chosen.token == kNoToken) {
      json.null();
    } else {
      json.value(finite_logprob(position.chosen.logprob));
    }
  }
  json.end_array().key("top_logprobs").begin_array();
  for (const PositionLogprobs& position : positions) {
    if (position.chosen.token == kNoToken) {
      json.null();
    } else {
      write_alternatives(json, position);
    }
  }
  json.end_array().key("text_offset").begin_array();
  for (const TokenId token : tokens) json.value(next_offset(token));
  json.end_array().end_object();
}

}  // namespace kvasir::server::api
