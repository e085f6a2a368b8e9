// The adapters that a model was loaded with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "model/model.h"

namespace kvasir {

// Thread safety: const members may be called from any thread.
class AdapterSet {
 public:
  struct Entry {
    std::string name;
    std::uint64_t version = 0;  // of its numbers
    std::unique_ptr<backend::Adapter> weights;
  };

  // Reads and packs them; the model is the backend's. Errors: kBadFile naming the path, kUsage (two of one name), kUnmet
  // for a device that runs none, kMachine (memory).
  static Result<AdapterSet> load(std::span<const AdapterConfig> configs, const model::Model& model,
                                 backend::Backend& backend);

  // Null: none is called so.
  const Entry* find(std::string_view name) const;
  std::vector<std::string> names() const;
  std::int64_t num_bytes() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace kvasir
