#include "engine/pair_scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "text/prompt_places.h"

namespace kvasir {
namespace {

constexpr std::string_view kInstructionPlace = "{instruction}", kQueryPlace = "{query}",
                           kDocumentPlace = "{document}";

// Source: the model card of Qwen3-Reranker-0.6B.
constexpr std::string_view kQwenPrompt =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n";

// Added to the logits of both answers, so that they are the two most likely tokens; their difference stays.
constexpr float kAnswerBias = 100.0f;

PairScoring refused(std::string why) { return {.refusal = std::move(why)}; }

bool is_named_reranker(const ModelInfo& info) {
  std::string name = info.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.contains("rerank");
}

bool is_qwen(const ModelInfo& info) { return info.architecture.starts_with("qwen3"); }

PairScoring unknown_prompt(const ModelInfo& info) {
  return refused(fmt::format("the reranker's architecture \"{}\" is not known: known are encoders with a classifier and "
                             "Qwen3-Reranker",
                             printable(info.architecture)));
}

// One label is the score's logit. Two of a decoder are "yes" and "no", in the order that converters write.
PairScoring classifier_scoring(const ModelInfo& info, const text::Tokenizer& tokenizer) {
  if (info.num_labels > (info.is_encoder ? 1 : 2)) {
    return refused(fmt::format("the model's classifier has {} labels, a score needs {}", info.num_labels,
                               info.is_encoder ? "one" : "one, or \"yes\" and \"no\""));
  }
  if (!info.is_encoder) {
    if (!is_qwen(info)) return unknown_prompt(info);
    return {.kind = PairScoringKind::kClassifier, .prompt = std::string(kQwenPrompt)};
  }
  if (!tokenizer.encode_pair("", "")) return refused("the model's tokenizer has no form for a pair of texts");
  return {.kind = PairScoringKind::kClassifier};
}

std::optional<TokenId> token_of(const text::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = false});
  return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
}

// The first so many tokens of a text.
std::string cut_text(const text::Tokenizer& tokenizer, std::string_view text, std::int64_t num_tokens) {
  std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = false});
  if (std::ssize(ids) <= num_tokens) return std::string(text);
  ids.resize(static_cast<std::size_t>(std::max<std::int64_t>(num_tokens, 0)));
  return tokenizer.decode(ids);
}

std::vector<TokenId> encode_prompt(std::string_view prompt, const text::Tokenizer& tokenizer, const TextPair& pair) {
  const std::array<text::PromptPlace, 3> places = {{
      {kInstructionPlace, pair.instruction.empty() ? kDefaultInstruction : pair.instruction},
      {kQueryPlace, pair.query},
      {kDocumentPlace, pair.document},
  }};
  return text::encode_with_places(prompt, places, tokenizer);
}

void encode_pair(const PairScoring& scoring, const text::Tokenizer& tokenizer, const TextPair& pair,
                 Request& request) {
  if (!scoring.prompt.empty()) {
    request.prompt_token_ids = encode_prompt(scoring.prompt, tokenizer, pair);
    return;
  }
  auto encoded = tokenizer.encode_pair(pair.query, pair.document);
  request.prompt_token_ids = std::move(encoded->ids);
  request.prompt_token_types = std::move(encoded->token_types);
}

}  // namespace

PairScoring pair_scoring_of(const ModelInfo& info, const text::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return refused("the model file has no tokenizer, so it scores no texts");
  if (info.num_labels > 0) return classifier_scoring(info, *tokenizer);
  if (info.has_pooling) return {.kind = PairScoringKind::kEmbeddings};
  if (!is_named_reranker(info)) {
    return refused("the model is no reranker: it has no classifier, no pooling for embeddings, and no such name");
  }
  const auto yes = token_of(*tokenizer, "yes"), no = token_of(*tokenizer, "no");
  if (!is_qwen(info) || !yes || !no) return unknown_prompt(info);
  return {.kind = PairScoringKind::kTokens, .prompt = std::string(kQwenPrompt), .yes = *yes, .no = *no};
}

Request pair_request(const PairScoring& scoring, const text::Tokenizer& tokenizer, const TextPair& pair) {
  Request request;
  if (scoring.kind == PairScoringKind::kClassifier) {
    request.pooling = Pooling::kRank;
    request.sampling.max_tokens = 0;
    request.use_prefix_cache = false;
  } else {
    request.sampling.temperature = 0.0f;
    request.sampling.max_tokens = 1;
    request.sampling.logprobs = 2;
    request.sampling.logit_bias = {{scoring.yes, kAnswerBias}, {scoring.no, kAnswerBias}};
  }
  TextPair cut = pair;
  std::string document;
  if (pair.max_document_tokens > 0) {
    document = cut_text(tokenizer, pair.document, pair.max_document_tokens);
    cut.document = document;
  }
  encode_pair(scoring, tokenizer, cut, request);
  // Words that are cut may have more tokens than before.
  constexpr int kMostTries = 4;
  std::int64_t num_kept = std::ssize(tokenizer.encode(cut.document, {.add_special = false}));
  for (int i = 0; i < kMostTries && pair.max_prompt_tokens > 0; ++i) {
    const std::int64_t excess = std::ssize(request.prompt_token_ids) - pair.max_prompt_tokens;
    if (excess <= 0 || num_kept <= 0) break;
    num_kept -= excess;
    document = cut_text(tokenizer, cut.document, num_kept);
    cut.document = document;
    encode_pair(scoring, tokenizer, cut, request);
  }
  return request;
}

double pair_logit(const PairScoring& scoring, std::span<const float> embedding,
                  std::span<const PositionLogprobs> logprobs) {
  if (scoring.kind == PairScoringKind::kTokens) {
    double logit = 0.0;
    for (const PositionLogprobs& position : logprobs.first(std::min<std::size_t>(1, logprobs.size()))) {
      for (const TokenLogprob& answer : position.top) {
        if (answer.token == scoring.yes) logit += answer.logprob;
        if (answer.token == scoring.no) logit -= answer.logprob;
      }
    }
    return logit;
  }
  if (embedding.empty()) return 0.0;
  return embedding.size() < 2 ? double{embedding[0]} : double{embedding[0]} - embedding[1];
}

double score_of_logit(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

double cosine_of(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

}  // namespace kvasir
