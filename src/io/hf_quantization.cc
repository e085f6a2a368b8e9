#include "io/hf_quantization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "base/printable.h"

namespace kvasir::io {
namespace {

constexpr std::size_t kMaxReadAxes = 4;  // of a tensor that is read
// Of compressed-tensors; the first: none is named.
constexpr std::string_view kCompressedFormats[] = {"",
                                                   "dense",
                                                   "naive-quantized",
                                                   "int-quantized",
                                                   "float-quantized",
                                                   "pack-quantized",
                                                   "nvfp4-pack-quantized",
                                                   "mxfp4-pack-quantized",
                                                   "mixed-precision"};
constexpr std::string_view kMethods[] = {"fp8", "compressed-tensors", "gptq", "awq", "mxfp4"};

constexpr std::pair<std::string_view, DType> kFloatTypes[] = {
    {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16}};

std::unexpected<Error> bad_weight(std::string_view name, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: {}", printable(name), problem));
}

std::optional<DType> float_type(const SafetensorsTensor& tensor) {
  const auto* const type = std::ranges::find(kFloatTypes, tensor.dtype, &std::pair<std::string_view, DType>::first);
  return type == std::end(kFloatTypes) ? std::nullopt : std::optional(type->second);
}

const SafetensorsTensor* find(const HfParameters& parameters, std::string_view name) {
  const auto it = parameters.find(name);
  return it == parameters.end() ? nullptr : it->second;
}

// The parameter, of this type and so many axes, none of them empty.
Result<const SafetensorsTensor*> need(const HfParameters& parameters, std::string_view name, std::string_view dtype,
                                      std::size_t rank) {
  const SafetensorsTensor* tensor = find(parameters, name);
  if (tensor == nullptr) return bad_weight(parameters.begin()->second->name, fmt::format("has no {} beside it", name));
  if (tensor->dtype != dtype || tensor->shape.size() != rank || tensor->num_elements() == 0) {
    return bad_weight(tensor->name, fmt::format("must be {} of {} axes, is {} [{}]", dtype, rank, tensor->dtype,
                                                fmt::join(tensor->shape, ", ")));
  }
  return tensor;
}

std::unexpected<Error> wrong_size(const SafetensorsTensor& tensor, std::string_view expected) {
  return bad_weight(tensor.name,
                    fmt::format("must have the shape [{}], has [{}]", expected, fmt::join(tensor.shape, ", ")));
}

// Scales [rows, columns] in any float type.
Result<ScaleTable> scale_table(const HfParameters& parameters, std::string_view name, std::int64_t rows,
                               std::int64_t columns) {
  const SafetensorsTensor* tensor = find(parameters, name);
  if (tensor == nullptr) return bad_weight(parameters.begin()->second->name, fmt::format("has no {} beside it", name));
  const auto type = float_type(*tensor);
  if (!type) return bad_weight(tensor->name, fmt::format("has type {}, read are F32, F16 and BF16", tensor->dtype));
  if (tensor->shape != std::vector{rows, columns}) return wrong_size(*tensor, fmt::format("{}, {}", rows, columns));
  return ScaleTable{*type, tensor->data.data()};
}

std::int32_t int_at(const SafetensorsTensor& tensor, std::int64_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, tensor.data.data() + index * 4, sizeof value);
  return value;
}

// The group of each input; empty when the groups are runs, one after the other.
Result<std::vector<std::int32_t>> read_groups(const HfParameters& parameters, std::string_view name,
                                              const GroupedWeight& weight) {
  std::vector<std::int32_t> groups;
  if (find(parameters, name) == nullptr) return groups;
  KVASIR_TRY(const SafetensorsTensor* tensor, need(parameters, name, "I32", 1));
  if (tensor->shape[0] != weight.row_length) return wrong_size(*tensor, fmt::format("{}", weight.row_length));
  bool are_runs = true;
  for (std::int64_t i = 0; i < weight.row_length; ++i) {
    const std::int32_t group = int_at(*tensor, i);
    if (group < -1 || group >= weight.num_groups) {
      return bad_weight(tensor->name,
                        fmt::format("holds group {}, there are {}", group, weight.num_groups));
    }
    if (group == -1 && i == 0) return groups;  // a file that says: not used
    if (group == -1) return bad_weight(tensor->name, "holds group -1 behind others");
    are_runs = are_runs && group == i / weight.group_size;
    groups.push_back(group);
  }
  if (are_runs) groups.clear();
  return groups;
}

// Requires: both are above 0.
Status set_groups(const SafetensorsTensor& tensor, std::int64_t num_groups, GroupedWeight& weight) {
  weight.num_groups = num_groups;
  if (weight.row_length % num_groups != 0) {
    return bad_weight(tensor.name, fmt::format("{} inputs do not divide into {} groups", weight.row_length, num_groups));
  }
  weight.group_size = weight.row_length / num_groups;
  return {};
}

// The second size of weight_shape, or what the words hold.
Result<std::int64_t> compressed_inputs(const HfParameters& parameters, const SafetensorsTensor& packed) {
  constexpr int kCodesPerWord = 8;
  const SafetensorsTensor* shape = find(parameters, "weight_shape");
  if (shape == nullptr) return packed.shape[1] * kCodesPerWord;
  const bool is_wide = shape->dtype == "I64";
  if ((!is_wide && shape->dtype != "I32") || shape->num_elements() != 2) {
    return bad_weight(shape->name, "must hold two whole numbers");
  }
  std::int64_t inputs = int_at(*shape, 1);
  if (is_wide) std::memcpy(&inputs, shape->data.data() + 8, sizeof inputs);
  if (inputs >= 1 && inputs <= packed.shape[1] * kCodesPerWord) return inputs;
  return bad_weight(shape->name, fmt::format("says {} inputs, {} holds at most {}", inputs, packed.name,
                                             packed.shape[1] * kCodesPerWord));
}

Result<GroupedWeight> compressed(const HfParameters& parameters) {
  KVASIR_TRY(const SafetensorsTensor* packed, need(parameters, "weight_packed", "I32", 2));
  GroupedWeight weight{.layout = CodeLayout::kCompressed, .codes = packed->data.data()};
  weight.num_rows = packed->shape[0];
  KVASIR_TRY(weight.row_length, compressed_inputs(parameters, *packed));
  const std::int64_t words = packed->shape[1];
  if (words == ceil_div<std::int64_t>(weight.row_length, 8)) {
    weight.bits = 4;
  } else if (words == ceil_div<std::int64_t>(weight.row_length, 4)) {
    weight.bits = 8;
  } else {
    return bad_weight(packed->name, fmt::format("{} words for {} inputs are neither 4 nor 8 bits", words,
                                                weight.row_length));
  }
  const SafetensorsTensor* scale = find(parameters, "weight_scale");
  const std::int64_t num_groups = scale != nullptr && !scale->shape.empty() ? scale->shape.back() : 0;
  if (num_groups < 1) return bad_weight(packed->name, "has no weight_scale of two axes beside it");
  KVASIR_CHECKED(set_groups(*packed, num_groups, weight));
  KVASIR_TRY(weight.scales, scale_table(parameters, "weight_scale", weight.num_rows, num_groups));
  if (find(parameters, "weight_zero_point") != nullptr) {
    KVASIR_TRY(const SafetensorsTensor* zeros, need(parameters, "weight_zero_point", "I32", 2));
    const std::int64_t rows = ceil_div<std::int64_t>(weight.num_rows, 32 / weight.bits);
    if (zeros->shape != std::vector{rows, num_groups}) return wrong_size(*zeros, fmt::format("{}, {}", rows, num_groups));
    weight.zeros = zeros->data.data();
  }
  KVASIR_TRY(weight.group_of, read_groups(parameters, "weight_g_idx", weight));
  return weight;
}

Result<FolderWeight> nvfp4(const HfParameters& parameters, ComputedFloats floats) {
  KVASIR_TRY(const SafetensorsTensor* packed, need(parameters, "weight_packed", "U8", 2));
  KVASIR_TRY(const SafetensorsTensor* scales, need(parameters, "weight_scale", "F8_E4M3", 2));
  Nvfp4Weight weight{.num_rows = packed->shape[0],
                     .row_length = 2 * packed->shape[1],
                     .nibbles = packed->data.data(),
                     .scales = scales->data.data(),
                     .floats = floats};
  if (weight.row_length % 16 != 0 || scales->shape != std::vector{weight.num_rows, weight.row_length / 16}) {
    return wrong_size(*scales, fmt::format("{}, {}", weight.num_rows, weight.row_length / 16));
  }
  const SafetensorsTensor* divisor = find(parameters, "weight_global_scale");
  if (divisor == nullptr || divisor->dtype != "F32" || divisor->num_elements() != 1) {
    return bad_weight(packed->name, "has no weight_global_scale of one F32 number beside it");
  }
  weight.divisor = ScaleTable{DType::kF32, divisor->data.data()}.at(0);
  return FolderWeight{nvfp4_rows(weight), {weight.row_length, weight.num_rows}};
}

Result<FolderWeight> mxfp4(const HfParameters& parameters) {
  KVASIR_TRY(const SafetensorsTensor* blocks, need(parameters, "blocks", "U8", 4));
  KVASIR_TRY(const SafetensorsTensor* scales, need(parameters, "scales", "U8", 3));
  const std::int64_t experts = blocks->shape[0], rows = blocks->shape[1], count = blocks->shape[2];
  if (blocks->shape[3] != 16) return wrong_size(*blocks, fmt::format("{}, {}, {}, 16", experts, rows, count));
  if (scales->shape != std::vector{experts, rows, count}) {
    return wrong_size(*scales, fmt::format("{}, {}, {}", experts, rows, count));
  }
  return FolderWeight{mxfp4_rows(experts * rows, count, blocks->data.data(), scales->data.data()),
                      {32 * count, rows, experts}};
}

Result<GroupedWeight> awq(const HfParameters& parameters) {
  KVASIR_TRY(const SafetensorsTensor* codes, need(parameters, "qweight", "I32", 2));
  KVASIR_TRY(const SafetensorsTensor* zeros, need(parameters, "qzeros", "I32", 2));
  GroupedWeight weight{.layout = CodeLayout::kAwq, .codes = codes->data.data(), .zeros = zeros->data.data()};
  weight.row_length = codes->shape[0];
  weight.num_rows = 8 * codes->shape[1];
  KVASIR_CHECKED(set_groups(*codes, zeros->shape[0], weight));
  if (zeros->shape[1] != codes->shape[1]) {
    return wrong_size(*zeros, fmt::format("{}, {}", weight.num_groups, codes->shape[1]));
  }
  KVASIR_TRY(weight.scales, scale_table(parameters, "scales", weight.num_groups, weight.num_rows));
  return weight;
}

std::string_view text_or(const simdjson::dom::element& json, std::string_view key, std::string_view fallback) {
  std::string_view text;
  return json.at_key(key).get_string().get(text) == simdjson::SUCCESS ? text : fallback;
}

// Older files of compressed-tensors do not name it, but the format of their weights.
Result<std::string_view> method_of(const HfConfig& config, const simdjson::dom::element& json) {
  constexpr const char* kKey = "quantization_config";
  if (!json.is_object()) {
    return config.bad(kKey, fmt::format("must be an object, is {}", printable(simdjson::minify(json))));
  }
  simdjson::dom::element method;
  if (json.at_key("quant_method").get(method) != simdjson::SUCCESS || method.is_null()) {
    if (json.at_key("format").error() == simdjson::SUCCESS) return "compressed-tensors";
    return config.bad(kKey, "has no quant_method");
  }
  if (method.is_string()) return method.get_string().value_unsafe();
  return config.bad(kKey, fmt::format("has the quant_method {}, which is no string", printable(simdjson::minify(method))));
}

// Whether every word of the zeros is this one.
bool are_all(const SafetensorsTensor& zeros, std::uint32_t word) {
  for (std::int64_t i = 0; i < zeros.num_elements(); ++i) {
    if (static_cast<std::uint32_t>(int_at(zeros, i)) != word) return false;
  }
  return true;
}

}  // namespace

