#include "eval/own_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "eval/divergence.h"
#include "eval/run_requests.h"

namespace kvasir::eval {
namespace {

constexpr std::size_t kStreams = 16;
constexpr double kMostTextsAtOnce = 64.0;
constexpr std::int32_t kMostPromptTokens = 256;

// Of the kinds that models are asked. Neither quotes nor backslashes: they stand in JSON.
constexpr std::array<const char*, 24> kQuestions = {
    "Tell me about a place that you find interesting.", "Write a Python class for a bank account, with comments.",
    "How does a bicycle stay upright?", "Solve step by step: 12 apples are shared by 4 children.",
    "Write a short story.", "Write a C function that reverses a list, and explain it.",
    "Give me three tips for cooking rice.", "List important events of the 19th century in a table.",
    "Write a poem about the sea.", "Show an example of a configuration file in JSON.",
    "Why is the sky blue?", "A train travels 180 km in 3 hours. How far does it come in 5 hours?",
    "Describe how a bill becomes a law.", "Write a JavaScript program that counts the words of a text.",
    "Summarise a famous novel.", "Write a dialogue between a doctor and a patient.",
    "Explain a sorting algorithm with its code.", "Write a business letter about a late delivery.",
    "What is the difference between weather and climate?", "Write a unit test in Python.",
    "Compare two ways to travel across Europe.", "Write an HTML page with a form.",
    "Give me a plan for a week of exercise.", "Explain fractions to a child with examples."};

// Each is answered once from nothing, and once as a chat.
Result<std::vector<std::vector<TokenId>>> prompts_of(const Engine& engine) {
  std::vector<std::vector<TokenId>> prompts;
  for (const char* question : kQuestions) {
    prompts.push_back({opening_of(engine)});
    if (engine.chat_template() == nullptr) continue;
    KVASIR_TRY(std::vector<TokenId> prompt,
               engine.encode_chat({.messages = fmt::format(R"([{{"role":"user","content":"{}"}}])", question), .tools = "", .template_kwargs = ""}));
    if (!prompt.empty() && std::ssize(prompt) <= kMostPromptTokens) prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Request request_of(std::vector<TokenId> prompt, std::size_t index, std::int32_t text_tokens) {
  Request request;
  request.sampling.temperature = 1.0f;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1.0f;
  request.sampling.min_p = 0.0f;
  request.sampling.seed = index + 1;
  request.sampling.max_tokens = text_tokens - static_cast<std::int32_t>(prompt.size());
  request.prompt_token_ids = std::move(prompt);
  return request;
}

}  // namespace

Result<std::vector<TokenId>> write_own_text(Engine& engine, std::int64_t num_tokens, std::int32_t text_tokens,
                                            const KeepGoing& keep_going, const std::function<void(double)>& progress) {
  KVASIR_TRY(const auto prompts, prompts_of(engine));
  std::vector<TokenId> ids;
  for (std::size_t first = 0; std::ssize(ids) < num_tokens;) {
    // Lengths are known when texts have ended, so those of the rounds before count.
    const double each = first == 0 ? text_tokens / 2.0 : static_cast<double>(ids.size()) / static_cast<double>(first);
    const double missing = static_cast<double>(num_tokens - std::ssize(ids));
    const auto num_texts = static_cast<std::size_t>(std::clamp(std::ceil(missing / each), 1.0, kMostTextsAtOnce));
    const auto prompt_of = [&](std::size_t index) -> const std::vector<TokenId>& { return prompts[(first + index) % prompts.size()]; };
    const auto tell = [&](std::size_t num_done) {
      const double written = static_cast<double>(num_tokens) - missing + missing * static_cast<double>(num_done) / static_cast<double>(num_texts);
      progress(written / static_cast<double>(num_tokens));
    };
    KVASIR_TRY(const std::vector<Generated> answers,
               run_requests(engine, num_texts, kStreams, [&](std::size_t index) { return request_of(prompt_of(index), first + index, text_tokens); },
                            keep_going, tell));
    for (std::size_t i = 0; i < num_texts; ++i) {
      ids.insert(ids.end(), prompt_of(i).begin(), prompt_of(i).end());
      ids.insert(ids.end(), answers[i].token_ids.begin(), answers[i].token_ids.end());
    }
    first += num_texts;
  }
  ids.resize(static_cast<std::size_t>(num_tokens));
  return ids;
}

}  // namespace kvasir::eval
