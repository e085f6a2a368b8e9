// Small vocabularies for tests, built the way model files build theirs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace kvasir::text {

// The letter of each byte, found by trying all: the alphabet has code points of one or two UTF-8 bytes.
inline std::array<std::string, 256> byte_alphabet_letters() {
  std::array<std::string, 256> letters;
  for (int code_point = 0x21; code_point < 0x144; ++code_point) {
    std::string letter;
    if (code_point >= 0x80) letter.push_back(static_cast<char>(0xC0 | code_point >> 6));
    letter.push_back(static_cast<char>(code_point < 0x80 ? code_point : 0x80 | (code_point & 0x3F)));
    if (const auto bytes = decode_byte_alphabet(letter))
      letters[static_cast<unsigned char>(bytes->front())] = letter;
  }
  return letters;
}

// The bytes as byte-level vocabularies write them: " a" is "Ġa".
inline std::string in_byte_alphabet(std::string_view bytes) {
  static const std::array<std::string, 256> letters = byte_alphabet_letters();
  std::string text;
  for (const char byte : bytes) text += letters[static_cast<unsigned char>(byte)];
  return text;
}

inline void add_token(VocabData& data, std::string text, TokenType type = TokenType::kNormal,
                      float score = 0) {
  data.tokens.push_back(std::move(text));
  data.token_types.push_back(static_cast<std::int32_t>(type));
  data.scores.push_back(score);
}

// 256 bytes (token id = byte), then one token per merge in the order given.
inline VocabData byte_level_vocab(const std::vector<std::pair<std::string, std::string>>& merges,
                                  std::string pre = "gpt-2") {
  VocabData data = {.model = "gpt2", .pre = std::move(pre)};
  for (int byte = 0; byte < 256; ++byte)
    add_token(data, in_byte_alphabet(std::string(1, static_cast<char>(byte))));
  for (const auto& [left, right] : merges) {
    data.merges.push_back(in_byte_alphabet(left) + " " + in_byte_alphabet(right));
    add_token(data, in_byte_alphabet(left + right));
  }
  return data;
}

// <unk>, <s>, </s>, then 256 byte tokens (id = 3 + byte), then the pieces with their scores.
inline VocabData sentence_piece_vocab(const std::vector<std::pair<std::string, float>>& pieces) {
  VocabData data = {.model = "llama", .bos = 1, .eos = 2, .unknown = 0};
  add_token(data, "<unk>", TokenType::kUnknown);
  add_token(data, "<s>", TokenType::kControl);
  add_token(data, "</s>", TokenType::kControl);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    add_token(data, std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", TokenType::kByte);
  }
  for (const auto& [text, score] : pieces) add_token(data, text, TokenType::kNormal, score);
  return data;
}

}  // namespace kvasir::text
