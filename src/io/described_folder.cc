#include "io/described_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "io/hf_metadata.h"
#include "io/hf_quantization.h"
#include "io/hf_tensors.h"
#include "io/safetensors_set.h"
#include "io/sentence_modules.h"

namespace kvasir::io {
namespace {

constexpr std::size_t kMaxTensorFaults = 8;  // named; a folder of another family has hundreds

constexpr std::pair<std::string_view, DType> kFloats[] = {
    {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16}};

class DescribedFolder final : public WeightSource {
 public:
  DescribedFolder(std::string folder, SafetensorsSet files, MetadataValues values, std::vector<std::string> faults)
      : folder_(std::move(folder)), files_(std::move(files)), metadata_(std::move(values)), faults_(std::move(faults)) {
    for (const SafetensorsTensor& tensor : files_.tensors()) add(tensor);
  }

  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::span<const UnsupportedTensor> unsupported() const override { return others_; }
  std::string_view description() const override { return folder_; }
  std::span<const std::string> faults() const override { return faults_; }

  const TensorView* find(std::string_view name) const override {
    const auto it = std::ranges::find(tensors_, name, &TensorView::name);
    return it == tensors_.end() ? nullptr : &*it;
  }

  void release_pages(const TensorView& tensor) const override {
    MmapFile::release_pages({tensor.data, static_cast<std::size_t>(tensor.num_bytes())});
  }

 private:
  void add(const SafetensorsTensor& stored) {
    std::vector<std::int64_t> shape(stored.shape.rbegin(), stored.shape.rend());
    if (shape.empty()) shape.push_back(1);
    const auto* const type = std::ranges::find(kFloats, stored.dtype, &std::pair<std::string_view, DType>::first);
    TensorView view{.name = stored.name, .rank = static_cast<std::int32_t>(shape.size()), .data = stored.data.data()};
    if (type != std::end(kFloats) && shape.size() <= view.shape.size()) {
      view.dtype = type->second;
      std::ranges::copy(shape, view.shape.begin());
      tensors_.push_back(std::move(view));
      return;
    }
    others_.push_back({.name = stored.name,
                       .type = stored.dtype,
                       .shape = std::move(shape),
                       .num_elements = stored.num_elements(),
                       .num_bytes = std::ssize(stored.data)});
  }

  std::string folder_;
  SafetensorsSet files_;
  Metadata metadata_;
  std::vector<std::string> faults_;
  std::vector<TensorView> tensors_;
  std::vector<UnsupportedTensor> others_;
};

void add_fault(const Error& error, std::vector<std::string>& faults) {
  if (std::ranges::find(faults, error.message) == faults.end()) faults.push_back(error.message);
}

template <class T>
bool passes(const Result<T>& result, std::vector<std::string>& faults) {
  if (!result) add_fault(result.error(), faults);
  return result.has_value();
}

// The sizes that any folder names.
void add_plain_sizes(const HfConfig& config, const std::string& architecture, MetadataValues& values) {
  constexpr std::pair<std::string_view, std::string_view> kSizes[] = {
      {"num_hidden_layers", "block_count"}, {"max_position_embeddings", "context_length"},
      {"hidden_size", "embedding_length"}};
  values["general.architecture"] = architecture;
  for (const auto& [key, gguf] : kSizes) {
    const auto size = config.find_int(key);
    if (size && *size) values[fmt::format("{}.{}", architecture, gguf)] = **size;
  }
}

// Faults of the tensors' names and forms, the rest of many as a number.
void add_tensor_faults(const std::string& folder, std::span<const Error> errors, std::vector<std::string>& faults) {
  const std::size_t num_named = errors.size() > kMaxTensorFaults ? kMaxTensorFaults - 1 : errors.size();
  for (const Error& error : errors.first(num_named)) {
    faults.push_back(fmt::format("{}: {}", printable_line(folder), error.message));
  }
  if (num_named < errors.size()) faults.push_back(fmt::format("{} more tensors likewise", errors.size() - num_named));
}

// Adds every fault of a folder whose family is known.
void add_faults(const std::string& folder, const HfConfig& config, const HfMapping& mapping, const SafetensorsSet& files,
                MetadataValues& values, std::vector<std::string>& faults) {
  std::vector<Error> errors;
  HfMetadata metadata = describe_config(config, mapping, errors);
  for (const Error& error : errors) add_fault(error, faults);
  values = std::move(metadata.values);
  passes(read_sentence_modules(folder), faults);
  const auto quantization = HfQuantization::read(config);
  if (!passes(quantization, faults)) return;
  // Without the number of layers every tensor would be a fault.
  const auto layers = layers_of(config, mapping, Metadata(values));
  if (layers) add_tensor_faults(folder, tensor_faults(files.tensors(), mapping, *layers, *quantization), faults);
}

}  // namespace

Result<std::unique_ptr<WeightSource>> describe_folder(const std::string& folder, const HfConfig& config,
                                                      const HfMapping* mapping, std::string_view architecture,
                                                      const FolderTexts& texts, const Error& why) {
  KVASIR_TRY(SafetensorsSet files, SafetensorsSet::open(folder));
  MetadataValues values;
  std::vector<std::string> faults;
  if (mapping != nullptr) {
    add_faults(folder, config, *mapping, files, values, faults);
  } else {
    add_plain_sizes(config, std::string(architecture), values);
    add_fault(why, faults);
    passes(HfQuantization::read(config), faults);
  }
  passes(map_texts(folder, texts, values), faults);
  if (faults.empty()) add_fault(why, faults);
  return std::make_unique<DescribedFolder>(folder, std::move(files), std::move(values), std::move(faults));
}

}  // namespace kvasir::io