Result<FolderWeight> stored_floats(const SafetensorsTensor& tensor) {
  const auto type = float_type(tensor);
  if (!type) return bad_weight(tensor.name, fmt::format("has type {}, read are F32, F16 and BF16", tensor.dtype));
  const std::size_t rank = tensor.shape.size();
  if (rank == 0 || rank > kMaxReadAxes || tensor.num_elements() == 0) {
    return bad_weight(tensor.name, fmt::format("has the shape [{}], read are 1 to {} axes, none of them empty",
                                               fmt::join(tensor.shape, ", "), kMaxReadAxes));
  }
  const std::int64_t row_length = tensor.shape.back();
  return FolderWeight{stored_rows(*type, tensor.num_elements() / row_length, row_length, tensor.data.data()),
                      {tensor.shape.rbegin(), tensor.shape.rend()}};
}

Result<HfQuantization> HfQuantization::read(const HfConfig& config, ComputedFloats floats) {
  HfQuantization quantization;
  quantization.floats_ = floats;
  auto json = config.find_anywhere("quantization_config");
  if (!json) json = config.find_anywhere("compression_config");
  if (!json) return quantization;
  KVASIR_TRY(const std::string_view method, method_of(config, *json));
  if (std::ranges::find(kMethods, method) == std::end(kMethods)) {
    return config.bad("quantization_config", fmt::format("asks for weights of {}; read are {}", printable(method),
                                                         fmt::join(kMethods, ", ")));
  }
  quantization.method_ = method;
  if (method == "gptq") {
    const std::string_view format = text_or(*json, "checkpoint_format", "gptq");
    if (format != "gptq" && format != "gptq_v2") {
      return config.bad("quantization_config",
                        fmt::format("has checkpoint_format {}, read are gptq and gptq_v2", printable(format)));
    }
    quantization.zeros_are_less_one_ = format != "gptq_v2";
    if (json->at_key("bits").error() == simdjson::SUCCESS &&
        json->at_key("bits").get_int64().get(quantization.bits_) != simdjson::SUCCESS) {
      return config.bad("quantization_config", "has bits that are no whole number");
    }
    if (quantization.bits_ != 4 && quantization.bits_ != 8) {
      return config.bad("quantization_config",
                        fmt::format("has bits {}, read are 4 and 8 of GPTQ", quantization.bits_));
    }
  }
  if (const std::string_view format = text_or(*json, "format", "");
      method == "compressed-tensors" && std::ranges::find(kCompressedFormats, format) == std::end(kCompressedFormats)) {
    return config.bad("quantization_config", fmt::format("has format {}, read are {}", printable(format),
                                                         fmt::join(std::span(kCompressedFormats).subspan(1), ", ")));
  }
  const std::string_view version = text_or(*json, "version", "gemm");
  if (method == "awq" && version != "gemm" && version != "GEMM") {
    return config.bad("quantization_config", fmt::format("has version {}, read is gemm of AWQ", printable(version)));
  }
  simdjson::dom::array sizes;
  if (json->at_key("weight_block_size").get_array().get(sizes) == simdjson::SUCCESS) {
    if (sizes.size() != 2 || sizes.at(0).get_int64().get(quantization.block_rows_) != simdjson::SUCCESS ||
        sizes.at(1).get_int64().get(quantization.block_columns_) != simdjson::SUCCESS ||
        quantization.block_rows_ < 1 || quantization.block_columns_ < 1) {
      return config.bad("quantization_config", "has a weight_block_size that is no pair of sizes above 0");
    }
  }
  return quantization;
}

