#include "jinja/python_string.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/code_point.h"

namespace kvasir::jinja {
namespace {

struct PropertyRun {
  char32_t first;
  std::uint32_t num_code_points;
  std::uint16_t properties;
};
// Every stride-th code point from first to last maps to itself + delta.
struct CaseRun {
  char32_t first;
  char32_t last;
  std::uint32_t stride;
  std::int32_t delta;
};
// Code points that map to several.
struct CaseExpansion {
  char32_t code_point;
  std::string_view text;
};

#include "jinja/python_case_table.inc"
#include "jinja/python_properties_table.inc"

struct CaseMap {
  std::span<const CaseRun> runs;
  std::span<const CaseExpansion> expansions;
};
constexpr CaseMap kUpper{kUpperRuns, kUpperExpansions};
constexpr CaseMap kLower{kLowerRuns, kLowerExpansions};
constexpr CaseMap kTitle{kTitleRuns, kTitleExpansions};

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

void append_mapped(std::string& out, char32_t code_point, const CaseMap& map) {
  const auto expansion =
      std::lower_bound(map.expansions.begin(), map.expansions.end(), code_point,
                       [](const CaseExpansion& e, char32_t c) { return e.code_point < c; });
  if (expansion != map.expansions.end() && expansion->code_point == code_point) {
    out.append(expansion->text);
    return;
  }
  const auto run = std::lower_bound(map.runs.begin(), map.runs.end(), code_point,
                                    [](const CaseRun& r, char32_t c) { return r.last < c; });
  if (run != map.runs.end() && run->first <= code_point && (code_point - run->first) % run->stride == 0) {
    code_point = static_cast<char32_t>(static_cast<std::int32_t>(code_point) + run->delta);
  }
  append_utf8(out, code_point);
}

// Lowers one string left to right, remembering what the final sigma depends on: a cased character before
// (skipping case-ignorable ones) and none after.
class Lowering {
 public:
  explicit Lowering(std::string_view text) : text_(text), cased_after_(cased_positions()) {}

  void append(std::string& out, char32_t code_point, std::size_t position) {
    const std::uint16_t properties = char_properties(code_point);
    if (code_point == kCapitalSigma && cased_before_ && !cased_after_[position]) {
      append_utf8(out, kFinalSigma);
    } else {
      append_mapped(out, code_point, kLower);
    }
    note(properties);
  }
  void note(std::uint16_t properties) {
    if ((properties & kCaseIgnorable) == 0) cased_before_ = (properties & kCased) != 0;
  }

 private:
  // For each sigma, by byte position: whether the next character that is not case-ignorable has case.
  std::vector<bool> cased_positions() const {
    if (text_.find("\xCE\xA3") == std::string_view::npos) return {};
    std::vector<bool> out(text_.size(), false);
    bool cased = false;
    for (std::size_t i = text_.size(); i-- > 0;) {
      if ((static_cast<unsigned char>(text_[i]) & 0xC0) == 0x80) continue;
      out[i] = cased;
      const std::uint16_t properties = char_properties(code_point_at(text_, i).value);
      if ((properties & kCaseIgnorable) == 0) cased = (properties & kCased) != 0;
    }
    return out;
  }

  std::string_view text_;
  std::vector<bool> cased_after_;
  bool cased_before_ = false;
};

std::string reversed_bytes(std::string_view text) { return {text.rbegin(), text.rend()}; }

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::uint16_t char_properties(char32_t code_point) {
  const auto* run = std::upper_bound(std::begin(kPropertyRuns), std::end(kPropertyRuns), code_point,
                                     [](char32_t c, const PropertyRun& r) { return c < r.first; });
  if (run == std::begin(kPropertyRuns)) return 0;
  --run;
  return code_point - run->first < run->num_code_points ? run->properties : 0;
}

std::string to_upper(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    append_mapped(out, c.value, kUpper);
    i += c.size_bytes;
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  Lowering lowering(text);
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    lowering.append(out, c.value, i);
    i += c.size_bytes;
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  Lowering lowering(text);
  bool after_cased = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const std::uint16_t properties = char_properties(c.value);
    if (after_cased) {
      lowering.append(out, c.value, i);
    } else {
      append_mapped(out, c.value, kTitle);
      lowering.note(properties);
    }
    after_cased = (properties & kCased) != 0;
    i += c.size_bytes;
  }
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  Lowering lowering(text);
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (i == 0) {
      append_mapped(out, c.value, kTitle);
      lowering.note(char_properties(c.value));
    } else {
      lowering.append(out, c.value, i);
    }
    i += c.size_bytes;
  }
  return out;
}

std::string_view strip_whitespace_left(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = code_point_at(text, 0);
    if (!has_property(c.value, kSpace)) break;
    text.remove_prefix(c.size_bytes);
  }
  return text;
}

std::string_view strip_whitespace_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!has_property(code_point_at(text, start).value, kSpace)) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::string_view strip_whitespace(std::string_view text) {
  return strip_whitespace_right(strip_whitespace_left(text));
}

std::optional<std::size_t> find_bytes(std::string_view haystack, std::string_view needle, std::size_t from) {
  if (from > haystack.size()) return std::nullopt;
  if (needle.empty()) return from;
  // memmem is the two-way algorithm in every libc we build on.
  const void* hit = memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size());
  if (hit == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(hit) - haystack.data());
}

std::optional<std::size_t> rfind_bytes(std::string_view haystack, std::string_view needle) {
  const auto hit = find_bytes(reversed_bytes(haystack), reversed_bytes(needle));
  if (!hit) return std::nullopt;
  return haystack.size() - *hit - needle.size();
}

std::size_t count_occurrences(std::string_view text, std::string_view needle) {
  if (needle.empty()) return num_code_points(text) + 1;
  std::size_t count = 0;
  for (auto hit = find_bytes(text, needle); hit; hit = find_bytes(text, needle, *hit + needle.size()))
    ++count;
  return count;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const std::size_t end = i;
    i += c.size_bytes;
    if (!is_line_end(c.value)) continue;
    if (c.value == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, end - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::size_t num_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += code_point_at(text, offset).size_bytes;
  return offset;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = code_point_at(text, i).size_bytes;
    out.push_back(text.substr(i, size));
    i += size;
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

}  // namespace kvasir::jinja
