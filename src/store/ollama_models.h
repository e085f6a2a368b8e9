// Models that Ollama has pulled on this machine, read where they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::store {

// The part of an Ollama manifest that names the weights.
struct OllamaLayer {
  std::string digest;  // SHA-256, 64 hex digits
  std::int64_t size_bytes = 0;
};

// Error (kBadFile) of one line that begins with `source`: no such manifest, no weights or several, an
// adapter.
Result<OllamaLayer> parse_ollama_manifest(std::string_view json, std::string_view source);

// Whether the text begins with "ollama:".
inline bool is_ollama_name(std::string_view text) { return text.starts_with("ollama:"); }

// $OLLAMA_MODELS, else ~/.ollama/models, and the folder of Ollama's own service.
std::vector<std::filesystem::path> ollama_folders();

// The GGUF file of ollama:[HOST/][NAMESPACE/]NAME[:TAG], the first found in `folders`. Nothing is copied.
// Template and parameters of Ollama's Modelfile are left alone: the file has its own.
// Errors: kUsage (no such name), kNotFound (with the tags that are here), kBadFile (a broken manifest or
// blob).
Result<std::filesystem::path> find_ollama_model(std::string_view name,
                                                const std::vector<std::filesystem::path>& folders);

}  // namespace kvasir::store
