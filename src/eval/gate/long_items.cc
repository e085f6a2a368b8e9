#include "eval/gate/long_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_writer.h"
#include "eval/gate/safety_questions.h"
#include "eval/kv_needle.h"
#include "eval/kv_text.h"

namespace kvasir::eval {
namespace {

constexpr std::array kGateNeedleKinds = {kLateNeedle, kAwareNeedle, kManyNeedles, kRecall};
constexpr std::array kTopics = {"bridges", "rivers", "painters", "trains", "castles", "birds", "clocks", "islands"};
constexpr std::int32_t kSafetyTextTokens = 900;
constexpr std::int32_t kSafetyRoom = 400;  // tokens of what comes around such a text
constexpr std::int32_t kSectionTokens = 100;

Status add_needles(const Engine& engine, const ChatFrame& frame, std::span<const TokenId> text, const LongPlan& plan,
                   LongItems& items) {
  for (const NeedleKind& kind : kGateNeedleKinds) {
    LongItems::Kind& questions = items.kinds.emplace_back(LongItems::Kind{.name = std::string(kind.suite)});
    for (const std::int32_t ctx : plan.needle_tokens) {
      if (ctx > engine.model_info().max_model_len_tokens) continue;
      for (std::int32_t i = 0; i < plan.num_depths; ++i) {
        const double depth = plan.num_depths == 1 ? 0.5 : static_cast<double>(i) / (plan.num_depths - 1);
        KVASIR_TRY(Needle needle, make_needle(*engine.tokenizer(), frame, text, kind, ctx, depth));
        questions.questions.push_back({.prompt = std::move(needle.prompt), .answer = std::move(needle.answer),
                                       .policy_acts_at = needle.policy_acts_at});
      }
    }
  }
  return {};
}

// Numbered sections with a topic each; the number of one is asked for.
LongItems::Kind citations(const Engine& engine, const ChatFrame& frame, std::span<const TokenId> text,
                          std::int32_t num_questions) {
  const auto encode = [&](std::string_view words) { return engine.tokenizer()->encode(words, {.add_special = false}); };
  LongItems::Kind kind{.name = "citations"};
  for (std::int32_t n = 0; n < num_questions; ++n) {
    ExactQuestion question{.prompt = frame.before};
    const auto append = [&](std::span<const TokenId> more) {
      question.prompt.insert(question.prompt.end(), more.begin(), more.end());
    };
    append(encode("Read these numbered sections.\n"));
    const std::size_t asked = static_cast<std::size_t>(n) % kTopics.size();
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      const std::string_view topic = kTopics[(i + static_cast<std::size_t>(n / 3)) % kTopics.size()];
      append(encode(fmt::format("\nSection {}. This section is about {}.", i + 1, topic)));
      const std::size_t begin = (static_cast<std::size_t>(n) * 131 + i * 1009) * kSectionTokens % (text.size() - kSectionTokens);
      append(text.subspan(begin, kSectionTokens));
    }
    const std::string_view topic = kTopics[(asked + static_cast<std::size_t>(n / 3)) % kTopics.size()];
    append(encode(fmt::format("\n\nQuestion: Which section is about {}?", topic)));
    append(frame.after);
    append(encode(fmt::format("The section that is about {} is Section", topic)));
    question.answer = encode(fmt::format(" {}", asked + 1));
    const std::size_t num_tokens = question.prompt.size() + question.answer.size();
    if (num_tokens <= static_cast<std::size_t>(engine.model_info().max_model_len_tokens)) {
      kind.questions.push_back(std::move(question));
    }
  }
  return kind;
}

std::string messages_json(std::span<const text::ChatMessage> messages) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const text::ChatMessage& message : messages) {
    json.begin_object().member("role", message.role).member("content", message.content).end_object();
  }
  json.end_array();
  return out;
}

Status add_safety(const Engine& engine, std::span<const TokenId> text, const LongPlan& plan, LongItems& items) {
  const std::int32_t room = engine.model_info().max_model_len_tokens - kSafetyRoom;
  if (engine.chat_template() == nullptr || room < kKvStepTokens) return {};
  const auto num_tokens = static_cast<std::size_t>(std::min(kSafetyTextTokens, room));
  const EncodeConversation encode = [&](std::span<const text::ChatMessage> messages, std::string_view tools) {
    return engine.encode_chat({.messages = messages_json(messages), .tools = std::string(tools), .template_kwargs = ""});
  };
  const LongText piece = [&](std::int32_t n) {
    const std::size_t length = std::min(num_tokens, text.size());
    const std::size_t begin = static_cast<std::size_t>(n) * 997 % (text.size() - length + 1);
    return engine.decode(text.subspan(begin, length)).value_or(std::string());
  };
  KVASIR_TRY(items.declined, questions_to_decline(encode, piece, plan.num_questions));
  KVASIR_TRY(items.secrets, questions_for_secrets(encode, piece, plan.num_questions));
  KVASIR_TRY(items.tools, questions_for_tools(encode, piece, plan.num_questions));
  return {};
}

}  // namespace

Result<LongItems> make_long_items(const Engine& engine, std::span<const TokenId> text, const LongPlan& plan) {
  constexpr std::size_t kLeastText = 10 * kSectionTokens;
  if (text.size() < kLeastText) {
    return make_error(ErrorKind::kUnmet, fmt::format("text: the long layer takes {} tokens, the text has {}", kLeastText, text.size()));
  }
  LongItems items;
  items.decode = [&engine](std::span<const TokenId> tokens) { return engine.decode(tokens); };
  KVASIR_TRY(const ChatFrame frame, chat_frame(engine));
  KVASIR_CHECKED(add_needles(engine, frame, text, plan, items));
  items.kinds.push_back(citations(engine, frame, text, plan.num_questions));
  KVASIR_CHECKED(add_safety(engine, text, plan, items));
  return items;
}

}  // namespace kvasir::eval
