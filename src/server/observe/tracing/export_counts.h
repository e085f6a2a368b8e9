// Counts of spans that were exported or dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::server::observe {

enum class DropReason : std::uint8_t {
  kQueueFull,    // they came faster than they could be sent
  kUnreachable,  // the collector did not answer, or asked to be tried again, for too long
  kRefused,      // it refused the whole batch
  kRejected,     // it took the batch without them
  kShutdown,     // the server's time was up
};
inline constexpr std::array<std::string_view, 5> kDropReasonNames = {"queue_full", "unreachable", "refused",
                                                                     "rejected", "shutdown"};

// Thread safety: any thread.
class ExportCounts {
 public:
  void count_exported(std::int64_t num_spans) { exported_ += num_spans; }
  void count_dropped(DropReason reason, std::int64_t num_spans) {
    dropped_[static_cast<std::size_t>(reason)] += num_spans;
  }

  std::int64_t exported() const { return exported_; }
  std::int64_t dropped(DropReason reason) const { return dropped_[static_cast<std::size_t>(reason)]; }
  std::int64_t all_dropped() const {
    std::int64_t sum = 0;
    for (const auto& count : dropped_) sum += count;
    return sum;
  }

 private:
  std::atomic<std::int64_t> exported_{0};
  std::array<std::atomic<std::int64_t>, kDropReasonNames.size()> dropped_{};
};

}  // namespace kvasir::server::observe
