// Names of models as Ollama's programs write them.
#pragma once

#include <string_view>

namespace kvasir {

// The name without the host and the folder of Ollama's own library. Its programs may write both before it, or the folder
// alone. A name that has neither is as it was.
constexpr std::string_view without_ollama_library(std::string_view name) {
  constexpr std::string_view kHost = "registry.ollama.ai/", kLibrary = "library/";
  const bool has_host = name.starts_with(kHost) && name.substr(kHost.size()).starts_with(kLibrary);
  if (has_host) name.remove_prefix(kHost.size());
  if (name.starts_with(kLibrary)) name.remove_prefix(kLibrary.size());
  return name;
}

}  // namespace kvasir
