#include <algorithm>

#include "base/code_point.h"
#include "jinja/access.h"
#include "jinja/brace_format.h"
#include "jinja/methods/method_tables.h"
#include "jinja/python_string.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

template <std::string (*kTransform)(std::string_view)>
Result<Value> transform(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_CHECKED(runtime.charge_bytes(self.as_string().size()));
  return runtime.make_string(kTransform(self.as_string()));
}

bool is_one_of(std::string_view chars, std::string_view c) { return chars.find(c) != std::string_view::npos; }

template <bool kLeft, bool kRight>
Result<Value> strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::string_view text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  const Value& chars = arguments.positional[0];
  if (chars.is_missing() || chars.is_none()) {
    if (kLeft) text = strip_whitespace_left(text);
    if (kRight) text = strip_whitespace_right(text);
    return part_of(self.text(), text);
  }
  KVASIR_TRY(const std::string set, string_argument(chars, "chars", ""));
  // Each character removed may be looked for through the whole set.
  const std::size_t steps_per_character = set.size() / 64;
  while (kLeft && !text.empty()) {
    KVASIR_CHECKED(runtime.charge(steps_per_character));
    const std::size_t size = code_point_at(text, 0).size_bytes;
    if (!is_one_of(set, text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (kRight && !text.empty()) {
    KVASIR_CHECKED(runtime.charge(steps_per_character));
    std::size_t start = text.size() - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!is_one_of(set, text.substr(start))) break;
    text.remove_suffix(text.size() - start);
  }
  return part_of(self.text(), text);
}

// Views into the text as values.
Result<Value> string_list(Runtime& runtime, const Text& text, const std::vector<std::string_view>& pieces) {
  KVASIR_CHECKED(runtime.charge(pieces.size()));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(part_of(text, piece));
  return runtime.make_list(std::move(items));
}

std::vector<std::string_view> split_on_whitespace(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> pieces;
  text = strip_whitespace_left(text);
  while (!text.empty()) {
    if (limit == 0) {
      pieces.push_back(text);
      break;
    }
    --limit;
    std::size_t end = 0;
    while (end < text.size()) {
      const CodePoint c = code_point_at(text, end);
      if (has_property(c.value, kSpace)) break;
      end += c.size_bytes;
    }
    pieces.push_back(text.substr(0, end));
    text = strip_whitespace_left(text.substr(end));
  }
  return pieces;
}

std::vector<std::string_view> rsplit_on_whitespace(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> pieces;
  text = strip_whitespace_right(text);
  while (!text.empty()) {
    if (limit == 0) {
      pieces.push_back(text);
      break;
    }
    --limit;
    std::size_t begin = text.size();
    while (begin > 0) {
      std::size_t start = begin - 1;
      while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
      if (has_property(code_point_at(text, start).value, kSpace)) break;
      begin = start;
    }
    pieces.push_back(text.substr(begin));
    text = strip_whitespace_right(text.substr(0, begin));
  }
  std::ranges::reverse(pieces);
  return pieces;
}

std::vector<std::string_view> split_on(std::string_view text, std::string_view separator,
                                       std::int64_t limit) {
  std::vector<std::string_view> pieces;
  std::size_t position = 0;
  for (; limit != 0; --limit) {
    const auto hit = find_bytes(text, separator, position);
    if (!hit) break;
    pieces.push_back(text.substr(position, *hit - position));
    position = *hit + separator.size();
  }
  pieces.push_back(text.substr(position));
  return pieces;
}

// Splitting from the right is splitting the reversed bytes from the left, which keeps it linear.
std::vector<std::string_view> rsplit_on(std::string_view text, std::string_view separator,
                                        std::int64_t limit) {
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string mirrored_separator(separator.rbegin(), separator.rend());
  std::vector<std::string_view> pieces = split_on(mirrored, mirrored_separator, limit);
  for (std::string_view& piece : pieces) {
    const auto begin = static_cast<std::size_t>(piece.data() - mirrored.data());
    piece = text.substr(text.size() - begin - piece.size(), piece.size());
  }
  std::ranges::reverse(pieces);
  return pieces;
}

template <bool kFromRight>
Result<Value> split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(2 * text.size()));
  KVASIR_TRY(const std::int64_t limit, int_argument(arguments.positional[1], "maxsplit", -1));
  const Value& separator = arguments.positional[0];
  if (separator.is_missing() || separator.is_none()) {
    return string_list(runtime, self.text(),
                       kFromRight ? rsplit_on_whitespace(text, limit) : split_on_whitespace(text, limit));
  }
  KVASIR_TRY(const std::string by, string_argument(separator, "sep", ""));
  if (by.empty()) return template_error("split by an empty separator");
  return string_list(runtime, self.text(),
                     kFromRight ? rsplit_on(text, by, limit) : split_on(text, by, limit));
}

