// A code hidden in a long text, and whether the model still finds it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"
#include "text/tokenizer.h"

namespace kvasir::eval {

// How a needle is asked for.
struct NeedleKind {
  std::string_view suite;
  std::int32_t num_needles = 1;       // of as many cities; the first one's is asked for
  bool policy_sees_question = false;  // or it acts before the question comes
  bool policy_is_live = false;        // acts after every step, before the question and after it; or once
  // In a conversation: questions about the other cities, with their right answers, come first.
  std::int32_t num_earlier_turns = 0;
};
inline constexpr NeedleKind kLateNeedle = {"needle-late", 1, false};
inline constexpr NeedleKind kAwareNeedle = {"needle-aware", 1, true};
inline constexpr NeedleKind kManyNeedles = {"needle-keys", 4, false};
// Blocks that were taken out before the question may come back after it.
inline constexpr NeedleKind kLiveNeedle = {"needle-live", 1, true, true};
inline constexpr NeedleKind kRecall = {"recall", 3, true, true, 2};

// Around a user's message, where the model has a chat template; `between` follows an answer and precedes the
// next message.
struct ChatFrame {
  std::vector<TokenId> before, after, between;
};
// Errors: as text::encode_chat.
Result<ChatFrame> chat_frame(const Engine& engine);

struct Needle {
  std::vector<TokenId> prompt;
  std::int32_t policy_acts_at = 0;  // tokens, a multiple of kKvStepTokens; 0: after every step
  std::vector<TokenId> answer;
};

// A prompt of about ctx_tokens with filler of `text`, and the needle at `depth`, 0 to 1, in it. The same
// arguments make the same prompt. Error (kUnmet): the text has too few tokens.
Result<Needle> make_needle(const text::Tokenizer& tokenizer, const ChatFrame& frame,
                           std::span<const TokenId> text, const NeedleKind& kind, std::int32_t ctx_tokens,
                           double depth);

struct NeedleRun {
  bool is_found = false;  // the most likely tokens are the answer
  Usage usage;
};
// Errors: as run_request.
Result<NeedleRun> run_needle(Engine& engine, const Needle& needle, KvParams kv, const KeepGoing& keep_going);

}  // namespace kvasir::eval
