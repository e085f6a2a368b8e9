#include "io/hf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "io/hf_config.h"
#include "io/hf_quantization.h"
#include "io/metadata.h"

namespace kvasir::io {
namespace {

// Prefixes of the names of the tables: the classes that wrap the layers.
constexpr std::string_view kWrappers[] = {"model.language_model.", "language_model.model.", "language_model.",
                                          "model.",                "gpt_neox.",             "transformer.",
                                          "bert.",                 "roberta."};
// Parts that see, hear, or guess several tokens ahead; and tables that follow from the configuration.
constexpr std::string_view kLeftOutBeginnings[] = {
    "vision_tower.",  "vision_model.", "visual.",      "vision_encoder.",      "multi_modal_projector.",
    "audio_tower.",   "embed_vision.", "embed_audio.", "vision_language_adapter.", "patch_merger.",
    "image_newline",  "mtp."};
constexpr std::string_view kLeftOutEndings[] = {
    ".rotary_emb.inv_freq", ".attention.masked_bias", ".attention.bias",     "embeddings.position_ids",
    ".k_scale",             ".v_scale",               ".q_scale",            ".input_scale",
    ".input_global_scale",  ".activation_scale",      ".input_zero_point"};
// The last parts of names that belong to one weight.
constexpr std::string_view kParameters[] = {
    "weight",       "bias",        "weight_scale",      "weight_scale_inv",    "weight_packed",       "weight_shape",
    "weight_g_idx", "qweight",     "weight_zero_point", "weight_global_scale", "qzeros",              "scales",
    "g_idx"};
constexpr std::string_view kJoinedParameters[] = {"_blocks", "_scales", "_bias"};  // of fused experts

std::unexpected<Error> bad_tensor(std::string_view name, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: {}", printable(name), problem));
}

std::string_view without_wrapper(std::string_view name) {
  for (const std::string_view wrapper : kWrappers) {
    if (name.starts_with(wrapper)) return name.substr(wrapper.size());
  }
  return name;
}

// "layers.0.mlp.up_proj", "weight"
std::pair<std::string_view, std::string_view> split_parameter(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot != name.npos && std::ranges::find(kParameters, name.substr(dot + 1)) != std::end(kParameters)) {
    return {name.substr(0, dot), name.substr(dot + 1)};
  }
  for (const std::string_view ending : kJoinedParameters) {
    if (name.ends_with(ending)) return {name.substr(0, name.size() - ending.size()), ending.substr(1)};
  }
  return {name, "weight"};
}

// The numbers that the pattern's stars stand for.
struct Match {
  std::array<std::int64_t, 2> numbers{};
  int num_stars = 0;
};

std::optional<Match> match_name(std::string_view pattern, std::string_view name) {
  Match match;
  std::size_t at = 0;
  for (const char c : pattern) {
    if (c != '*') {
      if (at >= name.size() || name[at++] != c) return std::nullopt;
      continue;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), number);
    if (error != std::errc() || number < 0 || match.num_stars == 2) return std::nullopt;
    at = static_cast<std::size_t>(end - name.data());
    match.numbers[static_cast<std::size_t>(match.num_stars++)] = number;
  }
  return at == name.size() ? std::optional(match) : std::nullopt;
}

// The GGUF name, with the layer in the place of its star.
std::string gguf_name(const HfName& row, const Match& match, std::string_view parameter) {
  std::string name(row.gguf);
  if (const std::size_t star = name.find('*'); star != name.npos) name.replace(star, 1, std::to_string(match.numbers[0]));
  const bool is_whole = name.ends_with(".weight") || name.ends_with(".bias") || name.ends_with(".scale");
  return is_whole ? name : fmt::format("{}.{}", name, parameter);
}

float plus_one(float value) { return value + 1.0f; }
float negated_exp(float value) { return -std::exp(value); }

// Begin, step and count of the part of `size` rows or elements.
RowSelection selection_of(HfPart part, std::int64_t size) {
  RowSelection selection{.rows_per_matrix = size, .count = size / 2};
  if (part == HfPart::kEven || part == HfPart::kOdd) selection.step = 2;
  if (part == HfPart::kOdd) selection.begin = 1;
  if (part == HfPart::kSecondHalf) selection.begin = size / 2;
  return selection;
}

