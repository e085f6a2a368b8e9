// Scores of pairs of texts: which way a model has, the engine's request for a pair, and the score in its output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "text/tokenizer.h"

namespace kvasir {

enum class PairScoringKind : std::uint8_t {
  kNone,        // it does not
  kClassifier,  // its classifier reads both texts
  kTokens,      // how likely it answers "yes" rather than "no"
  kEmbeddings,  // the cosine of their embeddings
};

// How a model scores how well a document answers a query.
struct PairScoring {
  PairScoringKind kind = PairScoringKind::kNone;
  // Around a pair, with {instruction}, {query} and {document}. Empty: the tokenizer's own form of a pair.
  std::string prompt = {};
  TokenId yes = kNoToken, no = kNoToken;  // of kTokens
  std::string refusal = {};               // with kNone: why
};

// The task that Qwen's rerankers are told where nobody says another.
inline constexpr std::string_view kDefaultInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

// A decoder without a classifier is known as a reranker by its name. `tokenizer` may be null.
PairScoring pair_scoring_of(const ModelInfo& info, const text::Tokenizer* tokenizer);

struct TextPair {
  std::string_view query = {}, document = {};
  std::string_view instruction = {};      // empty: kDefaultInstruction; of prompts that have a place for it
  std::int32_t max_document_tokens = 0;   // the document is cut behind so many; 0: it is not
  std::int32_t max_prompt_tokens = 0;     // it is also cut so that the prompt has so many; 0: it is not
};

// The request whose output has the pair's score. Requires: kClassifier or kTokens.
Request pair_request(const PairScoring& scoring, const text::Tokenizer& tokenizer, const TextPair& pair);

// From the request's only output: the classifier's logit, or by how much "yes", its first label, is ahead of "no".
// `embedding` is RequestOutput::embedding, `logprobs` those of the first token.
double pair_logit(const PairScoring& scoring, std::span<const float> embedding,
                  std::span<const PositionLogprobs> logprobs);
// A logit as a score, 0 to 1.
double score_of_logit(double logit);
// The cosine of two embeddings of length 1. Requires: equal sizes.
double cosine_of(std::span<const float> a, std::span<const float> b);

}  // namespace kvasir
