#include "eval/draft_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "engine/draft_heads.h"
#include "eval/run_requests.h"
#include "spec/ngram_training.h"

namespace kvasir::eval {
namespace {

constexpr std::size_t kStreams = 32;
constexpr std::size_t kHeldOutPrompts = 64;
constexpr std::int32_t kHeldOutTokens = 128;
constexpr std::size_t kLeastPrompts = 16;
constexpr std::int32_t kQuestionTokens = 64;
constexpr double kTypicalShare = 0.75;  // of an answer's tokens that come before it ends
constexpr double kMostRepeated = 0.2;   // of an answer's four-grams

Request request_of(const Prompt& prompt, float temperature, std::int32_t max_tokens, std::uint64_t seed) {
  Request request;
  request.prompt_token_ids = prompt;
  request.sampling.temperature = temperature;
  request.sampling.top_p = 0.95f;
  request.sampling.max_tokens = max_tokens;
  request.sampling.seed = seed;
  request.use_prefix_cache = false;
  request.speculates = false;
  return request;
}

bool repeats_itself(std::span<const TokenId> answer) {
  constexpr std::size_t kLength = 4;
  if (answer.size() < 2 * kLength) return false;
  std::set<std::array<TokenId, kLength>> seen;
  const std::size_t num_places = answer.size() - kLength + 1;
  for (std::size_t i = 0; i < num_places; ++i) seen.insert({answer[i], answer[i + 1], answer[i + 2], answer[i + 3]});
  return static_cast<double>(seen.size()) < (1.0 - kMostRepeated) * static_cast<double>(num_places);
}

// The beginning that two conversations have in common: all before the user's words.
Result<Prompt> find_prefix_of_questions(const EncodeQuestion& encode) {
  KVASIR_TRY(Prompt one, encode("Zebra"));
  KVASIR_TRY(const Prompt other, encode("7 apples"));
  one.erase(std::ranges::mismatch(one, other).in1, one.end());
  return one;
}

std::function<void(std::size_t)> share_of(const DraftEvents& events, std::string_view phase, std::size_t num_all) {
  return [&events, phase, num_all](std::size_t num_done) {
    if (events.progress) events.progress(phase, static_cast<double>(num_done) / static_cast<double>(num_all));
  };
}

// Questions that the model thinks a user would ask, as prompts of their answers.
Result<std::vector<Prompt>> write_questions(Engine& engine, std::size_t num_questions, const EncodeQuestion& encode,
                                            std::uint64_t seed, const DraftEvents& events) {
  KVASIR_TRY(const Prompt prefix, find_prefix_of_questions(encode));
  std::vector<Prompt> prompts;
  if (prefix.empty()) return prompts;
  const auto next = [&](std::size_t index) { return request_of(prefix, 1.0f, kQuestionTokens, seed + index); };
  KVASIR_TRY(const auto questions, run_requests(engine, num_questions, kStreams, next, events.keep_going,
                                                share_of(events, "questions", num_questions)));
  std::set<std::string> seen;
  for (const Generated& question : questions) {
    if (!question.is_ended) continue;
    KVASIR_TRY(std::string text, engine.decode(question.token_ids));
    const std::size_t begin = text.find_first_not_of(" \n\t");
    if (begin == std::string::npos) continue;
    text.erase(0, begin);
    text.erase(text.find_last_not_of(" \n\t") + 1);
    if (!seen.insert(text).second) continue;
    KVASIR_TRY(Prompt prompt, encode(text));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// Half of them greedy, the others at two temperatures.
Result<std::vector<spec::GeneratedText>> write_answers(Engine& engine, std::span<const Prompt> prompts,
                                                       std::size_t num_answers, const DraftTraining& training,
                                                       const DraftEvents& events) {
  constexpr std::array kTemperatures = {0.0f, 0.0f, 0.7f, 0.0f, 0.7f, 1.0f};
  const auto next = [&](std::size_t index) {
    // Another time round a prompt has another temperature.
    const float temperature = kTemperatures.at((index + index / prompts.size()) % kTemperatures.size());
    return request_of(prompts[index % prompts.size()], temperature, training.answer_tokens, training.seed + index);
  };
  KVASIR_TRY(const auto answers, run_requests(engine, num_answers, kStreams, next, events.keep_going,
                                              share_of(events, "answers", num_answers)));
  std::vector<spec::GeneratedText> texts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (repeats_itself(answers[i].token_ids)) continue;
    const Prompt& prompt = prompts[i % prompts.size()];
    spec::GeneratedText& text = texts.emplace_back(prompt, prompt.size());
    text.tokens.insert(text.tokens.end(), answers[i].token_ids.begin(), answers[i].token_ids.end());
  }
  return texts;
}

Result<DraftCheck> score(Engine& engine, const spec::NgramTable& table, std::span<const Prompt> prompts,
                         std::int32_t answer_tokens, const DraftEvents& events) {
  const auto next = [&](std::size_t index) { return request_of(prompts[index], 0.0f, answer_tokens, 0); };
  KVASIR_TRY(const auto answers, run_requests(engine, prompts.size(), kStreams, next, events.keep_going,
                                              share_of(events, "held-out answers", prompts.size())));
  std::vector<spec::GeneratedText> texts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (repeats_itself(answers[i].token_ids)) continue;
    spec::GeneratedText& text = texts.emplace_back(prompts[i], prompts[i].size());
    text.tokens.insert(text.tokens.end(), answers[i].token_ids.begin(), answers[i].token_ids.end());
  }
  spec::NgramScore measured = spec::score_ngram_table(table, texts);
  return DraftCheck{.acceptance = std::move(measured.acceptance), .num_tokens = measured.num_tokens};
}

// Every so many prompts one, out of `prompts`.
std::vector<Prompt> hold_out(std::vector<Prompt>& prompts) {
  const std::size_t every = std::max<std::size_t>(4, prompts.size() / kHeldOutPrompts);
  std::vector<Prompt> held_out, others;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const bool is_held_out = i % every == every - 1 && held_out.size() < kHeldOutPrompts;
    (is_held_out ? held_out : others).push_back(std::move(prompts[i]));
  }
  prompts = std::move(others);
  return held_out;
}

}  // namespace

