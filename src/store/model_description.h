// The contents of a model file, as plain data for printing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/model_summary.h"
#include "io/weight_source.h"

namespace kvasir::store {

struct TensorDescription {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;  // as in the file: the first varies fastest
  std::int64_t num_bytes = 0;
};

struct MetadataDescription {
  std::string key;
  std::string json;   // the whole value
  std::string brief;  // one line for people: long texts and arrays are cut
};

struct ModelDescription {
  std::string path;
  io::ModelSummary summary;
  std::vector<TensorDescription> tensors;     // in file order, then those of types that no kernel reads
  std::vector<MetadataDescription> metadata;  // by key; only if asked for
};

// Describes an opened model.
ModelDescription describe_model(const io::WeightSource& source, bool with_metadata);

}  // namespace kvasir::store
