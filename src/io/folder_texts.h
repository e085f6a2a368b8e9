// A folder's small files: tokenizer, chat template, advice on sampling.
#pragma once

#include <string>

#include "io/hf_metadata.h"
#include "kvasir/result.h"

namespace kvasir::io {

// Whole files; empty: there is no such file.
struct FolderTexts {
  std::string config;             // config.json
  std::string generation_config;  // generation_config.json
  std::string tokenizer;          // tokenizer.json
  std::string tokenizer_config;   // tokenizer_config.json
};

// Error: kBadFile naming a file that is there and cannot be read.
Result<FolderTexts> read_folder_texts(const std::string& folder);

// Adds the folder's name, the chat template (of chat_template.jinja, else tokenizer_config.json, else chat_template.json) and the
// sampling of generation_config.json under GGUF's keys, the tokenizer's number of ids as tokenizer.num_tokens and its
// model's type as tokenizer.kind. Errors: kBadFile naming a file that is no JSON object.
Status map_texts(const std::string& folder, const FolderTexts& texts, MetadataValues& values);

}  // namespace kvasir::io
