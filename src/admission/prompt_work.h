// How much of prompts is to be computed.
#pragma once

#include <cstdint>

namespace kvasir::admission {

// A prompt's time depends on its tokens and on how many keys each of them reads.
struct PromptWork {
  std::int64_t num_tokens = 0;
  std::int64_t num_keys = 0;

  // `count` tokens of one prompt from `first_position` on.
  void add(std::int64_t first_position, std::int64_t count) {
    num_tokens += count;
    num_keys += count * first_position + count * (count + 1) / 2;
  }
  PromptWork& operator+=(const PromptWork& other) {
    num_tokens += other.num_tokens;
    num_keys += other.num_keys;
    return *this;
  }
  PromptWork without(const PromptWork& part) const {
    return {.num_tokens = num_tokens - part.num_tokens, .num_keys = num_keys - part.num_keys};
  }
  PromptWork part(double share) const {
    return {.num_tokens = static_cast<std::int64_t>(share * static_cast<double>(num_tokens)),
            .num_keys = static_cast<std::int64_t>(share * static_cast<double>(num_keys))};
  }
};

}  // namespace kvasir::admission
