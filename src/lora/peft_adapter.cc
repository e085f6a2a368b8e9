#include "lora/peft_adapter.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "io/json_file.h"
#include "io/mmap_file.h"
#include "io/safetensors.h"
#include "lora/tensor_pairs.h"
#include "quant/dtype.h"

namespace kvasir::lora {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::string_view kConfig = "adapter_config.json", kWeights = "adapter_model.safetensors";

std::unexpected<Error> refused(std::string_view what) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", kConfig, what));
}

// The factor of each module.
class Factors {
 public:
  static Result<Factors> read(simdjson::dom::object config) {
    Factors factors;
    if (double alpha = 0; config["lora_alpha"].get(alpha) == simdjson::SUCCESS) {
      factors.alpha_ = alpha;
    } else {
      return refused("lora_alpha is missing");
    }
    bool is_rank_stabilised = false;
    if (config["use_rslora"].get(is_rank_stabilised) == simdjson::SUCCESS) factors.is_rank_stabilised_ = is_rank_stabilised;
    std::int64_t rank = 0;
    if (simdjson::dom::element value; config["r"].get(value) == simdjson::SUCCESS) {
      if (value.get(rank) != simdjson::SUCCESS || rank < 1) return refused("r: must be a whole number above 0");
    }
    simdjson::dom::object ranks;
    const bool has_others = config["rank_pattern"].get(ranks) == simdjson::SUCCESS && ranks.size() > 0;
    factors.rank_ = has_others ? 0 : rank;
    simdjson::dom::object alphas;
    if (config["alpha_pattern"].get(alphas) != simdjson::SUCCESS) return factors;
    for (const auto [name, json] : alphas) {
      double alpha = 0;
      if (json.get(alpha) != simdjson::SUCCESS) return refused("alpha_pattern: a value is no number");
      const auto is_of_path = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
      if (!std::ranges::all_of(std::string_view(name), is_of_path)) {
        return refused(fmt::format("alpha_pattern: \"{}\" is no module's name", printable(name)));
      }
      factors.alphas_.emplace_back(name, alpha);
    }
    return factors;
  }

  // The rank of all modules; 0: they differ, or the file does not say.
  std::int64_t rank() const { return rank_; }
  // As PEFT has it: the first pattern that the module's name ends with.
  float of(std::string_view module, std::int32_t rank) const {
    double alpha = alpha_;
    for (const auto& [name, value] : alphas_) {
      const bool is_end = module == name || (module.ends_with(name) && module[module.size() - name.size() - 1] == '.');
      if (!is_end) continue;
      alpha = value;
      break;
    }
    return static_cast<float>(alpha / (is_rank_stabilised_ ? std::sqrt(rank) : rank));
  }

 private:
  double alpha_ = 0;
  bool is_rank_stabilised_ = false;
  std::int64_t rank_ = 0;
  std::vector<std::pair<std::string, double>> alphas_;
};

// Refuses settings that change the numbers otherwise than is done here.
Status check_config(simdjson::dom::object config) {
  std::string_view text;
  if (config["peft_type"].get(text) == simdjson::SUCCESS && text != "LORA") {
    return refused(fmt::format("peft_type: must be \"LORA\", is \"{}\"", printable(text)));
  }
  if (config["bias"].get(text) == simdjson::SUCCESS && text != "none") {
    return refused(fmt::format("bias: must be \"none\", is \"{}\"", printable(text)));
  }
  for (const std::string_view name : {"use_dora", "fan_in_fan_out", "lora_bias", "use_qalora"}) {
    bool is_on = false;
    if (config[name].get(is_on) == simdjson::SUCCESS && is_on) return refused(fmt::format("{}: it is not supported", name));
  }
  for (const std::string_view name : {"modules_to_save", "alora_invocation_tokens", "target_parameters", "trainable_token_indices"}) {
    simdjson::dom::element value;
    if (config[name].get(value) != simdjson::SUCCESS || value.is_null()) continue;
    simdjson::dom::array list;
    if (value.get(list) == simdjson::SUCCESS && list.size() == 0) continue;
    return refused(fmt::format("{}: it is not supported", name));
  }
  return {};
}

std::string_view without_wrapper(std::string_view module) {
  for (const std::string_view wrapper : {"base_model.model.", "model.language_model.", "language_model.model.", "model."}) {
    if (module.starts_with(wrapper)) module.remove_prefix(wrapper.size());
  }
  return module;
}

// "layers.3.mlp.up_proj" by "layers.*.mlp.up_proj": 3.
std::optional<std::int32_t> match(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos || pattern.find('*', star + 1) != pattern.npos) return std::nullopt;
  const std::string_view before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (!name.starts_with(before) || !name.ends_with(behind) || name.size() <= before.size() + behind.size()) return std::nullopt;
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - behind.size());
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

// The tensor's name in GGUF files.
Result<std::string> name_of_module(std::string_view module, const io::HfMapping* folder) {
  const std::string_view name = without_wrapper(module);
  const std::span<const io::HfName> own = folder == nullptr ? std::span<const io::HfName>() : folder->names;
  const std::span<const io::HfName> common = folder == nullptr ? io::kLlamaNames : folder->common_names;
  for (const std::span<const io::HfName> names : {own, common}) {
    for (const io::HfName& row : names) {
      const std::optional<std::int32_t> layer = match(row.folder, name);
      if (!layer) continue;
      if (row.transform != io::HfTransform::kNone || row.part != io::HfPart::kAll) break;
      std::string found(row.gguf);
      found.replace(found.find('*'), 1, std::to_string(*layer));
      return found + ".weight";
    }
  }
  return make_error(ErrorKind::kBadFile, fmt::format("{}: adapters of such modules are not supported", printable(module)));
}

