// Counts of what is learned of a model's attention while a server runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvasir {

enum class KvLearningState : std::uint8_t {
  kCollects,  // rows for the next challenger
  kDuels,     // a challenger against the forecast that serves
  kOff,       // the forecast that serves has lost to one that needs no learning; it stays until a person looks
};
constexpr std::string_view name_of(KvLearningState state) {
  constexpr std::string_view kNames[] = {"collects", "duels", "off"};
  return kNames[static_cast<std::size_t>(state)];
}

struct KvLearningStats {
  KvLearningState state = KvLearningState::kCollects;
  std::int64_t version = 0;  // of the forecast that serves new requests; 0: it was not learned from traffic
  std::int64_t num_sequences = 0;          // learned from
  std::int64_t num_sequences_dropped = 0;  // came while others waited to be learned from
  std::int64_t num_rows = 0;
  std::int64_t num_challengers = 0;
  std::int64_t num_promotions = 0;
  std::int64_t num_duel_sequences = 0;  // of the duel that goes on
  double duel_cost_ratio = 1.0;         // the challenger's costs in it, to those of the forecast that serves
  double log10_evidence = 0.0;          // in it, that the challenger costs 5% less
};

}  // namespace kvasir
