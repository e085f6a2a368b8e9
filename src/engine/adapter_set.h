// The adapters that requests may name.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "lora/adapter_file.h"
#include "model/model.h"

namespace kvasir {

// They come and go while the model runs. A request keeps the one that it began with, whatever becomes of its name. One that
// nobody holds may leave memory for another: its name stays, and acquire() reads its file again.
//
// Thread safety: all members may be called from any thread; of several loads one runs at a time.
class AdapterSet {
 public:
  struct Entry {
    std::string name;
    std::uint64_t version = 0;  // of its numbers, at scale 1
    float scale = 1.0f;         // where a request does not say
    std::unique_ptr<backend::Adapter> weights;
    mutable std::atomic<std::int64_t> last_use = 0;  // on the steady clock, when the last request had ended

    // Another scale is another version.
    std::uint64_t version_at(float used_scale) const;
  };
  // Whoever has it keeps the weights in memory.
  using Held = std::shared_ptr<const Entry>;

  // Model and backend outlive this and all that is held of it.
  // `type`: of the adapters that the backend makes.
  AdapterSet(const model::Model& model, backend::Backend& backend, AdapterType type) : model_(model), backend_(backend), type_(type) {}

  // Reads and packs one, which takes the place of the one that has its name. While there is no room, others that
  // `may_leave` and that nobody holds do. Errors: kBadFile naming the path, kUsage (more than bound() allows), kUnavailable
  // (more than is left of it), kUnmet for a device that runs none, kMachine (memory).
  Status load(const AdapterConfig& config, bool may_leave);
  // Nobody finds it any more. Error: kNotFound.
  Status unload(std::string_view name);
  // All of them may take so much, with the floats of a file that is read. Before the call there is no bound.
  void bound(std::int64_t max_bytes) { max_bytes_ = max_bytes; }

  // Null: none is called so, or it has left memory.
  Held find(std::string_view name) const;
  // Reads it again where it has left. Errors: kUsage (none is called so), load()'s.
  Result<Held> acquire(std::string_view name);
  // In the order in which they were loaded. Never null.
  AdapterNames names() const;
  // Adapters that requests find or hold take so much.
  std::int64_t num_bytes() const;
  void describe(EngineStats& stats) const;

 private:
  struct Listed {
    AdapterConfig config;
    bool may_leave = false;
    std::shared_ptr<const Entry> entry;  // null: it has left memory
    std::int64_t num_bytes = 0;          // when it was last there

    bool is_idle() const { return may_leave && entry != nullptr && entry.use_count() == 1; }
  };

  // `expected_bytes`: its packed size, where that is known. Without room for it the file is not read.
  Result<std::shared_ptr<const Entry>> read(const AdapterConfig& config, std::int64_t expected_bytes);
  Status make_room(const AdapterConfig& config, std::int64_t packed_bytes, std::int64_t read_bytes);
  void publish_names();
  std::vector<Listed>::iterator place_of(std::string_view name);
  std::int64_t alive_bytes() const;
  Held hold(std::string_view name) const;

  const model::Model& model_;
  backend::Backend& backend_;
  const AdapterType type_;
  std::int64_t max_bytes_ = 0;  // 0: any
  std::mutex loading_;          // before mutex_
  mutable std::mutex mutex_;    // all below
  std::vector<Listed> listed_;
  AdapterNames names_ = std::make_shared<const std::vector<std::string>>();
  mutable std::vector<std::weak_ptr<const Entry>> alive_;
  std::int64_t num_loads_ = 0, num_evictions_ = 0, num_reloads_ = 0;
};

}  // namespace kvasir
