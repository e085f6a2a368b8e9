#include "text/hf/normalizer_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/charsmap.h"
#include "text/hf/base64.h"

namespace kvasir::text::hf {
namespace {

// Of UTF-8 by the Unicode standard, annex 15 (the worst character of each form), and of GPT-2's alphabet.
constexpr std::pair<std::string_view, double> kFixed[] = {
    {"NFC", 3.0}, {"NFD", 3.0}, {"NFKC", 11.0}, {"NFKD", 11.0}, {"Lowercase", 1.5}, {"ByteLevel", 2.0}, {"BertNormalizer", 7.5},
};

std::string text_of(const JsonView& json, std::string_view key) {
  const auto member = json.find(key);
  const auto text = member && member->is_string() ? member->string() : Result<std::string>(std::string());
  return text.value_or(std::string());
}

// No match of a pattern is empty; one of a string is as long as the string.
double replace_growth(const JsonView& json) {
  const auto pattern = json.find("pattern");
  std::string wanted = text_of(json, "pattern");
  if (pattern && !pattern->is_string() && !pattern->find("Regex")) wanted = text_of(*pattern, "String");
  const auto shortest = static_cast<double>(std::max<std::size_t>(wanted.size(), 1));
  return static_cast<double>(text_of(json, "content").size()) / shortest;
}

double precompiled_growth(const JsonView& json) {
  const auto bytes = decode_base64(text_of(json, "precompiled_charsmap"));
  if (!bytes || bytes->empty()) return 1.0;
  const auto map = Charsmap::parse(*bytes);
  return map ? static_cast<double>(map->longest_replacement()) : 1.0;
}

double growth_of(const JsonView& json) {
  const std::string type = text_of(json, "type");
  double growth = 1.0;
  if (type == "Sequence") {
    const auto list = json.find("normalizers");
    const auto steps = list ? list->elements() : Result<std::vector<JsonView>>(std::vector<JsonView>());
    for (const JsonView& step : steps.value_or(std::vector<JsonView>())) growth *= growth_of(step);
    return growth;
  }
  if (type == "Replace") growth = replace_growth(json);
  if (type == "Prepend") growth = 1.0 + static_cast<double>(text_of(json, "prepend").size());
  if (type == "Precompiled") growth = precompiled_growth(json);
  const auto* const fixed = std::ranges::find(kFixed, type, &std::pair<std::string_view, double>::first);
  if (fixed != std::end(kFixed)) growth = fixed->second;
  return std::max(growth, 1.0);
}

}  // namespace

Status check_normalizer_growth(const JsonView& json) {
  const double growth = growth_of(json);
  if (growth <= kMaxNormalizerGrowth) return {};
  return json.fail(fmt::format("may make a text {:.3g} times as long, at most {} is allowed", growth,
                               kMaxNormalizerGrowth));
}

}  // namespace kvasir::text::hf
