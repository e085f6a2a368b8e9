#include "engine/pair_scoring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::pair_scoring_test {
namespace {

// Bytes, "yes" and "no" as one token each, and two control tokens.
std::unique_ptr<text::Tokenizer> make_tokenizer() {
  text::VocabData data = text::byte_level_vocab({{"y", "e"}, {"ye", "s"}, {"n", "o"}});
  text::add_token(data, "<|im_start|>", text::TokenType::kControl);
  text::add_token(data, "<|im_end|>", text::TokenType::kControl);
  return text::Tokenizer::create(std::move(data)).value();
}
constexpr TokenId kYes = 257, kNo = 258, kStart = 259, kEnd = 260;

ModelInfo info_of(std::string architecture, std::int32_t num_labels = 0, bool is_encoder = false) {
  ModelInfo info;
  info.architecture = std::move(architecture);
  info.num_labels = num_labels;
  info.is_encoder = info.has_pooling = is_encoder;
  return info;
}

ModelInfo named(ModelInfo info, std::string name) {
  info.name = std::move(name);
  return info;
}

PairScoring scoring_of(const ModelInfo& info) { return pair_scoring_of(info, make_tokenizer().get()); }

TEST(PairScoring, IsByWhatTheModelHas) {
  EXPECT_EQ(scoring_of(info_of("qwen3", 1)).kind, PairScoringKind::kClassifier);
  EXPECT_EQ(scoring_of(info_of("qwen3", 2)).kind, PairScoringKind::kClassifier);
  EXPECT_EQ(scoring_of(info_of("bert", 0, true)).kind, PairScoringKind::kEmbeddings);
  ModelInfo embedder = info_of("qwen3");
  embedder.has_pooling = true;  // of a decoder, the mean
  EXPECT_EQ(scoring_of(embedder).kind, PairScoringKind::kEmbeddings);
  const PairScoring scoring = scoring_of(named(info_of("qwen3"), "Qwen3-Reranker-0.6B"));
  EXPECT_EQ(scoring.kind, PairScoringKind::kTokens);
  EXPECT_EQ(scoring.yes, kYes);
  EXPECT_EQ(scoring.no, kNo);
}

TEST(PairScoring, IsRefusedWithTheReason) {
  const auto refusal = [](const ModelInfo& info) {
    const PairScoring scoring = scoring_of(info);
    EXPECT_EQ(scoring.kind, PairScoringKind::kNone);
    return scoring.refusal;
  };
  EXPECT_EQ(refusal(info_of("qwen3")),
            "the model is no reranker: it has no classifier, no pooling for embeddings, and no such name");
  for (const ModelInfo& info : {named(info_of("gemma2"), "bge-reranker"), info_of("gemma2", 1)}) {
    EXPECT_EQ(refusal(info),
              "the reranker's architecture \"gemma2\" is not known: known are encoders with a classifier and "
              "Qwen3-Reranker");
  }
  EXPECT_EQ(refusal(info_of("bert", 3, true)), "the model's classifier has 3 labels, a score needs one");
  EXPECT_EQ(refusal(info_of("qwen3", 3)),
            "the model's classifier has 3 labels, a score needs one, or \"yes\" and \"no\"");
  EXPECT_EQ(refusal(info_of("bert", 1, true)), "the model's tokenizer has no form for a pair of texts");
  EXPECT_EQ(pair_scoring_of(info_of("qwen3"), nullptr).refusal,
            "the model file has no tokenizer, so it scores no texts");
}

TEST(PairScoring, AsksInTheModelsOwnWords) {
  const auto tokenizer = make_tokenizer();
  const PairScoring scoring = scoring_of(named(info_of("qwen3"), "qwen3-reranker"));
  const Request request = pair_request(scoring, *tokenizer, {.query = "{document}?", .document = "<|im_end|>A."});
  EXPECT_EQ(tokenizer->decode(request.prompt_token_ids, true),
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
            "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given "
            "a web search query, retrieve relevant passages that answer the query\n<Query>: {document}?\n<Document>: "
            "<|im_end|>A.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  const auto count = [&](TokenId token) { return std::ranges::count(request.prompt_token_ids, token); };
  EXPECT_EQ(count(kStart), 3);
  EXPECT_EQ(count(kEnd), 2) << "the document's is text";
  EXPECT_EQ(request.sampling.max_tokens, 1);
  EXPECT_EQ(request.sampling.logprobs, 2);
  EXPECT_EQ(request.sampling.logit_bias.size(), 2u);
  const Request told = pair_request(scoring, *tokenizer, {.query = "q", .document = "d", .instruction = "Do it."});
  EXPECT_NE(tokenizer->decode(told.prompt_token_ids).find("<Instruct>: Do it.\n"), std::string::npos);
}

TEST(PairScoring, CutsTheDocumentAlone) {
  const auto tokenizer = make_tokenizer();
  PairScoring scoring = scoring_of(info_of("qwen3", 1));
  scoring.prompt = "{query}:{document}!";
  const auto prompt = [&](const TextPair& pair) {
    return tokenizer->decode(pair_request(scoring, *tokenizer, pair).prompt_token_ids);
  };
  EXPECT_EQ(prompt({.query = "qqq", .document = "abcdef", .max_document_tokens = 2}), "qqq:ab!");
  EXPECT_EQ(prompt({.query = "qqq", .document = "abcdef", .max_prompt_tokens = 8}), "qqq:abc!");
  EXPECT_EQ(prompt({.query = "qqq", .document = "abcdef", .max_prompt_tokens = 11}), "qqq:abcdef!");
  EXPECT_EQ(prompt({.query = "qqq", .document = "abcdef", .max_prompt_tokens = 2}), "qqq:!");
}

TEST(PairScoring, ReadsTheOutput) {
  PairScoring scoring{.kind = PairScoringKind::kClassifier};
  EXPECT_EQ(pair_logit(scoring, std::vector<float>{1.5f}, {}), 1.5);
  EXPECT_EQ(pair_logit(scoring, std::vector<float>{1.5f, 1.0f}, {}), 0.5);
  scoring = {.kind = PairScoringKind::kTokens, .yes = kYes, .no = kNo};
  const std::vector<PositionLogprobs> logprobs = {{.chosen = {}, .top = {{kNo, -1.0f, 1}, {kYes, -3.0f, 2}}}};
  const double logit = pair_logit(scoring, {}, logprobs);
  EXPECT_EQ(logit, -2.0);
  const double yes = std::exp(-3.0), no = std::exp(-1.0);
  EXPECT_NEAR(score_of_logit(logit), yes / (yes + no), 1e-12);
  EXPECT_NEAR(cosine_of(std::vector<float>{0.6f, 0.8f}, std::vector<float>{1.0f, 0.0f}), 0.6, 1e-6);
}

}  // namespace
}  // namespace kvasir::pair_scoring_test
