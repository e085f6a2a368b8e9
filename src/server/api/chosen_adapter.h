// The adapter that answers a request, and how much of it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::server::api {

// Of a list as llama-server's requests have it.
struct LoraScale {
  std::int64_t id = 0;  // the adapter's place in Engine::adapters()
  float scale = 0.0f;
};

// An adapter and how much of it; without a scale as much as it was loaded with. An empty name: the model as it is.
struct ChosenAdapter {
  std::string name = {};
  std::optional<float> scale = {};
};

// The adapter of requests that name none.
//
// Thread safety: all functions may be called from any thread.
class DefaultAdapter {
 public:
  ChosenAdapter get() const {
    const std::lock_guard lock(mutex_);
    return chosen_;
  }
  void set(ChosenAdapter chosen) {
    const std::lock_guard lock(mutex_);
    chosen_ = std::move(chosen);
  }

 private:
  mutable std::mutex mutex_;
  ChosenAdapter chosen_;
};

}  // namespace kvasir::server::api