template <bool kFromRight>
Result<Value> partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(2 * text.size()));
  KVASIR_TRY(const std::string by, string_argument(arguments.positional[0], "sep", ""));
  if (by.empty()) return template_error("partition by an empty separator");
  const auto hit = kFromRight ? rfind_bytes(text, by) : find_bytes(text, by);
  std::vector<std::string_view> pieces = {text, "", ""};
  if (!hit && kFromRight) pieces = {"", "", text};
  if (hit) pieces = {text.substr(0, *hit), text.substr(*hit, by.size()), text.substr(*hit + by.size())};
  std::vector<Value> items;
  for (const std::string_view piece : pieces) items.push_back(part_of(self.text(), piece));
  return runtime.make_list(std::move(items), ListKind::kTuple);
}

Result<Value> splitlines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  std::vector<std::string_view> lines = split_lines(text);
  if (flag_argument(arguments.positional[0], false)) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const char* end = i + 1 < lines.size() ? lines[i + 1].data() : text.data() + text.size();
      lines[i] = std::string_view(lines[i].data(), static_cast<std::size_t>(end - lines[i].data()));
    }
  }
  return string_list(runtime, self.text(), lines);
}

// The part of `text` between the code points `start` and `end`; empty when start lies behind the end.
Result<std::optional<std::string_view>> window(const Value& self, const Arguments& arguments) {
  const std::string_view text = self.as_string();
  const auto length = static_cast<std::int64_t>(self.text().num_code_points);
  const auto bound = [&](const Value& argument, std::int64_t if_missing) -> Result<std::int64_t> {
    if (argument.is_missing() || argument.is_none()) return if_missing;
    KVASIR_TRY(const std::int64_t position, int_argument(argument, "start or end", 0));
    return position < 0 ? std::max<std::int64_t>(position < -length ? 0 : position + length, 0) : position;
  };
  KVASIR_TRY(const std::int64_t start, bound(arguments.positional[1], 0));
  KVASIR_TRY(const std::int64_t end, bound(arguments.positional[2], length));
  if (start > length || start > end) return std::nullopt;
  const std::size_t begin_byte = byte_offset(text, static_cast<std::size_t>(start));
  const std::size_t end_byte = byte_offset(text, static_cast<std::size_t>(std::min(end, length)));
  return text.substr(begin_byte, end_byte - begin_byte);
}

