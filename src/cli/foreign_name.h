// What people type who come from llama.cpp, Ollama or vLLM, and what it is called here.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::cli {

// A sentence that names our flag or verb, or nothing. Flags come with their hyphens.
std::string foreign_flag_hint(std::string_view flag);
std::string foreign_verb_hint(std::string_view verb);

}  // namespace kvasir::cli
