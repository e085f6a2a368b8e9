// Manual pages, made from the parser itself.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kvasir::cli {

// The program's page, kvasir(1), in man(7): its verbs, the flags that work after each, where settings come
// from, exit codes.
std::string program_man_page(const CLI::App& app);

// A verb's page, kvasir-VERB(1), with the verbs below it.
std::string verb_man_page(const CLI::App& app, const CLI::App& verb);

}  // namespace kvasir::cli