// All elements of a vector, or of several, as rows of one.
FolderWeight by_elements(FolderWeight weight) {
  const std::byte* data = weight.rows->stored();
  weight.rows = stored_rows(weight.rows->dtype(), weight.rows->num_rows() * weight.rows->row_length(), 1, data);
  weight.shape.insert(weight.shape.begin(), 1);
  return weight;
}

// The other way round.
FolderWeight by_vectors(FolderWeight weight) {
  weight.shape.erase(weight.shape.begin());
  weight.rows = joined_rows(std::move(weight.rows), weight.shape.front());
  return weight;
}

// Makes the tensors of GGUF's names.
class TensorMapper {
 public:
  TensorMapper(const HfMapping& mapping, const HfLayers& layers, const HfQuantization& quantization)
      : mapping_(mapping), layers_(layers), quantization_(quantization) {}

  Result<MappedTensors> map(std::span<const SafetensorsTensor> stored) {
    run(stored, /*stops=*/true);
    if (!faults_.empty()) return std::unexpected(std::move(faults_.front()));
    return std::move(out_);
  }

  std::vector<Error> faults(std::span<const SafetensorsTensor> stored) {
    run(stored, /*stops=*/false);
    return std::move(faults_);
  }

 private:
  // With `stops` only as far as the first fault.
  void run(std::span<const SafetensorsTensor> stored, bool stops) {
    if (!passes(group(stored))) return;
    for (const std::string& module : order_) {
      const bool is_good = passes(check_bias(module, modules_.at(module))) && passes(map_module(module, modules_.at(module)));
      if (!is_good && stops) return;
    }
    for (const std::string& name : gguf_order_) {
      if (!passes(finish(name)) && stops) return;
    }
  }

  bool passes(const Status& status) {
    if (!status) faults_.push_back(status.error());
    return status.has_value();
  }

  // A tensor of GGUF's name while its parts are found.
  struct Draft {
    std::map<std::int64_t, FolderWeight> experts;  // by number; one of number 0 when there is no expert in the name
    bool is_stack = false;
  };

  bool is_left_out(std::string_view name) const {
    const auto begins = [name](std::string_view beginning) { return name.starts_with(beginning); };
    const auto ends = [name](std::string_view ending) { return name.ends_with(ending); };
    if (std::ranges::any_of(kLeftOutBeginnings, begins) || std::ranges::any_of(kLeftOutEndings, ends)) return true;
    if (std::ranges::any_of(mapping_.left_out, begins)) return true;
    const std::string_view in_layer = name.substr(0, name.find('.', std::min(name.size(), kLayers.size())));
    const auto layer = match_name("layers.*", in_layer);
    const std::int64_t first = layers_.num_layers;
    return layer && layer->numbers[0] >= first && layer->numbers[0] < first + layers_.num_extra_layers;
  }

  Status group(std::span<const SafetensorsTensor> stored) {
    for (const SafetensorsTensor& tensor : stored) {
      const std::string_view name = without_wrapper(tensor.name);
      if (is_left_out(name)) {
        out_.left_out.push_back(tensor.name);
        continue;
      }
      const auto [module, parameter] = split_parameter(name);
      const auto [it, is_new] = modules_.try_emplace(std::string(module));
      if (is_new) order_.push_back(it->first);
      if (!it->second.emplace(parameter, &tensor).second) {
        return bad_tensor(tensor.name, "appears twice, in two files or behind two prefixes");
      }
    }
    return {};
  }

  Status check_bias(const std::string& module, const HfParameters& parameters) const {
    if (parameters.contains("bias")) return {};
    for (const HfBias& bias : layers_.biases) {
      if (!match_name(bias.folder, module)) continue;
      return bad_tensor(module + ".bias", bias.config.empty()
                                              ? fmt::format("missing, and every {} has one", mapping_.architecture)
                                              : fmt::format("missing, as {} asks for it", bias.config));
    }
    return {};
  }