double DraftCheck::tokens_per_step() const { return std::accumulate(acceptance.begin(), acceptance.end(), 1.0); }

Result<io::DraftFile> train_draft(Engine& engine, std::span<const Prompt> prompts, const EncodeQuestion& encode,
                                  const DraftTraining& training, const DraftEvents& events) {
  const auto num_answers = std::max<std::size_t>(
      kLeastPrompts, static_cast<std::size_t>(static_cast<double>(training.num_tokens) / (kTypicalShare * training.answer_tokens)));
  std::vector<Prompt> all(prompts.begin(), prompts.end());
  if (encode && all.size() < num_answers) {
    KVASIR_TRY(std::vector<Prompt> own, write_questions(engine, num_answers - all.size(), encode, training.seed, events));
    std::ranges::move(own, std::back_inserter(all));
  }
  if (all.size() < kLeastPrompts) {
    return make_error(ErrorKind::kUsage, fmt::format("prompts: at least {} are needed, there are {}{}", kLeastPrompts, all.size(),
                                                     encode ? " with the model's own" : ", and the model has no chat template to write its own"),
                      "prompts");
  }
  std::vector<Prompt> held_out = hold_out(all);
  KVASIR_TRY(const auto texts, write_answers(engine, all, num_answers, training, events));
  const spec::NgramTable table = spec::train_ngram_table(texts, training.order);
  KVASIR_TRY(const DraftCheck check, score(engine, table, held_out, kHeldOutTokens, events));
  std::int64_t num_written = 0;
  for (const spec::GeneratedText& text : texts) num_written += std::ssize(text.tokens) - static_cast<std::int64_t>(text.num_prompt_tokens);
  return io::DraftFile{.base_tokens = tokens_hash(engine.tokenizer()),
                       .vocab_size = engine.model_info().vocab_size,
                       .trained_on = fmt::format("{} tokens of {} answers of its own", num_written, texts.size()),
                       .order = table.order(),
                       .words = {table.words().begin(), table.words().end()},
                       .acceptance = check.acceptance,
                       .held_out_prompts = std::move(held_out),
                       .held_out_tokens = kHeldOutTokens};
}

Result<DraftCheck> check_draft(Engine& engine, const io::DraftFile& file, std::span<const Prompt> prompts,
                               std::int32_t answer_tokens, const DraftEvents& events) {
  KVASIR_TRY(const spec::NgramTable table, table_of(file, engine.model_info().vocab_size, engine.tokenizer()));
  return score(engine, table, prompts, answer_tokens, events);
}

}  // namespace kvasir::eval
