#include "text/pretokenizer.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::text::pretokenizer_test {
namespace {

std::vector<std::string> split(const Pretokenizer& pretokenizer, std::string_view text) {
  std::vector<std::string> words;
  pretokenizer.for_each_word(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

struct Family {
  std::string cases;  // tests/cases/tokenizer/splits_<cases>.jsonl
  std::string name;   // tokenizer.ggml.pre
};

class PretokenizerFamilies : public testing::TestWithParam<Family> {};

TEST_P(PretokenizerFamilies, SplitLikeTheirRegularExpressions) {
  const Pretokenizer pretokenizer = Pretokenizer::create(GetParam().name).value();
  const std::string path = KVASIR_SOURCE_DIR "/tests/cases/tokenizer/splits_" + GetParam().cases + ".jsonl";
  simdjson::dom::parser parser;
  std::size_t num_cases = 0;
  for (const simdjson::dom::element line : parser.load_many(path)) {
    const std::string_view text = line["text"].get_string().value();
    std::vector<std::string> expected;
    for (const auto word : line["words"].get_array()) expected.emplace_back(word.get_string().value());
    EXPECT_EQ(split(pretokenizer, text), expected) << "text: '" << text << "'";
    ++num_cases;
  }
  EXPECT_GT(num_cases, 150u);
}

// A backtracking engine needs quadratic time or overflows its stack on some of these.
TEST_P(PretokenizerFamilies, LoseNothingOfALongRunOfOneThing) {
  const Pretokenizer pretokenizer = Pretokenizer::create(GetParam().name).value();
  for (const std::string_view unit :
       {" ",  "\n",  "\t",  "a",  "7",  "'",       "!",  "\u0301", "\u3000", "中",  "a ",
        " a", " \n", "\n ", "1a", "'s", "a\u0301", "! ", "1²",     " 1",     "\r\n"}) {
    std::string text;
    while (text.size() < (1u << 18)) text += unit;
    std::size_t num_bytes = 0;
    pretokenizer.for_each_word(text, [&](std::string_view word) {
      ASSERT_EQ(word.data(), text.data() + num_bytes);
      ASSERT_FALSE(word.empty());
      num_bytes += word.size();
    });
    EXPECT_EQ(num_bytes, text.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pretokenizer, PretokenizerFamilies,
    testing::Values(Family{"gpt2", "gpt-2"}, Family{"smollm", "smollm"}, Family{"llama3", "llama-bpe"},
                    Family{"qwen2", "qwen2"}, Family{"default", "default"}, Family{"qwen35", "qwen35"},
                    Family{"tekken", "tekken"}, Family{"gpt4o", "gpt-4o"}, Family{"seed_coder", "seed-coder"},
                    Family{"ufakzeka", "ufakzeka"}, Family{"minicpm5", "minicpm5"},
                    Family{"laguna", "laguna"}, Family{"deepseek_llm", "deepseek-llm"},
                    Family{"deepseek_coder", "deepseek-coder"}, Family{"deepseek_v3", "deepseek-v3"},
                    Family{"falcon", "falcon"}, Family{"bloom", "bloom"}, Family{"viking", "viking"},
                    Family{"kimi_k2", "kimi-k2"}, Family{"spark2_5", "spark2_5"}, Family{"youtu", "youtu"},
                    Family{"tiny_aya", "tiny_aya"}, Family{"exaone_moe", "exaone-moe"},
                    Family{"jais2", "jais-2"}, Family{"superbpe", "superbpe"}, Family{"afmoe", "afmoe"},
                    Family{"chameleon", "chameleon"}),
    [](const auto& instance) { return instance.param.cases; });

TEST(Pretokenizer, KnowsTheAliasesOfItsFamilies) {
  const std::string_view text = "I'LL  pay 1234 (now)";
  EXPECT_EQ(split(Pretokenizer::create("starcoder").value(), text),
            split(Pretokenizer::create("smollm").value(), text));
  EXPECT_EQ(split(Pretokenizer::create("dbrx").value(), text),
            split(Pretokenizer::create("llama3").value(), text));
  EXPECT_EQ(split(Pretokenizer::create("megrez").value(), text),
            split(Pretokenizer::create("qwen2").value(), text));
  EXPECT_EQ(split(Pretokenizer::create("").value(), text),
            split(Pretokenizer::create("default").value(), text));
}

TEST(Pretokenizer, TekkenCutsWordsWhereTheirCaseTurns) {
  const Pretokenizer tekken = Pretokenizer::create("tekken").value();
  using Words = std::vector<std::string>;
  EXPECT_EQ(split(tekken, "camelCase HTTPServer"), (Words{"camel", "Case", " HTTPServer"}));
  EXPECT_EQ(split(tekken, "don't 2024!"), (Words{"don", "'t", " ", "2", "0", "2", "4", "!"}));
  EXPECT_EQ(split(tekken, "a/b//c\n/d"), (Words{"a", "/b", "//", "c", "\n", "/d"}));
  EXPECT_TRUE(tekken.keeps_known_words());
  EXPECT_TRUE(tekken.adds_bos());
}

TEST(Pretokenizer, OnlyLlama3FilesKeepKnownWordsAndAddBos) {
  EXPECT_TRUE(Pretokenizer::create("llama-bpe").value().keeps_known_words());
  EXPECT_TRUE(Pretokenizer::create("llama-bpe").value().adds_bos());
  EXPECT_FALSE(Pretokenizer::create("dbrx").value().keeps_known_words());
  EXPECT_FALSE(Pretokenizer::create("qwen2").value().adds_bos());
}

TEST(Pretokenizer, NamesTheOneItDoesNotKnow) {
  const auto unknown = Pretokenizer::create("nobody-knows");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kBadFile);
  EXPECT_NE(unknown.error().message.find("'nobody-knows'"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::text::pretokenizer_test
