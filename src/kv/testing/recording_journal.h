// A journal that keeps everything in memory, for tests.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "kv/policy/journal.h"

namespace kvasir::kv {

class RecordingJournal final : public PolicyJournal {
 public:
  double now_ms() const override { return num_clock_reads_++; }
  void begin_run(RunRecord run) override { runs.push_back(std::move(run)); }
  void begin_sequence(SequenceRecord sequence) override { sequences.push_back(std::move(sequence)); }
  void add_step(StepRecord step) override { steps.push_back(std::move(step)); }
  void end_sequence(SequenceEnd end) override { ends.push_back(std::move(end)); }
  void add_shadow(ShadowRecord shadow) override {
    const std::scoped_lock lock(shadow_mutex_);
    shadows.push_back(std::move(shadow));
  }

  std::vector<RunRecord> runs;
  std::vector<SequenceRecord> sequences;
  std::vector<StepRecord> steps;
  std::vector<SequenceEnd> ends;
  std::vector<ShadowRecord> shadows;

 private:
  std::mutex shadow_mutex_;
  mutable double num_clock_reads_ = 0.0;
};

// The formats of a hold's cells as its records tell them, from cells that were all alike.
class ReplayedCells {
 public:
  explicit ReplayedCells(KvFormat new_cells) : new_cells_(new_cells) {}

  // False: a record does not fit those before it.
  bool apply(const StepRecord& step) {
    for (const ActionRecord& action : step.actions) {
      KvFormat& format = formats_.try_emplace({action.group, action.cell, action.block}, new_cells_)
                             .first->second;
      if (format != action.from || !is_coarser(action.to, action.from)) return false;
      format = action.to;
    }
    return true;
  }
  KvFormat format(std::int32_t group, std::int32_t cell, std::int32_t block) const {
    const auto found = formats_.find({group, cell, block});
    return found == formats_.end() ? new_cells_ : found->second;
  }
  // The number of cells that were ever touched.
  std::int32_t num_cells(KvFormat format) const {
    std::int32_t count = 0;
    for (const auto& [place, present] : formats_) count += present == format ? 1 : 0;
    return count;
  }

 private:
  struct Place {
    std::int32_t group, cell, block;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  const KvFormat new_cells_;
  std::map<Place, KvFormat> formats_;
};

}  // namespace kvasir::kv
