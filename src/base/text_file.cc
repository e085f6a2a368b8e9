#include "base/text_file.h"

#include <cstdio>
#include <memory>

namespace kvasir {

std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (const std::size_t num_read = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, num_read);
    if (text.size() > max_bytes) return std::nullopt;
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

}  // namespace kvasir