Result<std::vector<float>> numbers_of(const io::SafetensorsTensor& tensor) {
  struct Known {
    std::string_view name;
    DType dtype;
  };
  constexpr std::array kTypes = {Known{"F32", DType::kF32}, Known{"F16", DType::kF16}, Known{"BF16", DType::kBF16}};
  const auto* const type = std::ranges::find(kTypes, tensor.dtype, &Known::name);
  if (type == kTypes.end()) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: type {} is not supported", printable(tensor.name), printable(tensor.dtype)));
  }
  const std::vector<std::byte> aligned(tensor.data.begin(), tensor.data.end());  // it may start at any address
  std::vector<float> numbers(static_cast<std::size_t>(tensor.num_elements()));
  info_of(type->dtype).unpack_row(aligned.data(), tensor.num_elements(), numbers.data());
  return numbers;
}

// Rows of heads whose halves turn together become rows whose neighbours do.
void interleave_rows(AdapterTensor& tensor, std::int32_t num_heads) {
  const std::int64_t head_dim = tensor.num_outputs / num_heads;
  std::vector<float> ordered(tensor.b.size());
  for (std::int64_t row = 0; row < tensor.num_outputs; ++row) {
    const std::int64_t head = row / head_dim, i = row % head_dim;
    const std::int64_t from = head * head_dim + i / 2 + i % 2 * (head_dim / 2);
    std::copy_n(tensor.b.begin() + from * tensor.rank, tensor.rank, ordered.begin() + row * tensor.rank);
  }
  tensor.b = std::move(ordered);
}

Status add_tensor(const io::SafetensorsTensor& stored, const io::HfMapping* folder, TensorPairs& pairs,
                  std::vector<std::pair<std::string, std::string>>& modules) {
  std::string_view name = stored.name;
  const bool is_a = name.contains(".lora_A."), is_b = name.contains(".lora_B.");
  if (is_a == is_b || !name.ends_with(".weight") || stored.shape.size() != 2) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: tensors of this kind are not supported", printable(name)));
  }
  const std::string_view module = name.substr(0, name.find(is_a ? ".lora_A." : ".lora_B."));
  KVASIR_TRY(const std::string known, name_of_module(module, folder));
  KVASIR_TRY(std::vector<float> numbers, numbers_of(stored));
  if (is_a) modules.emplace_back(known, module);
  return is_a ? pairs.add_a(known, stored.shape[0], stored.shape[1], std::move(numbers))
              : pairs.add_b(known, stored.shape[0], stored.shape[1], std::move(numbers));
}

}  // namespace

std::int64_t num_peft_numbers(const std::string& folder) {
  std::error_code error;
  const std::uintmax_t num_bytes = std::filesystem::file_size(folder + "/" + std::string(kWeights), error);
  return error ? 0 : static_cast<std::int64_t>(num_bytes / 2);  // of halves
}

Result<std::vector<AdapterTensor>> read_peft_adapter(const std::string& folder, const model::ModelConfig& config) {
  KVASIR_TRY(const io::JsonFile json, io::JsonFile::open(folder + "/" + std::string(kConfig), kMaxConfigBytes));
  KVASIR_CHECKED(check_config(json.root()));
  KVASIR_TRY(const Factors factors, Factors::read(json.root()));
  const std::string path = folder + "/" + std::string(kWeights);
  KVASIR_TRY(const io::MmapFile file, io::MmapFile::open(path));
  KVASIR_TRY(const std::vector<io::SafetensorsTensor> stored, io::parse_safetensors(file.bytes(), kWeights));
  const io::HfMapping* const mapping = model::folder_of_architecture(config.architecture);
  TensorPairs pairs;
  std::vector<std::pair<std::string, std::string>> modules;  // by the tensor's name
  for (const io::SafetensorsTensor& tensor : stored) KVASIR_CHECKED(add_tensor(tensor, mapping, pairs, modules));
  KVASIR_TRY(std::vector<AdapterTensor> tensors, pairs.finish());
  const bool is_ordered = mapping != nullptr && mapping->rope_by_halves && config.rope_style != backend::RopeStyle::kHalves;
  for (AdapterTensor& tensor : tensors) {
    const auto module = std::ranges::find(modules, tensor.name, &std::pair<std::string, std::string>::first);
    if (factors.rank() != 0 && tensor.rank != factors.rank()) {
      return make_error(ErrorKind::kBadFile, fmt::format("{} has rank {}, {} says r {}", printable(module->second), tensor.rank, kConfig, factors.rank()));
    }
    tensor.factor = factors.of(module->second, tensor.rank);
    const std::int32_t num_heads = tensor.name.ends_with("attn_q.weight")   ? config.num_heads
                                   : tensor.name.ends_with("attn_k.weight") ? config.num_kv_heads
                                                                            : 0;
    if (is_ordered && num_heads > 0 && tensor.num_outputs % (2 * num_heads) == 0) interleave_rows(tensor, num_heads);
  }
  return tensors;
}

}  // namespace kvasir::lora
