// The adapters that requests may name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "lora/adapter_file.h"
#include "model/model.h"

namespace kvasir {

// They come and go while the model runs. A request keeps the one that it began with, whatever becomes of its name.
//
// Thread safety: all members may be called from any thread; of several loads one runs at a time.
class AdapterSet {
 public:
  struct Entry {
    std::string name;
    std::uint64_t version = 0;  // of its numbers
    std::unique_ptr<backend::Adapter> weights;
  };

  // Model and backend outlive this and all that is held of it.
  AdapterSet(const model::Model& model, backend::Backend& backend) : model_(model), backend_(backend) {}

  // Reads and packs one, which takes the place of the one that has its name. Errors: kBadFile naming the path, kUsage
  // (more than bound() allows), kUnavailable (more than is left of it), kUnmet for a device that runs none, kMachine
  // (memory).
  Status load(const AdapterConfig& config);
  // Nobody finds it any more. Error: kNotFound.
  Status unload(std::string_view name);
  // All of them may take so much, with the floats of a file that is read. Before the call there is no bound.
  void bound(std::int64_t max_bytes) { max_bytes_ = max_bytes; }

  // Null: none is called so.
  std::shared_ptr<const Entry> find(std::string_view name) const;
  // In the order in which they were loaded. Never null.
  AdapterNames names() const;
  // Adapters that requests find or hold take so much.
  std::int64_t num_bytes() const;
  void describe(EngineStats& stats) const;

 private:
  using Entries = std::vector<std::shared_ptr<const Entry>>;

  Status check_room(const AdapterConfig& config, std::int64_t packed_bytes, std::int64_t read_bytes) const;
  void publish(Entries entries);

  const model::Model& model_;
  backend::Backend& backend_;
  std::int64_t max_bytes_ = 0;  // 0: any
  std::mutex loading_;          // before mutex_
  mutable std::mutex mutex_;    // the four below
  Entries entries_;
  AdapterNames names_ = std::make_shared<const std::vector<std::string>>();
  mutable std::vector<std::weak_ptr<const Entry>> alive_;
  std::int64_t num_loads_ = 0;
};

}  // namespace kvasir
