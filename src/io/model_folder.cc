#include "io/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "io/hf_metadata.h"
#include "io/hf_quantization.h"
#include "io/hf_tensors.h"
#include "io/safetensors_set.h"
#include "io/sentence_modules.h"

namespace kvasir::io {
namespace {

class FolderSource final : public WeightSource {
 public:
  FolderSource(std::string folder, std::vector<SafetensorsSet> files, Metadata metadata, MappedTensors mapped)
      : folder_(std::move(folder)), files_(std::move(files)), metadata_(std::move(metadata)) {
    left_out_ = std::move(mapped.left_out);
    for (MappedTensor& tensor : mapped.tensors) {
      tensors_.push_back(std::move(tensor.view));
      rows_.push_back(std::move(tensor.rows));
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.push_back(i);
    std::ranges::sort(by_name_, {}, [this](std::size_t i) -> const std::string& { return tensors_[i].name; });
  }

  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::string_view description() const override { return folder_; }
  std::span<const std::string> left_out() const override { return left_out_; }

  const TensorView* find(std::string_view name) const override {
    const auto name_of = [this](std::size_t i) -> const std::string& { return tensors_[i].name; };
    const auto it = std::ranges::lower_bound(by_name_, name, {}, name_of);
    return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
  }

  TensorView rows(const TensorView& tensor, std::int64_t begin, std::int64_t end,
                  std::vector<std::byte>& scratch) const override {
    if (tensor.data != nullptr) return tensor.rows(begin, end);
    TensorView slice{.name = tensor.name, .dtype = tensor.dtype, .rank = 2, .shape = {tensor.row_length(), end - begin, 1, 1}};
    scratch.resize(static_cast<std::size_t>(slice.num_bytes()));
    reader_of(tensor).read(begin, end, scratch.data());
    slice.data = scratch.data();
    return slice;
  }

  void release_pages(const TensorView& tensor) const override {
    MmapFile::release_pages({tensor.data, static_cast<std::size_t>(tensor.num_bytes())});
  }
  void release_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) const override {
    reader_of(tensor).release(begin, end);
  }

 private:
  // Requires: there is a tensor of that name.
  const RowReader& reader_of(const TensorView& tensor) const {
    const TensorView* own = find(tensor.name);
    CHECK(own != nullptr);
    return *rows_[static_cast<std::size_t>(own - tensors_.data())];
  }

  std::string folder_;
  std::vector<SafetensorsSet> files_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<RowReaderPtr> rows_;  // by the index of the tensor
  std::vector<std::size_t> by_name_;
  std::vector<std::string> left_out_;
};

// Pooling and dense layers under GGUF's keys and names, the first dense layer as dense_2; and prompts.
void map_modules(const SentenceModules& modules, const std::string& prefix, MetadataValues& values) {
  if (modules.pooling) values[prefix + "pooling_type"] = static_cast<std::int64_t>(*modules.pooling);
  for (const auto& [name, text] : modules.prompts) values[fmt::format("{}{}", kPromptKeyPrefix, name)] = text;
  if (!modules.default_prompt_name.empty()) values[std::string(kDefaultPromptKey)] = modules.default_prompt_name;
  for (std::size_t i = 0; i < modules.dense.size(); ++i) {
    values[fmt::format("{}dense_{}_feat_in", prefix, i + 2)] = modules.dense[i].in_features;
    values[fmt::format("{}dense_{}_feat_out", prefix, i + 2)] = modules.dense[i].out_features;
  }
}

// The weight of each dense layer, from a file of its own.
Status add_dense(const SentenceModules& modules, std::vector<SafetensorsSet>& files, MappedTensors& mapped) {
  for (std::size_t i = 0; i < modules.dense.size(); ++i) {
    const DenseModule& dense = modules.dense[i];
    KVASIR_TRY(SafetensorsSet file, SafetensorsSet::open(dense.folder));
    const std::span<const SafetensorsTensor> stored = file.tensors();
    const std::vector shape = {dense.out_features, dense.in_features};
    if (stored.size() != 1 || stored[0].name != "linear.weight" || stored[0].shape != shape) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: must hold linear.weight of {} x {} alone",
                                                         printable_line(dense.folder), shape[0], shape[1]));
    }
    KVASIR_TRY(FolderWeight weight, stored_floats(stored[0]));
    TensorView view{.name = fmt::format("dense_{}.weight", i + 2),
                    .dtype = weight.rows->dtype(),
                    .rank = 2,
                    .shape = {dense.in_features, dense.out_features, 1, 1},
                    .data = weight.rows->stored()};
    mapped.tensors.push_back({std::move(view), std::move(weight.rows)});
    files.push_back(std::move(file));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_folder(const std::string& folder, const HfConfig& config,
                                                  const HfMapping& mapping, const FolderTexts& texts,
                                                  ComputedFloats floats) {
  KVASIR_TRY(HfMetadata metadata, map_config(config, mapping));
  KVASIR_CHECKED(map_texts(folder, texts, metadata.values));
  KVASIR_TRY(const HfQuantization quantization, HfQuantization::read(config, floats));
  const std::string prefix = std::string(mapping.architecture) + ".";
  KVASIR_TRY(const SentenceModules modules, read_sentence_modules(folder));
  map_modules(modules, prefix, metadata.values);
  Metadata values(std::move(metadata.values));
  KVASIR_TRY(const HfLayers layers, layers_of(config, mapping, values));
  std::vector<SafetensorsSet> files(1);
  KVASIR_TRY(files[0], SafetensorsSet::open(folder));
  auto mapped = map_tensors(files[0].tensors(), mapping, layers, quantization);
  if (!mapped) {
    return make_error(mapped.error().kind, fmt::format("{}: {}", printable_line(folder), mapped.error().message));
  }
  for (auto& [name, row] : metadata.vectors) {
    RowReaderPtr rows = computed_row(std::move(row));
    TensorView view{.name = name, .rank = 1, .shape = {rows->row_length(), 1, 1, 1}, .data = rows->stored()};
    mapped->tensors.push_back({std::move(view), std::move(rows)});
  }
  KVASIR_CHECKED(add_dense(modules, files, *mapped));
  return std::make_unique<FolderSource>(folder, std::move(files), std::move(values), std::move(*mapped));
}

}  // namespace kvasir::io
