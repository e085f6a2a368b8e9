// Flags that say what form an answer has.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvasir/engine.h"
#include "kvasir/guide.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// One of them at most.
struct GuideOptions {
  std::string schema_file;
  std::string regex;
  std::string grammar_file;
  std::vector<std::string> choices;  // lists with commas
};

void add_guide_options(CLI::App& verb, GuideOptions& options);

bool has_guide(const GuideOptions& options);

// Nothing: any form will do. Errors: kBadFile for a file that cannot be read; kUsage and kUnmet for a guide that no
// vocabulary makes right. The latter name the flag.
Result<std::optional<Guide>> make_guide(const GuideOptions& options);

// Lets a model that thinks do so before its guided answer, and shows the marks around. The prompt is a chat's. Requires:
// the request has a guide, the engine a tokenizer and a template.
void allow_reasoning(const Engine& engine, Request& request);

}  // namespace kvasir::cli
