// Learning from traffic, played again over recorded shadows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::eval {

// Long enough for an act in the middle and its horizon behind.
inline constexpr std::int32_t kShadowWindowTokens = 1040;
// Short enough to tell what is asked for. The engine must have room for so many tokens a step.
inline constexpr std::int32_t kShadowStepTokens = 32;

enum class FirstChampion : std::uint8_t {
  kOfText,      // learned on the first texts of the traffic before, which no replay sees
  kCalibrated,  // the model's own, of calibrate-kv
  kNone,        // decayed mass
};

struct LearningReplayOptions {
  FirstChampion champion = FirstChampion::kOfText;
  std::int32_t num_champion_texts = 60;
  std::int64_t num_sequences = 500;  // of a replay; fewer where fewer are recorded
  std::int32_t num_unshifted = 100, num_shifted = 5;  // replays, whose seeds are 1, 2 ...
};

// The first promotion of a replay, or none.
struct LearningReplay {
  bool is_shifted = false;
  std::uint64_t seed = 1;  // of the order of sequences, drawn without putting back, and of learning
  std::int64_t num_sequences = 0;
  std::int64_t promoted_after = 0;  // sequences; 0: none was promoted
  std::int64_t num_challengers = 0;
  double duel_ratio = 1.0;      // costs in the last duel, the challenger's to the champion's
  double log10_evidence = 0.0;  // of that duel
  double asked_ratio = 1.0;     // of blocks that were asked for and dropped in it, the challenger's to the champion's
  double asked_dropped_share = 0.0;  // of blocks that were asked for, those that the challenger dropped in it
  std::int64_t num_held_out = 0;  // sequences behind the promotion
  double held_out_ratio = 1.0;    // costs on these, the new champion's to the first one's
};

using LearningProgress = std::function<void(std::string_view phase, double done)>;

// Reads the texts, by traffic: that before, and where there is one that after a shift. Their shadows are kept in the file, where
// it is not empty, and come from there the next time. `each` is called with each replay, the unshifted ones first. Errors: those
// of the loading, kUnmet (no layer without a window), kUsage (no calibrated champion), kBadFile, kMachine, kCancelled.
Status replay_kv_learning(const EngineConfig& config, std::span<const std::vector<std::vector<TokenId>>> texts, const std::string& shadow_file,
                          const LearningReplayOptions& options, const LearningProgress& progress, const KeepGoing& keep_going,
                          const std::function<Status(const LearningReplay&)>& each);

}  // namespace kvasir::eval
