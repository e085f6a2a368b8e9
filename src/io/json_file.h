// A JSON file read whole.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::io {

// Owns what the elements of root() point into. Movable; elements stay valid. Thread safety: none.
class JsonFile {
 public:
  // Errors: kBadFile naming the path: it cannot be read, holds more than `max_bytes`, or is no JSON object.
  static Result<JsonFile> open(const std::string& path, std::size_t max_bytes);
  // `name` is for messages. Error: kBadFile when it is no JSON object.
  static Result<JsonFile> parse(std::string_view text, const std::string& name);

  simdjson::dom::object root() const { return root_; }
  const std::string& name() const { return name_; }

 private:
  JsonFile() = default;

  std::string name_;
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::object root_;
};

}  // namespace kvasir::io
