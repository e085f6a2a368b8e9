#include "eval/kv_needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "eval/kv_text.h"
#include "text/chat_prompt.h"

namespace kvasir::eval {
namespace {

constexpr std::array kCities = {"Paris",  "London", "Berlin", "Madrid", "Rome",
                                "Vienna", "Tokyo",  "Cairo",  "Lima",   "Oslo"};
constexpr std::string_view kInstruction = "Read this text and remember any secret code in it.\n\n";

using Tokens = std::vector<TokenId>;

void append(Tokens& tokens, std::span<const TokenId> more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

// The cities, their codes, and the beginning of the filler; drawn from the case alone.
struct Draw {
  std::vector<std::string> cities;
  std::vector<int> codes;
  std::uint64_t filler_begin = 0;

  Draw(const NeedleKind& kind, std::int32_t ctx_tokens, double depth) {
    std::mt19937_64 random(static_cast<std::uint64_t>(ctx_tokens) * 1009 +
                           static_cast<std::uint64_t>(std::lround(depth * 1000)) * 7 +
                           static_cast<std::uint64_t>(kind.num_needles));
    const std::size_t first = random() % kCities.size();
    for (std::int32_t i = 0; i < kind.num_needles; ++i) {
      cities.emplace_back(kCities[(first + static_cast<std::size_t>(i)) % kCities.size()]);
      codes.push_back(1000 + static_cast<int>(random() % 9000));
    }
    filler_begin = random();
  }
};

std::size_t next_sentence(const text::Tokenizer& tokenizer, std::span<const TokenId> filler,
                          std::size_t position) {
  for (std::size_t i = position; i < std::min(filler.size(), position + 80); ++i) {
    if (tokenizer.decode_token(filler[i]).ends_with('.')) return i + 1;
  }
  return std::min(position, filler.size());
}

struct Place {
  std::size_t position;  // in the filler
  std::size_t needle;
  auto operator<=>(const Place&) const = default;
};

// The first needle lies where the case wants it, the others at even distances behind it and around the end.
std::vector<Place> places_of(std::size_t num_needles, const text::Tokenizer& tokenizer,
                             std::span<const TokenId> filler, double depth) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < num_needles; ++i) {
    double at = depth + static_cast<double>(i) / static_cast<double>(num_needles);
    if (at > 1.0) at -= 1.0;
    const auto position = static_cast<std::size_t>(at * static_cast<double>(filler.size()));
    places.push_back({next_sentence(tokenizer, filler, position), i});
  }
  std::ranges::sort(places);
  return places;
}

std::string question_about(std::string_view city) {
  return fmt::format("Question: What is the secret code for {}?", city);
}
std::string answer_about(std::string_view city) { return fmt::format("The secret code for {} is", city); }

}  // namespace

Result<ChatFrame> chat_frame(const Engine& engine) {
  ChatFrame frame;
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  if (engine.chat_template() == nullptr) {
    if (tokenizer.adds_bos()) frame.before.push_back(tokenizer.vocab().bos());
    return frame;
  }
  const auto render = [&](const std::vector<text::ChatMessage>& messages) {
    text::ChatTemplateInputs inputs;
    inputs.messages = text::make_messages(messages);
    return text::encode_chat(std::move(inputs), *engine.chat_template(), tokenizer);
  };
  // Two messages that differ in their one token have the frame in common.
  KVASIR_TRY(const Tokens a, render({{"user", "A"}}));
  KVASIR_TRY(const Tokens b, render({{"user", "B"}}));
  frame.before.assign(a.begin(), std::ranges::mismatch(a, b).in1);
  frame.after.assign(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first.base(), a.end());
  KVASIR_TRY(const Tokens c, render({{"user", "A"}, {"assistant", "A"}, {"user", "A"}}));
  KVASIR_TRY(const Tokens d, render({{"user", "A"}, {"assistant", "B"}, {"user", "B"}}));
  const auto answer = std::ranges::mismatch(c, d).in1;
  const auto message = std::mismatch(c.rbegin(), c.rend(), d.rbegin(), d.rend()).first.base() - 1;
  frame.between.assign(answer + 1, message);
  return frame;
}

