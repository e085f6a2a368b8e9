// A file of guesses that were learned of a model beforehand; it lies beside the model's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::io {

// GGUF, without tensors.
struct DraftFile {
  std::string base_name;           // of the model
  std::string base_fingerprint;    // model_fingerprint() of the file that it was learned of
  std::uint64_t base_tokens = 0;   // of a hash over the texts of its tokens; 0: it has none
  std::int32_t vocab_size = 0;
  std::string trained_on;          // in words
  std::int32_t order = 0;          // as spec::NgramTable has it, and so are the words
  std::vector<std::uint32_t> words;
  std::vector<double> acceptance;  // the share of held-out tokens where the first guess is right, the first two, ...
  // Prompts whose greedy answers, of so many tokens at most, it was measured on.
  std::vector<std::vector<TokenId>> held_out_prompts;
  std::int32_t held_out_tokens = 0;

  std::int64_t table_bytes() const { return static_cast<std::int64_t>(words.size() * sizeof words[0]); }
};

// The path of the draft file of the model in this file.
std::string draft_file_path(const std::string& model_path);

// `bytes`: as parse_gguf() has them; `name`: for errors. kBadFile: they are none of write_draft_file's.
Result<DraftFile> parse_draft_file(std::span<const std::byte> bytes, const std::string& name);
// Errors: as parse_draft_file() and MmapFile::open().
Result<DraftFile> read_draft_file(const std::string& path);
// Replaces what was there. Error: kMachine.
Status write_draft_file(const std::string& path, const DraftFile& file);

}  // namespace kvasir::io
