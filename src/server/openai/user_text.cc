#include "server/openai/user_text.h"

#include <bitset>
#include <utility>

namespace kvasir::server {
namespace {

using text::jinja::Value;

// The private-use area of the basic plane, U+E000..U+F8FF; three bytes each in UTF-8.
constexpr std::size_t kFirstCandidate = 0xE000;
constexpr std::size_t kNumCandidates = 0x1900;
using Candidates = std::bitset<kNumCandidates>;

std::string candidate_utf8(std::size_t index) {
  const std::size_t code_point = kFirstCandidate + index;
  return {static_cast<char>(0xE0 | (code_point >> 12)), static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

void collect(const std::string& text, Candidates& used) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (byte(i) != 0xEE && byte(i) != 0xEF) continue;
    const std::size_t code_point =
        (byte(i) & 0x0Fu) << 12 | (byte(i + 1) & 0x3Fu) << 6 | (byte(i + 2) & 0x3Fu);
    if (code_point >= kFirstCandidate && code_point - kFirstCandidate < kNumCandidates) {
      used.set(code_point - kFirstCandidate);
    }
  }
}

void collect(const Value& value, Candidates& used) {
  if (value.is_string()) return collect(value.as_string(), used);
  if (value.is_list()) {
    for (const Value& item : value.as_list().items) collect(item, used);
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict().entries()) {
      collect(key, used);
      collect(item, used);
    }
  }
}

}  // namespace

ApiResult<UserText> UserText::create(const text::Tokenizer& tokenizer, std::span<const Value> values) {
  Candidates used;
  for (const Value& value : values) collect(value, used);
  for (std::size_t i = 0; i < kNumCandidates; ++i) {
    if (!used[i]) return UserText(tokenizer, candidate_utf8(i));
  }
  return bad_request("the conversation contains every private-use character of the basic plane", "messages");
}

std::string UserText::marked(const std::string& text) const {
  std::string marked;
  std::size_t copied = 0;
  for (const std::size_t start : tokenizer_.control_token_starts(text)) {
    marked.append(text, copied, start - copied).append(mark_);
    copied = start;
  }
  return marked.append(text, copied);
}

Value UserText::marked(const Value& value) const {
  if (value.is_string()) return Value::string(marked(value.as_string()));
  if (value.is_list()) {
    std::vector<Value> items;
    for (const Value& item : value.as_list().items) items.push_back(marked(item));
    return Value::list(std::move(items), value.as_list().kind);
  }
  if (value.is_dict()) {
    std::vector<Value::Entry> entries;
    for (const auto& [key, item] : value.as_dict().entries()) entries.emplace_back(marked(key), marked(item));
    return Value::dict(std::move(entries));
  }
  return value;
}

UserText::Unmarked UserText::unmarked(std::string_view rendered) const {
  Unmarked result;
  std::size_t position = 0;
  for (std::size_t found; (found = rendered.find(mark_, position)) != std::string_view::npos;) {
    result.text.append(rendered.substr(position, found - position));
    if (result.plain_at.empty() || result.plain_at.back() != result.text.size()) {
      result.plain_at.push_back(result.text.size());
    }
    position = found + mark_.size();
  }
  result.text.append(rendered.substr(position));
  return result;
}

}  // namespace kvasir::server
