// Any bytes as a draft file: an error of one line, or a table that guesses tokens of its vocabulary.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "io/draft_file.h"
#include "spec/ngram_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto copy = kvasir::AlignedBuffer::allocate(static_cast<std::int64_t>(size));
  CHECK(copy);
  if (size > 0) std::memcpy(copy->data(), data, size);
  const auto check_line = [](const kvasir::Error& error) {
    CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos);
  };
  const auto file = kvasir::io::parse_draft_file({copy->data(), size}, "fuzz.draft");
  if (!file) {
    check_line(file.error());
    return 0;
  }
  const auto table = kvasir::spec::NgramTable::of_words(file->order, file->words, file->vocab_size);
  if (!table) {
    check_line(table.error());
    return 0;
  }
  for (kvasir::TokenId token = 0; token < 64; ++token) {
    const std::array<kvasir::TokenId, 3> text = {token + 1, token / 2, token};
    const auto guess = table->next(text);
    CHECK(guess.token == kvasir::kNoToken || (guess.token >= 0 && guess.token < file->vocab_size));
    CHECK(guess.chance >= 0.0 && guess.chance <= 1.0);
  }
  for (const auto& prompt : file->held_out_prompts) {
    for (const kvasir::TokenId id : prompt) CHECK(id >= 0 && id < file->vocab_size);
  }
  return 0;
}