template <bool kStart>
Result<Value> has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_CHECKED(runtime.charge_bytes(arguments.positional[1].is_missing() ? 0 : self.as_string().size()));
  KVASIR_TRY(const auto view, window(self, arguments));
  const Value& wanted = arguments.positional[0];
  const bool is_tuple = wanted.is_list() && wanted.as_list().kind == ListKind::kTuple;
  if (!wanted.is_string() && !is_tuple) {
    return template_error("{} needs a string or a tuple of strings, not '{}'",
                          kStart ? "startswith" : "endswith", wanted.type_name());
  }
  const auto matches = [&](const Value& affix) {
    if (!view) return false;
    return kStart ? view->starts_with(affix.as_string()) : view->ends_with(affix.as_string());
  };
  if (wanted.is_string()) {
    KVASIR_CHECKED(runtime.charge_bytes(wanted.as_string().size()));
    return Value::boolean(matches(wanted));
  }
  for (const Value& affix : wanted.as_list().items) {
    if (!affix.is_string()) return template_error("a tuple of affixes holds a '{}'", affix.type_name());
    KVASIR_CHECKED(runtime.charge_bytes(affix.as_string().size()));
    if (matches(affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool kFromRight>
Result<std::int64_t> position_of(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(3 * text.size()));
  KVASIR_TRY(const std::string needle, string_argument(arguments.positional[0], "sub", ""));
  KVASIR_TRY(const auto view, window(self, arguments));
  if (!view) return -1;
  const auto hit = kFromRight ? rfind_bytes(*view, needle) : find_bytes(*view, needle);
  if (!hit) return -1;
  const auto offset = static_cast<std::size_t>(view->data() - text.data()) + *hit;
  return static_cast<std::int64_t>(num_code_points(std::string_view(text).substr(0, offset)));
}

template <bool kFromRight>
Result<Value> find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::int64_t position, position_of<kFromRight>(runtime, self, arguments));
  return Value::integer(position);
}

template <bool kFromRight>
Result<Value> index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::int64_t position, position_of<kFromRight>(runtime, self, arguments));
  if (position < 0) return template_error("substring not found");
  return Value::integer(position);
}

Result<Value> count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_CHECKED(runtime.charge_bytes(2 * self.as_string().size()));
  KVASIR_TRY(const std::string needle, string_argument(arguments.positional[0], "sub", ""));
  KVASIR_TRY(const auto view, window(self, arguments));
  if (!view) return Value::integer(0);
  return Value::integer(static_cast<std::int64_t>(count_occurrences(*view, needle)));
}

Result<Value> replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::string old_text, string_argument(arguments.positional[0], "old", ""));
  KVASIR_CHECKED(string_argument(arguments.positional[1], "new", ""));
  KVASIR_TRY(const std::int64_t limit, int_argument(arguments.positional[2], "count", -1));
  return replace_text(runtime, self.text(), old_text, arguments.positional[1].text(), limit);
}

Result<Value> join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const auto items, iterate(runtime, arguments.positional[0]));
  TracedText out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    const Value& item = items->items[i];
    if (!item.is_string())
      return template_error("join: item {} is a '{}', not a string", i, item.type_name());
    KVASIR_CHECKED(runtime.charge_bytes(item.as_string().size() + self.as_string().size()));
    if (i > 0) out.append(self.text());
    out.append(item.text());
  }
  return runtime.make_string(std::move(out));
}

template <bool kPrefix>
Result<Value> remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  std::string_view text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  KVASIR_TRY(const std::string affix, string_argument(arguments.positional[0], "affix", ""));
  if (kPrefix && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!kPrefix && text.ends_with(affix)) text.remove_suffix(affix.size());
  return part_of(self.text(), text);
}

enum class Side { kLeft, kRight, kBoth };

template <Side kTextSide>
Result<Value> justify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::int64_t width, int_argument(arguments.positional[0], "width", 0));
  KVASIR_TRY(const std::string fill, string_argument(arguments.positional[1], "fillchar", " "));
  if (num_code_points(fill) != 1) return template_error("'fillchar' must be one character");
  const auto length = static_cast<std::int64_t>(self.text().num_code_points);
  if (width <= length) return self;
  const auto padding = static_cast<std::size_t>(width - length);
  KVASIR_CHECKED(runtime.charge(padding));
  // CPython's centring puts the odd space left when the width is odd.
  const std::size_t odd = padding & static_cast<std::size_t>(width) & 1;
  const std::size_t left =
      kTextSide == Side::kLeft ? 0 : (kTextSide == Side::kRight ? padding : padding / 2 + odd);
  TracedText out;
  for (std::size_t i = 0; i < left; ++i) out.append(fill);
  out.append(self.text());
  for (std::size_t i = left; i < padding; ++i) out.append(fill);
  return runtime.make_string(std::move(out));
}

