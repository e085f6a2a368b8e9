#include "text/vocab.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::vocab_test {
namespace {

std::string error_of(VocabData data) {
  const Result<Vocab> vocab = Vocab::create(std::move(data));
  if (vocab) return "no error";
  EXPECT_EQ(vocab.error().kind, ErrorKind::kBadFile);
  return vocab.error().message;
}

VocabData named(const std::vector<std::string>& texts) {
  VocabData data = {.model = "gpt2"};
  for (const std::string& text : texts) add_token(data, text);
  return data;
}

std::vector<TokenId> ends_of(VocabData data) {
  return Vocab::create(std::move(data)).value().end_of_generation();
}

TEST(Vocab, FindsTokensByText) {
  const Vocab vocab = Vocab::create(named({"a", "b", "ab"})).value();
  EXPECT_EQ(vocab.find("ab"), 2);
  EXPECT_EQ(vocab.find("ba"), kNoToken);
  EXPECT_EQ(vocab.text(1), "b");
  EXPECT_EQ(vocab.num_tokens(), 3);
  EXPECT_FALSE(vocab.contains(3));
  EXPECT_FALSE(vocab.contains(kNoToken));
}

TEST(Vocab, RefusesInconsistentData) {
  EXPECT_EQ(error_of({.model = "rwkv"}),
            "tokenizer.ggml.model 'rwkv' is not supported (gpt2, llama, bert, t5 and gemma4 are)");
  EXPECT_NE(error_of({.model = "gpt2"}).find("tokens has 0 entries"), std::string::npos);
  EXPECT_EQ(error_of(named({"a", "b", "a"})), "tokenizer.ggml.tokens[2] repeats the text of token 0: 'a'");
  VocabData data = named({"a", "b"});
  data.scores = {1.0f};
  EXPECT_EQ(error_of(data), "tokenizer.ggml.scores has 1 entries for 2 tokens");
  data.scores = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(error_of(data), "tokenizer.ggml.scores[1] is not a number");
  data = named({"a", "b"});
  data.eos = 2;
  EXPECT_EQ(error_of(data), "tokenizer.ggml.eos_token_id is 2, outside the vocabulary of 2 tokens");
  data.eos = -7;
  EXPECT_EQ(error_of(data), "tokenizer.ggml.eos_token_id is -7, outside the vocabulary of 2 tokens");
}

TEST(Vocab, NamesEmptyTokensSoThatTextsStayUnique) {
  const Vocab vocab = Vocab::create(named({"", "a", ""})).value();
  EXPECT_EQ(vocab.text(0), "[EMPTY_0]");
  EXPECT_EQ(vocab.text(2), "[EMPTY_2]");
}

TEST(Vocab, TakesTypesItDoesNotKnowForUndefined) {
  VocabData data = named({"a", "b"});
  data.token_types = {99, -1};
  const Vocab vocab = Vocab::create(std::move(data)).value();
  EXPECT_EQ(vocab.type(0), TokenType::kUndefined);
  EXPECT_EQ(vocab.type(1), TokenType::kUndefined);
}

TEST(Vocab, SentencePieceFilesWithoutIdsMeanLlamas) {
  VocabData data = named({"<unk>", "<s>", "</s>"});
  data.model = "llama";
  const Vocab vocab = Vocab::create(std::move(data)).value();
  EXPECT_EQ(vocab.unknown(), 0);
  EXPECT_EQ(vocab.bos(), 1);
  EXPECT_EQ(vocab.eos(), 2);
  EXPECT_EQ(Vocab::create(named({"a", "b", "c"})).value().eos(), kNoToken);
}

TEST(EndOfGeneration, IsWhatTheFileNamesAndWhatIsWellKnown) {
  VocabData data = named({"a", "<|im_end|>", "b", "<|endoftext|>", "c", "d"});
  data.eos = 0;
  data.eot = 2;
  data.extra_end_of_generation = {4, 0};
  const Vocab vocab = Vocab::create(std::move(data)).value();
  EXPECT_EQ(vocab.end_of_generation(), (std::vector<TokenId>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(vocab.is_end_of_generation(3));
  EXPECT_FALSE(vocab.is_end_of_generation(5));
  EXPECT_FALSE(vocab.is_end_of_generation(kNoToken));
  EXPECT_EQ(vocab.type(1), TokenType::kControl);  // though the file says normal
  EXPECT_EQ(vocab.type(0), TokenType::kNormal);
}

TEST(EndOfGeneration, IncludesFillInTheMiddleSeparators) {
  EXPECT_EQ(ends_of(named({"a", "<reponame>", "<fim_prefix>", "<|file_sep|>", "<fim_pad>"})),
            (std::vector<TokenId>{1, 3, 4}));
  VocabData data = named({"a", "<reponame>"});
  data.fim_repository = 0;  // the file's word counts more than a text
  EXPECT_EQ(ends_of(std::move(data)), (std::vector<TokenId>{0}));
}

TEST(EndOfGeneration, HarmonyMessagesEndBeforeTheAnswerDoes) {
  EXPECT_EQ(ends_of(named({"<|end|>"})), (std::vector<TokenId>{0}));
  const Vocab vocab = Vocab::create(named({"<|end|>", "<|return|>", "<|call|>", "<|channel|>"})).value();
  EXPECT_EQ(vocab.end_of_generation(), (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(vocab.type(0), TokenType::kUserDefined);
  EXPECT_EQ(vocab.type(3), TokenType::kUserDefined);
}

TEST(EndOfGeneration, StrikethroughIsMarkupBesideToolResponses) {
  EXPECT_EQ(ends_of(named({"</s>"})), (std::vector<TokenId>{0}));
  EXPECT_EQ(ends_of(named({"</s>", "<|tool_response>"})), (std::vector<TokenId>{1}));
  VocabData html = named({"<eos>", "</s>", "</b>"});
  html.eos = 0;
  constexpr auto kNormal = static_cast<std::int32_t>(TokenType::kNormal);
  constexpr auto kUserDefined = static_cast<std::int32_t>(TokenType::kUserDefined);
  html.token_types = {kNormal, kUserDefined, kNormal};
  EXPECT_EQ(ends_of(html), (std::vector<TokenId>{0, 1}));
  html.token_types[2] = kUserDefined;
  EXPECT_EQ(ends_of(html), (std::vector<TokenId>{0})) << "a tag of HTML, as in Gemma";
}

}  // namespace
}  // namespace kvasir::text::vocab_test
