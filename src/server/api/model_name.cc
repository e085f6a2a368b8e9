#include "server/api/model_name.h"

#include <algorithm>

#include "base/ollama_name.h"

namespace kvasir::server::api {

bool is_name_of(std::string_view served, std::string_view asked) {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto is_same = [&](char a, char b) { return lower(a) == lower(b); };
  if (without_ollama_library(served) == served) asked = without_ollama_library(asked);
  constexpr std::string_view kLatest = ":latest";
  if (asked.ends_with(kLatest) && !served.ends_with(kLatest)) asked.remove_suffix(kLatest.size());
  if (asked.empty() || asked.size() > served.size()) return false;
  const bool is_whole_name = asked.size() == served.size() || served[asked.size()] == ':';
  return is_whole_name && std::ranges::equal(asked, served.substr(0, asked.size()), is_same);
}

}  // namespace kvasir::server::api