Result<Needle> make_needle(const text::Tokenizer& tokenizer, const ChatFrame& frame,
                           std::span<const TokenId> text, const NeedleKind& kind, std::int32_t ctx_tokens,
                           double depth) {
  const auto encode = [&](std::string_view words) { return tokenizer.encode(words, {.add_special = false}); };
  const Draw draw(kind, ctx_tokens, depth);
  Tokens head = frame.before;
  append(head, encode(kInstruction));
  // All that comes behind the text. A blank line parts what no template does; it is encoded with what
  // follows.
  Tokens question;
  std::string_view gap = "\n\n";
  for (std::int32_t turn = 0; turn < kind.num_earlier_turns; ++turn) {
    const auto city = static_cast<std::size_t>(kind.num_needles - 1 - turn);
    append(question, encode(fmt::format("{}{}", gap, question_about(draw.cities[city]))));
    append(question, frame.after);
    append(question, encode(fmt::format("{} {}.", answer_about(draw.cities[city]), draw.codes[city])));
    append(question, frame.between);
    if (!frame.between.empty()) gap = "";
  }
  append(question, encode(fmt::format("{}{}", gap, question_about(draw.cities[0]))));
  append(question, frame.after);
  std::vector<Tokens> needles;
  std::size_t num_needle_tokens = 0;
  for (std::size_t i = 0; i < draw.cities.size(); ++i) {
    needles.push_back(encode(fmt::format(" The secret code for {} is {}. ", draw.cities[i], draw.codes[i])));
    num_needle_tokens += needles.back().size();
  }
  // The policy acts where a step ends: before the question or after it.
  const std::size_t num_steps = static_cast<std::size_t>(ctx_tokens / kKvStepTokens) - 1;
  const std::size_t acts_at = num_steps * kKvStepTokens;
  const std::size_t before_act =
      head.size() + num_needle_tokens + (kind.policy_sees_question ? question.size() : 0);
  if (acts_at < before_act + kKvStepTokens || text.size() < acts_at) {
    return make_error(
        ErrorKind::kUnmet,
        fmt::format("needle: {} tokens of context and {} of text are too few", ctx_tokens, text.size()));
  }
  const std::size_t num_filler = acts_at - before_act;
  const auto filler = text.subspan(draw.filler_begin % (text.size() - num_filler + 1), num_filler);

  Needle needle{.prompt = head,
                .policy_acts_at = kind.policy_is_live ? 0 : static_cast<std::int32_t>(acts_at),
                .answer = {}};
  std::size_t done = 0;
  for (const auto& [position, index] : places_of(needles.size(), tokenizer, filler, depth)) {
    append(needle.prompt, filler.subspan(done, position - done));
    append(needle.prompt, needles[index]);
    done = position;
  }
  append(needle.prompt, filler.subspan(done));
  append(needle.prompt, question);
  append(needle.prompt, encode(answer_about(draw.cities[0])));
  needle.answer = encode(fmt::format(" {}", draw.codes[0]));
  return needle;
}

Result<NeedleRun> run_needle(Engine& engine, const Needle& needle, KvParams kv, const KeepGoing& keep_going) {
  Request request;
  kv.only_at_tokens = needle.policy_acts_at;
  kv.is_share_of_present = needle.policy_acts_at > 0;
  request.kv = std::move(kv);
  request.prompt_token_ids = needle.prompt;
  request.use_prefix_cache = false;
  request.sampling.temperature = 0.0f;
  request.sampling.ignore_eos = true;
  request.sampling.max_tokens = static_cast<std::int32_t>(needle.answer.size());
  KVASIR_TRY(const RequestRun run, run_request(engine, std::move(request), keep_going));
  return NeedleRun{.is_found = run.token_ids == needle.answer, .usage = run.usage};
}

}  // namespace kvasir::eval
