#include "engine/vocab_metadata.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

namespace kvasir::vocab_metadata_test {
namespace {

using Values = std::map<std::string, io::MetadataValue, std::less<>>;

// Three tokens, and what a test adds.
io::Metadata metadata_with(Values more) {
  Values values = {{"tokenizer.ggml.model", std::string("gpt2")},
                   {"tokenizer.ggml.pre", std::string("gpt-2")},
                   {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"}}};
  for (auto& [key, value] : more) values.insert_or_assign(key, std::move(value));
  return io::Metadata(std::move(values));
}

text::VocabData vocab_with(Values more) { return read_vocab(metadata_with(std::move(more))).value().value(); }

TEST(VocabMetadata, MinusOneIsNoTokenInWhateverType) {
  for (const io::MetadataValue& none :
       {io::MetadataValue(std::int64_t{-1}), io::MetadataValue(std::int64_t{0xFFFFFFFF}),
        io::MetadataValue(std::numeric_limits<std::uint64_t>::max()), io::MetadataValue(-1.0)}) {
    for (const char* name :
         {"padding", "bos", "eos", "eot", "eom", "unknown", "fim_pad", "fim_sep", "fim_rep"}) {
      const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
      const auto vocab = read_vocab(metadata_with({{key, none}}));
      ASSERT_TRUE(vocab) << key << ": " << vocab.error().message;
      EXPECT_EQ((*vocab)->padding, kNoToken);
      EXPECT_EQ((*vocab)->eos, kNoToken);
      EXPECT_TRUE(vocab_notices(metadata_with({{key, none}})).empty());
    }
  }
}

TEST(VocabMetadata, AnIdOutsideTheVocabularyIsLeftOutAndNamed) {
  const Values values = {{"tokenizer.ggml.padding_token_id", std::int64_t{3}},
                         {"tokenizer.ggml.eos_token_id", std::int64_t{2}}};
  EXPECT_EQ(vocab_with(values).padding, kNoToken);
  EXPECT_EQ(vocab_with(values).eos, 2);
  EXPECT_EQ(vocab_notices(metadata_with(values)),
            std::vector<std::string>{
                "tokenizer.ggml.padding_token_id is 3, outside the vocabulary of 3 tokens: ignored"});
}

TEST(VocabMetadata, ReadsIdsAndFlagsInOtherTypes) {
  const text::VocabData vocab = vocab_with(
      {{"tokenizer.ggml.bos_token_id", 1.0},
       {"tokenizer.ggml.eos_token_id", std::vector<std::int64_t>{2, 0}},
       {"tokenizer.ggml.add_bos_token", std::int64_t{1}},
       {"tokenizer.ggml.add_eos_token", std::int64_t{0}},
       {"tokenizer.ggml.scores", std::vector<std::int64_t>{0, -1, -2}},
       {"tokenizer.ggml.token_type", std::vector<double>{1.0, 1.0, 3.0}}});
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.extra_end_of_generation, std::vector<TokenId>{0});
  EXPECT_EQ(vocab.add_bos, true);
  EXPECT_EQ(vocab.add_eos, false);
  EXPECT_EQ(vocab.scores, (std::vector<float>{0.0f, -1.0f, -2.0f}));
  EXPECT_EQ(vocab.token_types, (std::vector<std::int32_t>{1, 1, 3}));
}

TEST(VocabMetadata, AMissingPreTokenizerIsNamedWhereThereShouldBeOne) {
  Values values = {{"tokenizer.ggml.pre", std::string()}};
  EXPECT_EQ(
      vocab_notices(metadata_with(values)),
      std::vector<std::string>{"tokenizer.ggml.pre is missing: the pre-tokenizer is a guess (default), and "
                               "tokens may differ from the model's own"});
  values["tokenizer.ggml.model"] = std::string("llama");  // SentencePiece has none
  EXPECT_TRUE(vocab_notices(metadata_with(values)).empty());
}

}  // namespace
}  // namespace kvasir::vocab_metadata_test
