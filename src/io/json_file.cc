#include "io/json_file.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::io {

Result<JsonFile> JsonFile::open(const std::string& path, std::size_t max_bytes) {
  const auto text = read_text_file(path, max_bytes);
  if (!text) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: cannot be read, or holds more than {} bytes", printable_line(path), max_bytes));
  }
  return parse(*text, path);
}

Result<JsonFile> JsonFile::parse(std::string_view text, const std::string& name) {
  JsonFile file;
  file.name_ = name;
  file.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::element root;
  if (const auto error = file.parser_->parse(text.data(), text.size()).get(root); error != simdjson::SUCCESS) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: is not valid JSON: {}", printable_line(name),
                                                       simdjson::error_message(error)));
  }
  if (root.get_object().get(file.root_) != simdjson::SUCCESS) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: must hold a JSON object", printable_line(name)));
  }
  return file;
}

}  // namespace kvasir::io
