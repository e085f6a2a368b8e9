#include "grammar/compile/text_count.h"

namespace kvasir::grammar {
namespace {

constexpr int kMaxBytes = 4096;  // a state with longer texts has many

}  // namespace

// Byte by byte: every way that is open leads to one end at least.
std::uint32_t TextCount::count(ByteStateId state) {
  std::unordered_map<ByteStateId, std::uint32_t> open = {{state, 1}};
  std::uint64_t num_ended = states_.is_accepting(state) ? 1 : 0;
  for (int i = 0; i < kMaxBytes; ++i) {
    std::unordered_map<ByteStateId, std::uint32_t> next;
    std::uint64_t num_open = 0;
    for (const auto& [from, num_ways] : open) {
      const ByteStates::Run& run = states_.run(from);
      if (run.classes != 0 && run.num_characters == kUnbounded) return kMany;
      for (ByteSet live = states_.live(from); !live.empty();) {
        const ByteStateId to = states_.next(from, live.take_first());
        if (states_.is_accepting(to)) num_ended += num_ways;
        if (states_.is_final(to)) continue;
        next[to] += num_ways;
        num_open += num_ways;
        if (num_ended + num_open >= kMany) return kMany;
      }
    }
    if (next.empty()) return static_cast<std::uint32_t>(num_ended);
    open = std::move(next);
  }
  return kMany;
}

std::uint32_t TextCount::behind(ByteStateId state) {
  const auto [found, is_new] = known_.try_emplace(state, 0);
  if (is_new) found->second = count(state);
  return found->second;
}

}  // namespace kvasir::grammar
