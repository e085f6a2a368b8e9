// A folder's config.json.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "io/json_file.h"
#include "kvasir/result.h"

namespace kvasir::io {

// The configuration of the language model in it: the object text_config where there is one, as in models that see
// images too, else the whole. A value of null counts as absent. Thread safety: none.
class HfConfig {
 public:
  // Errors: kBadFile: no such file, no JSON object, or no model_type.
  static Result<HfConfig> open(const std::string& folder);
  static Result<HfConfig> parse(std::string_view text, const std::string& name);

  const std::string& model_type() const { return model_type_; }
  const std::string& name() const { return file_.name(); }  // of the file, for messages
  simdjson::dom::object text() const { return text_; }

  // Looks in the language model's part.
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  // Whether the language model's value is there and null: then a default does not apply.
  bool is_null(std::string_view key) const;
  // Looks in the language model's part, then in the whole file.
  std::optional<simdjson::dom::element> find_anywhere(std::string_view key) const;
  // Errors: kBadFile naming the key and its value: another type, a number that is not finite.
  Result<std::optional<double>> find_number(std::string_view key) const;
  Result<std::optional<std::int64_t>> find_int(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;

  // "config.json: KEY PROBLEM"
  std::unexpected<Error> bad(std::string_view key, std::string_view problem) const;

 private:
  static Result<HfConfig> from(JsonFile file);
  explicit HfConfig(JsonFile file) : file_(std::move(file)) {}

  JsonFile file_;
  simdjson::dom::object text_;
  std::string model_type_;
};

}  // namespace kvasir::io
