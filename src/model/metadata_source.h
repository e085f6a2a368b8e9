// A model file of metadata and an embedding alone, for tests of configurations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/weight_source.h"

namespace kvasir::model {

using MetadataMap = std::map<std::string, io::MetadataValue, std::less<>>;

class MetadataSource final : public io::WeightSource {
 public:
  // An embedding of ten tokens; the other tensors, [1, 8] each, have no data.
  explicit MetadataSource(MetadataMap values, const std::vector<std::string>& other_tensors = {})
      : metadata_(std::move(values)) {
    add("token_embd.weight", {168, 10, 1, 1});
    for (const std::string& name : other_tensors) add(name, {8, 1, 1, 1});
  }
  const io::Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    for (const TensorView& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  void release_pages(const TensorView&) const override {}
  std::string_view description() const override { return "memory"; }

 private:
  void add(const std::string& name, std::array<std::int64_t, 4> shape) {
    TensorView& tensor = tensors_.emplace_back();
    tensor.name = name;
    tensor.rank = 2;
    tensor.shape = shape;
  }

  io::Metadata metadata_;
  std::vector<TensorView> tensors_;
};

}  // namespace kvasir::model
