#include "server/observe/tracing/trace_context.h"

#include <sys/random.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>

#include "base/check.h"
#include "server/observe/tracing/member_list.h"

namespace kvasir::server::observe {
namespace {

bool is_zero(std::span<const std::uint8_t> id) {
  return std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; });
}

template <std::size_t kSize>
std::array<std::uint8_t, kSize> random_id() {
  std::array<std::uint8_t, kSize> id{};
  do {
    // Always whole for so few bytes, once the system has started.
    CHECK(getrandom(id.data(), id.size(), 0) == static_cast<ssize_t>(id.size()));
  } while (is_zero(id));
  return id;
}

int nibble(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// False unless `digits` is as many lower-case digits as fill `bytes`.
bool read_hex(std::string_view digits, std::span<std::uint8_t> bytes) {
  if (digits.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = nibble(digits[2 * i]), low = nibble(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

bool is_state_key(std::string_view key) {
  constexpr std::size_t kMaxBytes = 256;
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";
  return !key.empty() && key.size() <= kMaxBytes && key.find_first_not_of(kAllowed) == key.npos &&
         kAllowed.find(key[0]) < kAllowed.find('_');
}

bool is_state_value(std::string_view value) {
  constexpr std::size_t kMaxBytes = 256;
  return !value.empty() && value.size() <= kMaxBytes &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

// Appends the members of one header; false where one is malformed.
bool append_members(std::string_view header, std::string& state, int& num_members) {
  constexpr int kMaxMembers = 32;
  while (!header.empty()) {
    const std::string_view member = take_member(header);
    if (member.empty()) continue;  // allowed
    const std::size_t equals = member.find('=');
    if (equals == member.npos || !is_state_key(member.substr(0, equals)) ||
        !is_state_value(member.substr(equals + 1)) || ++num_members > kMaxMembers) {
      return false;
    }
    if (!state.empty()) state += ',';
    state += member;
  }
  return true;
}

}  // namespace

TraceId new_trace_id() { return random_id<16>(); }
SpanId new_span_id() { return random_id<8>(); }

std::string hex(std::span<const std::uint8_t> id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : id) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  // version "-" trace-id "-" parent-id "-" flags, and in later versions more.
  constexpr std::size_t kLength = 55;
  constexpr std::uint8_t kSampled = 1;
  if (header.size() < kLength || header.starts_with("ff")) return {};
  if (header.size() > kLength && (header.starts_with("00") || header[kLength] != '-')) return {};
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return {};
  TraceContext context;
  std::array<std::uint8_t, 1> version{}, flags{};
  if (!read_hex(header.substr(0, 2), version) || !read_hex(header.substr(3, 32), context.trace_id) ||
      !read_hex(header.substr(36, 16), context.span_id) || !read_hex(header.substr(53, 2), flags)) {
    return {};
  }
  if (is_zero(context.trace_id) || is_zero(context.span_id)) return {};
  context.is_sampled = (flags[0] & kSampled) != 0;
  return context;
}

std::optional<TraceContext> trace_context_of(const http::Request& request) {
  const std::string* header = request.header("Traceparent");
  return header == nullptr ? std::nullopt : parse_traceparent(*header);
}

std::string trace_state_of(const http::Request& request) {
  constexpr std::size_t kMaxBytes = 512;
  std::string state;
  int num_members = 0;
  for (const http::Header& header : request.headers) {
    if (!boost::beast::iequals(header.name, "Tracestate")) continue;
    if (!append_members(header.value, state, num_members)) return {};
  }
  return state.size() > kMaxBytes ? std::string() : state;
}

}  // namespace kvasir::server::observe