Result<FolderWeight> HfQuantization::float8(const HfParameters& parameters) const {
  const SafetensorsTensor& tensor = *parameters.at("weight");
  const SafetensorsTensor* scale = find(parameters, "weight_scale_inv");
  if (scale == nullptr) scale = find(parameters, "weight_scale");
  if (scale == nullptr) return bad_weight(tensor.name, fmt::format("has type {} and no scale beside it", tensor.dtype));
  const auto scale_type = float_type(*scale);
  const std::size_t rank = tensor.shape.size();
  if (!scale_type || rank < 2 || rank > 3 || tensor.num_elements() == 0 || scale->num_elements() == 0) {
    return bad_weight(scale->name, fmt::format("is {} [{}], which is no scale of {} [{}]", scale->dtype,
                                               fmt::join(scale->shape, ", "), tensor.dtype,
                                               fmt::join(tensor.shape, ", ")));
  }
  Float8Weight weight{.data = tensor.data.data(),
                      .is_integer = tensor.dtype == "I8",
                      .num_rows = tensor.num_elements() / tensor.shape.back(),
                      .row_length = tensor.shape.back(),
                      .scales = {*scale_type, scale->data.data()},
                      .floats = floats_};
  const std::int64_t outputs = tensor.shape[rank - 2], matrices = weight.num_rows / outputs;
  const std::int64_t columns = scale->shape.size() < 2 ? 1 : scale->shape.back();
  const std::int64_t rows = scale->num_elements() / columns;
  const bool is_by_blocks = rows == matrices * ceil_div(outputs, block_rows_) &&
                            columns == ceil_div(weight.row_length, block_columns_) &&
                            (matrices == 1 || outputs % block_rows_ == 0) && scale->shape.size() == rank;
  const bool is_by_rows = columns == 1 && weight.num_rows % rows == 0;
  if (!is_by_blocks && !is_by_rows) {
    return bad_weight(scale->name, fmt::format("has the shape [{}], which fits neither the rows of [{}] nor its blocks "
                                               "of {} x {}",
                                               fmt::join(scale->shape, ", "), fmt::join(tensor.shape, ", "),
                                               block_rows_, block_columns_));
  }
  weight.block_rows = is_by_blocks ? block_rows_ : weight.num_rows / rows;
  weight.block_columns = is_by_blocks ? block_columns_ : weight.row_length;
  weight.scales_per_row = columns;
  if (const SafetensorsTensor* zeros = find(parameters, "weight_zero_point")) {
    if (!weight.is_integer || zeros->dtype != "I8" || zeros->num_elements() != scale->num_elements()) {
      return bad_weight(zeros->name, fmt::format("is {} [{}], read is I8 [{}] beside a weight of I8", zeros->dtype,
                                                 fmt::join(zeros->shape, ", "), fmt::join(scale->shape, ", ")));
    }
    weight.zeros = zeros->data.data();
  }
  return FolderWeight{float8_rows(weight), {tensor.shape.rbegin(), tensor.shape.rend()}};
}

