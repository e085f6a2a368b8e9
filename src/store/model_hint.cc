#include "store/model_hint.h"

#include <algorithm>

#include "store/hub/hub_name.h"

namespace kvasir::store {
namespace {

bool remove_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The part before the slash, which goes with it.
std::string_view take_part(std::string_view& path) {
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(part.size() + 1, path.size()));
  return part;
}

// OWNER/NAME, perhaps with :FILE, or as the hub's pages go on: /blob/REVISION/PATH.
std::string hub_name_of(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  HubName name;
  name.owner = take_part(path);
  const std::string_view word = take_part(path), place = take_part(path);
  const std::size_t colon = std::min(word.find(':'), word.size());
  name.name = word.substr(0, colon);
  name.file = word.substr(std::min(colon + 1, word.size()));
  if (place == "blob" || place == "resolve" || place == "tree") {
    name.revision = take_part(path);
    if (name.revision == "main") name.revision.clear();
    if (place != "tree") name.file = path;
  } else if (!place.empty()) {
    return {};
  }
  return HubName::parse(name.text()) ? name.text() : std::string();
}

}  // namespace

std::string name_of_foreign_model(std::string_view text) {
  std::string_view rest = text;
  if (remove_prefix(rest, "hf://")) return hub_name_of(rest);
  remove_prefix(rest, "hf:");
  if (!remove_prefix(rest, "https://")) remove_prefix(rest, "http://");
  for (const std::string_view host : {"huggingface.co/", "www.huggingface.co/", "hf.co/", "huggingface:"}) {
    if (remove_prefix(rest, host)) return hub_name_of(rest);
  }
  for (const std::string_view host : {"ollama.com/library/", "registry.ollama.ai/library/", "ollama.com/", "ollama://",
                                      "ollama/"}) {
    if (remove_prefix(rest, host)) return rest.empty() ? std::string() : "ollama:" + std::string(rest);
  }
  const bool is_two_words = rest == text && std::ranges::count(text, '/') == 1 && !text.ends_with(".gguf");
  return is_two_words ? hub_name_of(text) : std::string();
}

}  // namespace kvasir::store
