#include "text/unicode/normal_form.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/code_point.h"

namespace kvasir::text {
namespace {

#include "text/unicode/normal_form_table.inc"

constexpr std::uint32_t kCompatible = 1u << 31;
constexpr std::uint32_t kClassBits = 8;
constexpr std::uint32_t kClassMask = (1u << kClassBits) - 1;

// Hangul syllables are computed (Unicode, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kNumLeads = 19, kNumVowels = 21, kNumTails = 28;
constexpr char32_t kNumSyllables = kNumLeads * kNumVowels * kNumTails;

std::uint8_t combining_class(char32_t code_point) {
  if (code_point < 0x300) return 0;
  const std::uint32_t key = static_cast<std::uint32_t>(code_point) << kClassBits | kClassMask;
  const auto* const next = std::upper_bound(std::begin(kCombiningRuns), std::end(kCombiningRuns), key);
  return static_cast<std::uint8_t>(*std::prev(next) & kClassMask);
}

// Both directions of the table, by code point.
struct Mappings {
  struct Decomposition {
    std::span<const std::uint32_t> codes;
    bool is_compatible = false;
  };
  std::unordered_map<char32_t, Decomposition> decompositions;
  std::unordered_map<std::uint64_t, char32_t> compositions;

  static std::uint64_t pair_key(char32_t first, char32_t second) {
    return std::uint64_t{first} << 32 | second;
  }

  Mappings() {
    const std::span<const std::uint32_t> table(kDecompositions);
    for (std::size_t at = 0; at < table.size(); at += 2 + table[at + 1]) {
      decompositions[table[at] & ~kCompatible] = {table.subspan(at + 2, table[at + 1]),
                                                  (table[at] & kCompatible) != 0};
    }
    for (std::size_t at = 0; at < std::size(kCompositions); at += 3) {
      compositions[pair_key(kCompositions[at], kCompositions[at + 1])] = kCompositions[at + 2];
    }
  }
};

const Mappings& mappings() {
  static const Mappings kMappings;
  return kMappings;
}

void decompose(char32_t code_point, bool with_compatible, std::u32string& out) {
  if (code_point >= kSyllables && code_point < kSyllables + kNumSyllables) {
    const char32_t index = code_point - kSyllables;
    out += kLeads + index / (kNumVowels * kNumTails);
    out += kVowels + index % (kNumVowels * kNumTails) / kNumTails;
    if (index % kNumTails != 0) out += kTails + index % kNumTails;
    return;
  }
  const auto& table = mappings().decompositions;
  const auto found = code_point < 0xA0 ? table.end() : table.find(code_point);
  if (found == table.end() || (found->second.is_compatible && !with_compatible)) {
    out += code_point;
    return;
  }
  for (const std::uint32_t part : found->second.codes) decompose(part, with_compatible, out);
}

// Marks between two starters go by their class; those of one class stay in order.
void order_marks(std::u32string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    if (combining_class(text[begin]) == 0) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(begin),
                     text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

// The character that two become; 0 when there is none.
char32_t compose_pair(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kNumLeads && second >= kVowels && second < kVowels + kNumVowels) {
    return kSyllables + ((first - kLeads) * kNumVowels + (second - kVowels)) * kNumTails;
  }
  const bool is_open_syllable = first >= kSyllables && first < kSyllables + kNumSyllables &&
                                (first - kSyllables) % kNumTails == 0;
  if (is_open_syllable && second > kTails && second < kTails + kNumTails) return first + (second - kTails);
  const auto found = mappings().compositions.find(Mappings::pair_key(first, second));
  return found == mappings().compositions.end() ? 0 : found->second;
}

void compose(std::u32string& text) {
  constexpr std::size_t kNone = std::u32string::npos;
  std::size_t size = 0;
  std::size_t starter = kNone;
  int last_class = -1;  // of what stands between the starter and here; -1: nothing does
  for (const char32_t code_point : std::u32string(text)) {
    const int own_class = combining_class(code_point);
    if (starter != kNone && last_class < own_class) {
      if (const char32_t composed = compose_pair(text[starter], code_point); composed != 0) {
        text[starter] = composed;
        continue;
      }
    }
    if (own_class == 0) {
      starter = size;
      last_class = -1;
    } else {
      last_class = own_class;
    }
    text[size++] = code_point;
  }
  text.resize(size);
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool with_compatible = form == NormalForm::kNfkd || form == NormalForm::kNfkc;
  std::u32string code_points;
  code_points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    decompose(code_point, with_compatible, code_points);
    at += size_bytes;
  }
  order_marks(code_points);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) compose(code_points);
  std::string normal;
  normal.reserve(text.size());
  for (const char32_t code_point : code_points) append_utf8(normal, code_point);
  return normal;
}

}  // namespace kvasir::text
