// Flags and verbs of llama.cpp, Ollama and vLLM, and their names here.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::cli {

// A sentence that names our flag or verb, or nothing. Flags come with their hyphens.
std::string foreign_flag_hint(std::string_view flag);
std::string foreign_verb_hint(std::string_view verb);

}  // namespace kvasir::cli