Result<Value> zfill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::int64_t width, int_argument(arguments.positional[0], "width", 0));
  const auto length = static_cast<std::int64_t>(self.text().num_code_points);
  if (width <= length) return self;
  const auto padding = static_cast<std::size_t>(width - length);
  KVASIR_CHECKED(runtime.charge(padding));
  const std::string& text = self.as_string();
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  return runtime.make_string(text.substr(0, is_signed) + std::string(padding, '0') + text.substr(is_signed));
}

Result<Value> swapcase(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_CHECKED(runtime.charge_bytes(self.as_string().size()));
  std::string out;
  for (const std::string_view c : characters(self.as_string())) {
    out += has_property(code_point_at(c, 0).value, kUppercase) ? to_lower(c) : to_upper(c);
  }
  return runtime.make_string(std::move(out));
}

Result<Value> expandtabs(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::int64_t tab_size, int_argument(arguments.positional[0], "tabsize", 8));
  std::string out;
  std::int64_t column = 0;
  for (const std::string_view c : characters(self.as_string())) {
    if (c != "\t") {
      KVASIR_CHECKED(runtime.charge(1));
      out += c;
      column = c == "\n" || c == "\r" ? 0 : column + 1;
      continue;
    }
    const std::int64_t spaces = tab_size > 0 ? tab_size - column % tab_size : 0;
    KVASIR_CHECKED(runtime.charge(static_cast<std::size_t>(spaces)));
    out.append(static_cast<std::size_t>(spaces), ' ');
    column += spaces;
  }
  return Value::string(std::move(out));
}

constexpr Builtin kStringMethods[] = {
    {"capitalize", 0, {}, transform<capitalized>},
    {"casefold", 0, {}, transform<to_lower>},
    {"center", 1, {"width", "fillchar"}, justify<Side::kBoth>},
    {"count", 1, {"sub", "start", "end"}, count},
    {"endswith", 1, {"suffix", "start", "end"}, has_affix<false>},
    {"expandtabs", 0, {"tabsize"}, expandtabs},
    {"find", 1, {"sub", "start", "end"}, find<false>},
    {"format", 0, {kAnyArguments}, brace_format},
    {"index", 1, {"sub", "start", "end"}, index<false>},
    {"join", 1, {"iterable"}, join},
    {"ljust", 1, {"width", "fillchar"}, justify<Side::kLeft>},
    {"lower", 0, {}, transform<to_lower>},
    {"lstrip", 0, {"chars"}, strip<true, false>},
    {"partition", 1, {"sep"}, partition<false>},
    {"removeprefix", 1, {"prefix"}, remove_affix<true>},
    {"removesuffix", 1, {"suffix"}, remove_affix<false>},
    {"replace", 2, {"old", "new", "count"}, replace},
    {"rfind", 1, {"sub", "start", "end"}, find<true>},
    {"rindex", 1, {"sub", "start", "end"}, index<true>},
    {"rjust", 1, {"width", "fillchar"}, justify<Side::kRight>},
    {"rpartition", 1, {"sep"}, partition<true>},
    {"rsplit", 0, {"sep", "maxsplit"}, split<true>},
    {"rstrip", 0, {"chars"}, strip<false, true>},
    {"split", 0, {"sep", "maxsplit"}, split<false>},
    {"splitlines", 0, {"keepends"}, splitlines},
    {"startswith", 1, {"prefix", "start", "end"}, has_affix<true>},
    {"strip", 0, {"chars"}, strip<true, true>},
    {"swapcase", 0, {}, swapcase},
    {"title", 0, {}, transform<to_title>},
    {"upper", 0, {}, transform<to_upper>},
    {"zfill", 1, {"width"}, zfill},
};

}  // namespace

std::span<const Builtin> string_methods() { return kStringMethods; }

}  // namespace kvasir::jinja