Result<GroupedWeight> HfQuantization::gptq(const HfParameters& parameters) const {
  KVASIR_TRY(const SafetensorsTensor* codes, need(parameters, "qweight", "I32", 2));
  KVASIR_TRY(const SafetensorsTensor* zeros, need(parameters, "qzeros", "I32", 2));
  const std::int64_t per_word = 32 / bits_;
  GroupedWeight weight{.layout = CodeLayout::kGptq,
                       .bits = static_cast<int>(bits_),
                       .num_rows = codes->shape[1],
                       .row_length = codes->shape[0] * per_word,
                       .codes = codes->data.data(),
                       .zeros = zeros->data.data(),
                       .zero_offset = zeros_are_less_one_ ? 1 : 0};
  KVASIR_CHECKED(set_groups(*codes, zeros->shape[0], weight));
  if (weight.num_rows % per_word != 0 || zeros->shape[1] != weight.num_rows / per_word) {
    return wrong_size(*zeros, fmt::format("{}, {}", weight.num_groups, weight.num_rows / per_word));
  }
  // The middle code everywhere: symmetric. Some files of the second version call themselves the first.
  const std::uint32_t middle = bits_ == 4 ? 0x88888888u : 0x80808080u, less_one = bits_ == 4 ? 0x77777777u : 0x7f7f7f7fu;
  if (are_all(*zeros, middle) || (zeros_are_less_one_ && are_all(*zeros, less_one))) weight.zeros = nullptr;
  KVASIR_TRY(weight.scales, scale_table(parameters, "scales", weight.num_groups, weight.num_rows));
  KVASIR_TRY(weight.group_of, read_groups(parameters, "g_idx", weight));
  return weight;
}

FolderWeight HfQuantization::grouped(GroupedWeight weight) const {
  std::vector<std::int64_t> shape = {weight.row_length, weight.num_rows};
  weight.floats = floats_;
  return {grouped_rows(std::move(weight)), std::move(shape)};
}

Result<FolderWeight> HfQuantization::weight(std::string_view module, const HfParameters& parameters) const {
  if (parameters.contains("qweight")) {
    KVASIR_TRY(GroupedWeight codes, method_ == "awq" ? awq(parameters) : gptq(parameters));
    return grouped(std::move(codes));
  }
  if (const SafetensorsTensor* packed = find(parameters, "weight_packed")) {
    if (packed->dtype == "U8") return nvfp4(parameters, floats_);
    KVASIR_TRY(GroupedWeight codes, compressed(parameters));
    return grouped(std::move(codes));
  }
  if (parameters.contains("blocks")) return mxfp4(parameters);
  const SafetensorsTensor* weight = find(parameters, "weight");
  if (weight == nullptr) return bad_weight(module, "has no weight");
  if (weight->dtype == "F8_E4M3" || weight->dtype == "I8") return float8(parameters);
  return stored_floats(*weight);
}

}  // namespace kvasir::io
