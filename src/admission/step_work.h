// The work that a step's time depends on.
#pragma once

#include <cstdint>

namespace kvasir::admission {

struct StepWork {
  std::int32_t num_decoding = 0;            // sequences that run one committed token, and give its logits
  std::int32_t num_chunk_tokens = 0;        // tokens of prompts, all chunks together
  std::int64_t num_attended_tokens = 0;     // keys that all rows read, summed
  std::int32_t num_draft_tokens = 0;        // rows of guesses, each with its logits
  std::int32_t num_prompt_logits_rows = 0;  // rows of prompts that give logits, but for each chunk's last

  void add_decoding(std::int32_t num_computed) {
    ++num_decoding;
    num_attended_tokens += num_computed + 1;
  }
  // `first_position`: of the first guess.
  void add_draft(std::int32_t first_position, std::int32_t num_tokens) {
    num_draft_tokens += num_tokens;
    add_keys(first_position, num_tokens);
  }
  void add_chunk(std::int32_t first_position, std::int32_t num_tokens) {
    num_chunk_tokens += num_tokens;
    add_keys(first_position, num_tokens);
  }
  // As many consecutive rows, each of which reads all positions up to its own.
  void add_keys(std::int32_t first_position, std::int32_t num_tokens) {
    const std::int64_t n = num_tokens;
    num_attended_tokens += n * first_position + n * (n + 1) / 2;
  }
};

}  // namespace kvasir::admission