  Status map_module(const std::string& module, const HfParameters& parameters) {
    bool is_known = false;
    const auto map_rows = [&](std::span<const HfName> rows) -> Status {
      for (const HfName& row : rows) {
        const auto match = match_name(row.folder, module);
        if (!match) continue;
        is_known = true;
        KVASIR_CHECKED(map_row(row, *match, module, parameters));
      }
      return {};
    };
    KVASIR_CHECKED(map_rows(mapping_.names));
    if (!is_known) KVASIR_CHECKED(map_rows(mapping_.common_names));
    if (is_known) return {};
    return bad_tensor(parameters.begin()->second->name,
                      fmt::format("not part of a {} as Kvasir knows it", mapping_.architecture));
  }

  Status map_row(const HfName& row, const Match& match, const std::string& module, const HfParameters& parameters) {
    const bool has_only_bias = parameters.size() == 1 && parameters.contains("bias");
    if (!has_only_bias) {
      const auto make = [&] { return quantization_.weight(module, parameters); };
      KVASIR_CHECKED(add(row, match, "weight", parameters, make));
    }
    if (const auto bias = parameters.find("bias"); bias != parameters.end()) {
      KVASIR_CHECKED(add(row, match, "bias", parameters, [&] { return stored_floats(*bias->second); }));
    }
    return {};
  }

  // `make` gives the stored weight, each time anew.
  template <class Make>
  Status add(const HfName& row, const Match& match, std::string_view parameter, const HfParameters& parameters,
             const Make& make) {
    auto weight = transformed(row, parameter == "bias", make);
    if (!weight) return std::unexpected(std::move(weight).error());
    const std::string name = gguf_name(row, match, parameter);
    const auto [it, is_new] = drafts_.try_emplace(name);
    if (is_new) gguf_order_.push_back(name);
    it->second.is_stack = match.num_stars == 2;
    if (it->second.experts.emplace(match.numbers[1], std::move(*weight)).second) return {};
    return bad_tensor(parameters.begin()->second->name, fmt::format("is a second {}", name));
  }

  template <class Make>
  Result<FolderWeight> transformed(const HfName& row, bool is_bias, const Make& make) const {
    KVASIR_TRY(FolderWeight weight, make());
    if (row.transform == HfTransform::kPlusOne) weight.rows = converted_rows(std::move(weight.rows), plus_one);
    if (row.transform == HfTransform::kNegExp) weight.rows = converted_rows(std::move(weight.rows), negated_exp);
    const bool is_stored = weight.rows->stored() != nullptr;
    if (row.transform == HfTransform::kTranspose && is_stored && !is_bias) {
      if (weight.shape.size() < 2) return wrong_form(row);
      weight.rows = transposed_rows(std::move(weight.rows), weight.shape[1]);
      std::swap(weight.shape[0], weight.shape[1]);
    }
    if (row.transform == HfTransform::kSplitHeads) return split_heads(row, is_bias, make);
    if (row.part == HfPart::kAll) return weight;
    return part_of(row, std::move(weight), is_bias);
  }

  static std::unexpected<Error> wrong_form(const HfName& row) {
    return bad_tensor(row.folder, "is stored in a form that cannot be rearranged for this architecture");
  }

  static Result<FolderWeight> part_of(const HfName& row, FolderWeight weight, bool is_bias) {
    if (is_bias) weight = by_elements(std::move(weight));
    if (weight.shape.size() < 2 || weight.shape[1] % 2 != 0) return wrong_form(row);
    weight.rows = selected_rows(std::move(weight.rows), selection_of(row.part, weight.shape[1]));
    weight.shape[1] /= 2;
    return is_bias ? by_vectors(std::move(weight)) : std::move(weight);
  }

