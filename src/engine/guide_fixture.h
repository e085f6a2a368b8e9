// A compiler of guides over a vocabulary of single bytes and a few words, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/guide_compiler.h"
#include "engine/guided_choice.h"

namespace kvasir::guide_test {

inline constexpr TokenId kEnd = 2;        // control tokens
inline constexpr TokenId kThink = 3;
inline constexpr TokenId kThought = 4;
inline constexpr TokenId kFirstByte = 5;  // one token for each byte
inline constexpr TokenId kFirstWord = kFirstByte + 256;
inline const std::vector<std::string> kWords = {"yes", "no", "maybe", "12", "ab", "<|x|>"};

inline std::unique_ptr<text::Tokenizer> make_tokenizer() {
  text::VocabData data;
  data.model = "llama";
  const auto add = [&data](const std::string& token, text::TokenType type) {
    data.tokens.push_back(token);
    data.scores.push_back(0.0f);
    data.token_types.push_back(static_cast<std::int32_t>(type));
  };
  add("<unk>", text::TokenType::kUnknown);
  add("<s>", text::TokenType::kControl);
  add("<|end|>", text::TokenType::kControl);
  add("<think>", text::TokenType::kControl);
  add("</think>", text::TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string token = "<0x..>";
    token[3] = kHex[static_cast<std::size_t>(byte) / 16];
    token[4] = kHex[static_cast<std::size_t>(byte) % 16];
    add(token, text::TokenType::kByte);
  }
  for (const std::string& word : kWords) add(word, text::TokenType::kNormal);
  data.unknown = 0;
  data.bos = 1;
  data.eos = kEnd;
  return text::Tokenizer::create(std::move(data)).value();
}

inline TokenId byte_token(char byte) { return kFirstByte + static_cast<TokenId>(static_cast<unsigned char>(byte)); }

class GuideFixture : public ::testing::Test {
 protected:
  GuidedChoice choice_of(const Guide& guide, std::vector<TokenId> stops = {kEnd}) {
    auto compiled = compiler_.compile(guide, "");
    EXPECT_TRUE(compiled) << compiled.error().message;
    return choice_of(*compiled, stops);
  }
  GuidedChoice choice_of(CompiledGuide guide, std::vector<TokenId> stops = {kEnd}) {
    return {std::move(guide), "guide", stops, [this](const CompiledGuide& used) { return compiler_.renewed(used); }};
  }
  static bool allows(GuidedChoice& choice, TokenId token) { return holds(choice.allowed(), token); }
  static bool holds(const sampling::AllowedTokens& allowed, TokenId token) {
    const auto words = allowed.words();
    return (words[static_cast<std::size_t>(token) / 64] >> (static_cast<std::size_t>(token) % 64) & 1) != 0;
  }
  void push(GuidedChoice& choice, std::string_view text) const {
    for (const char byte : text) choice.push(byte_token(byte), 1);
  }
  Error error_of(const Guide& guide) {
    auto compiled = compiler_.compile(guide, "");
    EXPECT_FALSE(compiled);
    return compiled ? Error{} : compiled.error();
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ = make_tokenizer();
  GuideCompiler compiler_{tokenizer_.get(), std::int64_t{64} << 20};
};

}  // namespace kvasir::guide_test
