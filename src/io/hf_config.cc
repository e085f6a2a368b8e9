#include "io/hf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "base/printable.h"

namespace kvasir::io {
namespace {

constexpr std::size_t kMaxConfigBytes = 16 << 20;
constexpr std::size_t kMaxModelTypeBytes = 100;

using simdjson::dom::element;

// Null counts as absent.
std::optional<element> find_value(const simdjson::dom::object& object, std::string_view key) {
  element value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

}  // namespace

Result<HfConfig> HfConfig::open(const std::string& folder) {
  KVASIR_TRY(JsonFile file, JsonFile::open(folder + "/config.json", kMaxConfigBytes));
  return from(std::move(file));
}

Result<HfConfig> HfConfig::parse(std::string_view text, const std::string& name) {
  KVASIR_TRY(JsonFile file, JsonFile::parse(text, name));
  return from(std::move(file));
}

Result<HfConfig> HfConfig::from(JsonFile file) {
  HfConfig config(std::move(file));
  config.text_ = config.file_.root();
  simdjson::dom::object text;
  if (const auto inner = find_value(config.text_, "text_config");
      inner && inner->get_object().get(text) == simdjson::SUCCESS) {
    config.text_ = text;
  }
  const auto model_type = config.find_anywhere("model_type");
  std::string_view name;
  if (!model_type || model_type->get_string().get(name) != simdjson::SUCCESS || name.empty() ||
      name.size() > kMaxModelTypeBytes) {
    return config.bad("model_type", "is missing, so the architecture is not known");
  }
  config.model_type_ = name;
  return config;
}

std::unexpected<Error> HfConfig::bad(std::string_view key, std::string_view problem) const {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {} {}", printable_line(name()), printable(key), problem));
}

std::optional<element> HfConfig::find(std::string_view key) const { return find_value(text_, key); }

std::optional<element> HfConfig::find_anywhere(std::string_view key) const {
  const auto value = find(key);
  return value ? value : find_value(file_.root(), key);
}

bool HfConfig::is_null(std::string_view key) const {
  element value;
  return text_.at_key(key).get(value) == simdjson::SUCCESS && value.is_null();
}

Result<std::optional<double>> HfConfig::find_number(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  double number = 0.0;
  if (value->get_double().get(number) == simdjson::SUCCESS && std::isfinite(number)) return number;
  return bad(key, fmt::format("must be a number, is {}", printable(simdjson::minify(*value))));
}

Result<std::optional<std::int64_t>> HfConfig::find_int(std::string_view key) const {
  constexpr double kMost = 1e15;  // far above every size, and a whole number of a double without a gap
  KVASIR_TRY(const auto number, find_number(key));
  if (!number) return std::nullopt;
  if (*number == std::trunc(*number) && std::abs(*number) <= kMost) return static_cast<std::int64_t>(*number);
  return bad(key, fmt::format("must be a whole number, is {}", *number));
}

Result<std::optional<bool>> HfConfig::find_bool(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  bool flag = false;
  if (value->get_bool().get(flag) == simdjson::SUCCESS) return flag;
  return bad(key, fmt::format("must be true or false, is {}", printable(simdjson::minify(*value))));
}

Result<std::optional<std::string>> HfConfig::find_string(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  std::string_view text;
  if (value->get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  return bad(key, fmt::format("must be a string, is {}", printable(simdjson::minify(*value))));
}

}  // namespace kvasir::io