  template <class Make>
  Result<FolderWeight> split_heads(const HfName& row, bool is_bias, const Make& make) const {
    std::vector<RowReaderPtr> parts;
    std::vector<std::int64_t> shape;
    for (std::int64_t part = 0; part < 3; ++part) {
      KVASIR_TRY(FolderWeight weight, make());
      if (is_bias) weight = by_elements(std::move(weight));
      if (weight.shape.size() != 2 || weight.shape[1] % (3 * layers_.num_heads) != 0) return wrong_form(row);
      const std::int64_t width = weight.shape[1] / (3 * layers_.num_heads);
      parts.push_back(selected_rows(std::move(weight.rows),
                                    {.rows_per_matrix = 3 * width, .begin = part * width, .count = width}));
      shape = weight.shape;
    }
    FolderWeight split{stacked_rows(std::move(parts)), std::move(shape)};
    return is_bias ? by_vectors(std::move(split)) : std::move(split);
  }

  Status finish(const std::string& name) {
    Draft& draft = drafts_.at(name);
    FolderWeight& first = draft.experts.begin()->second;
    std::vector<std::int64_t> shape = first.shape;
    RowReaderPtr rows;
    if (draft.is_stack) {
      KVASIR_CHECKED(check_experts(name, draft));
      shape.push_back(std::ssize(draft.experts));
      std::vector<RowReaderPtr> parts;
      for (auto& [number, expert] : draft.experts) parts.push_back(std::move(expert.rows));
      rows = stacked_rows(std::move(parts));
    } else {
      rows = std::move(first.rows);
    }
    if (shape.size() > 4) return bad_tensor(name, fmt::format("has {} axes, allowed are at most 4", shape.size()));
    TensorView view{.name = name,
                    .dtype = rows->dtype(),
                    .rank = static_cast<std::int32_t>(shape.size()),
                    .data = rows->stored()};
    std::ranges::copy(shape, view.shape.begin());
    out_.tensors.push_back({std::move(view), std::move(rows)});
    return {};
  }

  static Status check_experts(const std::string& name, const Draft& draft) {
    const FolderWeight& first = draft.experts.begin()->second;
    std::int64_t expected = 0;
    for (const auto& [number, expert] : draft.experts) {
      if (number != expected) return bad_tensor(name, fmt::format("expert {} is missing", expected));
      if (expert.shape != first.shape || expert.rows->dtype() != first.rows->dtype()) {
        return bad_tensor(name, fmt::format("expert {} has another shape or type than expert 0", number));
      }
      ++expected;
    }
    return {};
  }

  static constexpr std::string_view kLayers = "layers.";

  const HfMapping& mapping_;
  const HfLayers& layers_;
  const HfQuantization& quantization_;
  std::map<std::string, HfParameters, std::less<>> modules_;
  std::vector<std::string> order_, gguf_order_;
  std::map<std::string, Draft> drafts_;
  std::vector<Error> faults_;
  MappedTensors out_;
};

}  // namespace

Result<HfLayers> layers_of(const HfConfig& config, const HfMapping& mapping, const Metadata& values) {
  const std::string prefix = std::string(mapping.architecture) + ".";
  HfLayers layers;
  KVASIR_TRY(layers.num_layers, values.get_int(prefix + "block_count", 1, 1 << 20));
  KVASIR_TRY(layers.num_heads, values.get_int(prefix + "attention.head_count", 1, 1 << 20));
  KVASIR_TRY(const auto extra, config.find_int("num_nextn_predict_layers"));
  layers.num_extra_layers = std::clamp<std::int64_t>(extra.value_or(0), 0, 1 << 20);
  for (const HfBias& bias : mapping.biases) {
    KVASIR_TRY(const auto says, config.find_bool(bias.config));
    if (bias.config.empty() || says.value_or(bias.of_class)) layers.biases.push_back(bias);
  }
  return layers;
}

Result<MappedTensors> map_tensors(std::span<const SafetensorsTensor> stored, const HfMapping& mapping,
                                  const HfLayers& layers, const HfQuantization& quantization) {
  return TensorMapper(mapping, layers, quantization).map(stored);
}

std::vector<Error> tensor_faults(std::span<const SafetensorsTensor> stored, const HfMapping& mapping,
                                 const HfLayers& layers, const HfQuantization& quantization) {
  return TensorMapper(mapping, layers, quantization).faults(stored);
}

}  // namespace kvasir::io
