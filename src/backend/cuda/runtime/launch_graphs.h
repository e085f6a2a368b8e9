// Lists of launches that come again: a device runs each as one graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/simt/simt.h"

namespace kvasir::cuda {

// The steps of a decoding batch make the same launches until a sequence comes, goes, or reaches another chunk of keys:
// every pointer and size is that of the step before. A list is recorded when it comes a second time. Thread safety: none.
class LaunchGraphs {
 public:
  // Runs the launches, by run(launch) or as the graph that was recorded of them. True: as a graph.
  template <class Run>
  bool run(simt::Device& device, const LaunchList& list, const Run& run) {
    ++clock_;
    Entry& entry = entry_of(list);
    const auto run_all = [&entry, run] {
      for (const Launch& launch : entry.list) run(launch);
    };
    if (entry.num_uses++ == 0 || list.size() < kLeastLaunches) {
      run_all();
      return false;
    }
    if (entry.graph == nullptr) entry.graph = std::make_unique<simt::Graph>(device, run_all);
    entry.graph->launch(device);
    return true;
  }

 private:
  static constexpr std::size_t kLeastLaunches = 4, kMostEntries = 256;

  struct Entry {
    LaunchList list;
    std::int64_t num_uses = 0, last_use = 0;
    std::unique_ptr<simt::Graph> graph;
  };

  // The list's, a new one in the place of the one that was unused for longest.
  Entry& entry_of(const LaunchList& list) {
    // Lists of a step follow each other as they did the last time.
    for (std::size_t i = 1; i <= entries_.size(); ++i) {
      const std::size_t at = (last_ + i) % entries_.size();
      if (entries_[at]->list != list) continue;
      last_ = at;
      entries_[at]->last_use = clock_;
      return *entries_[at];
    }
    if (entries_.size() < kMostEntries) {
      last_ = entries_.size();
      entries_.push_back(std::make_unique<Entry>());
    } else {
      const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry->last_use; });
      last_ = static_cast<std::size_t>(oldest - entries_.begin());
      *oldest = std::make_unique<Entry>();
    }
    entries_[last_]->list = list;
    entries_[last_]->last_use = clock_;
    return *entries_[last_];
  }

  std::vector<std::unique_ptr<Entry>> entries_;
  std::size_t last_ = 0;  // of the list before
  std::int64_t clock_ = 0;
};

}  // namespace kvasir::cuda
