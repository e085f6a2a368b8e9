// Importance files: the mean square of each input of each matrix, over some text, as llama.cpp's imatrix tool writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

struct Imatrix {
  // By tensor: [experts, inputs], one matrix where there are no experts. Experts that no token met have zeros.
  std::map<std::string, std::vector<float>, std::less<>> mean_squares;
  std::map<std::string, std::vector<float>, std::less<>> counts;  // tokens, by expert
  std::vector<std::string> datasets;
  std::uint32_t num_chunks = 0, chunk_tokens = 0;
};

// Either form: a GGUF file of the type "imatrix", or the older one. `bytes` are aligned to 8. Error (kBadFile): what it is
// not, numbers that are none.
Result<Imatrix> parse_imatrix(std::span<const std::byte> bytes, const std::string& path);
// Errors: those of parse_imatrix, kMachine.
Result<Imatrix> read_imatrix(const std::string& path);
// As a GGUF file. Errors: kMachine.
Status write_imatrix(const Imatrix& imatrix, const std::string& path);

}  // namespace kvasir::io
