// Why a policy made a cell coarser, for a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::kv {

enum class ActionReason : std::uint8_t {
  kUnstated,
  kLeastLossPerByte,
  kUniformBudget,
  kFixedFormat,
  kOldest,
  kLot,
  kLeastAttention,
  kLeastStatistic,
  kLeastPrice,
  kSeldomAsked,
};
inline constexpr int kNumActionReasons = 10;

// As in logs; it keeps its meaning from version to version.
constexpr std::string_view name_of(ActionReason reason) {
  constexpr std::string_view kNames[kNumActionReasons] = {
      "unstated", "least-loss",      "uniform",         "fixed-format", "oldest",
      "lot",      "least-attention", "least-statistic", "least-price",  "seldom-asked"};
  return kNames[static_cast<std::size_t>(reason)];
}

// A sentence for a person, without its full stop.
constexpr std::string_view meaning_of(ActionReason reason) {
  constexpr std::string_view kMeanings[kNumActionReasons] = {
      "the policy did not say why",
      "of all steps down in its layer and head this one was expected to lose the least per byte",
      "the finest format that keeps the budget when all old blocks have it",
      "the policy gives this format to every old block",
      "the oldest block of its layer and head that was left",
      "drawn by lot",
      "it had the least attention in memory of its layer and head",
      "what the policy measures of keys and values was the lowest of its layer and head",
      "of all steps down in all layers and heads this one was expected to lose the least per byte",
      "of all steps down in all layers and heads its drop was expected to lose the least per byte, with what it "
      "would cost if it is asked for"};
  return kMeanings[static_cast<std::size_t>(reason)];
}

}  // namespace kvasir::kv
