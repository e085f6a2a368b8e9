#include "compress/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "compress/tensor_encoder.h"
#include "io/gguf_writer.h"
#include "quant/fit/fitted_format.h"
#include "text/regex/search.h"

namespace kvasir::compress {
namespace {

constexpr double kNotableFallback = 0.02;  // of the file

struct Kept {
  text::regex::Search pattern;
  DType type;
  std::string text;
  bool is_used = false;
};

std::optional<DType> type_named(std::string_view name) {
  for (const DTypeInfo& info : kDTypeInfos) {
    const bool is_same = std::ranges::equal(info.name, name, [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
    if (is_same) return info.dtype;
  }
  return std::nullopt;
}

Result<std::vector<Kept>> parse_keep(const std::vector<std::string>& texts) {
  std::vector<Kept> kept;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const auto type = equals == text.npos ? std::nullopt : type_named(std::string_view(text).substr(equals + 1));
    if (!type || !has_encoder(*type)) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("keep: {}: it must be REGEX=TYPE, of a type that can be written", printable_line(text)), "keep");
    }
    auto pattern = text::regex::Search::compile(text.substr(0, equals));
    if (!pattern) {
      return make_error(ErrorKind::kUsage, fmt::format("keep: {}: {}", printable_line(text.substr(0, equals)), pattern.error().message), "keep");
    }
    kept.push_back({.pattern = std::move(*pattern), .type = *type, .text = text});
  }
  return kept;
}

// One number of a key that may have a number for each layer.
Result<std::int64_t> first_int(const io::Metadata& metadata, const std::string& key, std::int64_t otherwise) {
  constexpr std::int64_t kMost = 1 << 20;
  if (metadata.is_array(key)) {
    KVASIR_TRY(const auto numbers, metadata.find_ints(key));
    for (const std::int64_t number : *numbers) {
      if (number > 0) return number;
    }
    return otherwise;
  }
  KVASIR_TRY(const auto number, metadata.find_int(key, 0, kMost));
  return number.value_or(otherwise);
}

Result<RecipeModel> describe(const io::WeightSource& source, bool has_importance) {
  const io::Metadata& metadata = source.metadata();
  RecipeModel model;
  KVASIR_TRY(model.architecture, metadata.get_string("general.architecture"));
  const std::string& arch = model.architecture;
  KVASIR_TRY(const std::int64_t num_layers, first_int(metadata, arch + ".block_count", 0));
  KVASIR_TRY(const std::int64_t heads, first_int(metadata, arch + ".attention.head_count", 1));
  KVASIR_TRY(const std::int64_t kv_heads, first_int(metadata, arch + ".attention.head_count_kv", heads));
  KVASIR_TRY(const std::int64_t experts, first_int(metadata, arch + ".expert_count", 0));
  model.num_layers = static_cast<std::int32_t>(num_layers);
  model.num_heads_per_kv_head = static_cast<std::int32_t>(heads / std::max<std::int64_t>(1, kv_heads));
  model.num_experts = static_cast<std::int32_t>(experts);
  model.is_tied = source.find("output.weight") == nullptr;
  model.has_importance = has_importance;
  return model;
}

// Importance of a tensor: [experts, inputs], or of one matrix for all. Null where there is none.
Result<const std::vector<float>*> importance_of(const io::Imatrix* imatrix, const TensorView& tensor) {
  if (imatrix == nullptr) return nullptr;
  const auto found = imatrix->mean_squares.find(tensor.name);
  if (found == imatrix->mean_squares.end()) return nullptr;
  const std::int64_t count = std::ssize(found->second), length = tensor.row_length();
  if (count == length || count == length * tensor.shape[2]) return &found->second;
  return make_error(ErrorKind::kBadFile,
                    fmt::format("imatrix-in: tensor {} has {} inputs, its importance has {}", printable(tensor.name), length, count),
                    "imatrix-in");
}

// Entries of the source that are not true of the new file.
bool is_stale(std::string_view key) {
  return key.starts_with("split.") || key.starts_with("quantize.") || key == "general.file_type" ||
         key == "general.quantization_version" || key == "general.alignment";
}

// Whose codes stand for several numbers together.
bool is_codebook(DType type) { return quant::fitted_format(type) != nullptr && quant::grid_format(type) == nullptr; }

}  // namespace

std::string_view name_of(Method method) {
  switch (method) {
    case Method::kCopy: return "copy";
    case Method::kRtn: return "rtn";
    case Method::kImatrix: return "imatrix";
    case Method::kGptq: return "gptq";
  }
  return "";
}

bool is_correctable(DType type) { return type != DType::kQ8_0 && quant::grid_format(type) != nullptr; }

double QuantizePlan::bits_per_weight() const {
  std::int64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.num_bytes();
  return num_elements > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(num_elements) : 0.0;
}

std::vector<TensorView> QuantizePlan::views() const {
  std::vector<TensorView> views;
  for (const PlannedTensor& tensor : tensors) {
    views.push_back(tensor.source);
    views.back().dtype = tensor.choice.type;
    views.back().data = nullptr;
  }
  return views;
}

namespace {

// The types of all tensors, --keep included.
Result<std::vector<TypeChoice>> choose_types(const io::WeightSource& source, const QuantizeOptions& options,
                                             const Recipe& recipe, bool has_importance, std::vector<std::string>& warnings) {
  KVASIR_TRY(std::vector<Kept> kept, parse_keep(options.keep));
  KVASIR_TRY(const RecipeModel model, describe(source, has_importance));
  const std::vector<TensorView> tensors(source.tensors().begin(), source.tensors().end());
  std::vector<TypeChoice> choices = types_of(recipe, model, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (options.widens_small && !is_quantized_by_recipes(tensors[i])) choices[i] = {.type = DType::kF32, .wanted = DType::kF32};
    if (const auto found = options.types.find(tensors[i].name); found != options.types.end()) {
      choices[i] = {.type = found->second, .wanted = found->second};
    }
    if (!is_quantized_by_recipes(tensors[i])) continue;  // norms and the like: readers want them as they are
    for (Kept& rule : kept) {
      if (!rule.pattern.matches(tensors[i].name)) continue;
      choices[i] = fitting(rule.type, tensors[i].row_length());
      rule.is_used = true;
      break;
    }
  }
  for (const Kept& rule : kept) {
    if (!rule.is_used) warnings.push_back(fmt::format("--keep {}: no tensor that may change has such a name", printable_line(rule.text)));
  }
  return choices;
}

Method method_for(const PlannedTensor& tensor, bool has_importance, const InputStatistics* statistics) {
  const bool has_products = statistics != nullptr && statistics->products_of(tensor.source.name) != nullptr;
  if (has_products && is_correctable(tensor.choice.type)) return Method::kGptq;
  return has_importance && quant::fitted_format(tensor.choice.type) != nullptr ? Method::kImatrix : Method::kRtn;
}

// The recipe of the type that most bytes have.
std::uint32_t main_file_type(const QuantizePlan& plan) {
  std::map<DType, std::int64_t> bytes;
  for (const PlannedTensor& tensor : plan.tensors) bytes[tensor.choice.type] += tensor.num_bytes();
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& each) { return each.second; });
  return most == bytes.end() ? plan.recipe.file_type : file_type_of(most->first);
}

Status check_tensor(const PlannedTensor& tensor, const QuantizeOptions& options) {
  const bool is_float = tensor.source.dtype == DType::kF32 || tensor.source.dtype == DType::kF16 || tensor.source.dtype == DType::kBF16;
  if (tensor.method == Method::kCopy || is_float || options.takes_quantized) return {};
  return make_error(ErrorKind::kUsage,
                    fmt::format("tensor {} is quantised already ({}); --requantize takes its numbers as exact",
                                printable(tensor.source.name), name_of(tensor.source.dtype)),
                    "requantize");
}

}  // namespace

Result<QuantizePlan> plan_quantization(const io::WeightSource& source, std::vector<io::GgufEntry> entries,
                                       const QuantizeOptions& options, const Calibration& calibration) {
  QuantizePlan plan;
  const io::Imatrix* const imatrix = calibration.imatrix;
  KVASIR_TRY(plan.recipe, recipe_named(options.type));
  KVASIR_TRY(const std::vector<TypeChoice> choices,
             choose_types(source, options, plan.recipe, imatrix != nullptr || options.expects_importance, plan.warnings));
  std::int64_t num_without = 0, num_codebooks = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    PlannedTensor tensor{.source = source.tensors()[i], .choice = choices[i]};
    KVASIR_TRY(const auto* importance, importance_of(imatrix, tensor.source));
    if (tensor.choice.type != tensor.source.dtype) tensor.method = method_for(tensor, importance != nullptr, calibration.statistics);
    KVASIR_CHECKED(check_tensor(tensor, options));
    plan.num_elements += tensor.source.num_elements();
    if (tensor.choice.is_fallback()) {
      ++plan.num_fallbacks;
      const DTypeInfo& wanted = info_of(tensor.choice.wanted);
      plan.fallback_bytes += tensor.num_bytes() - tensor.source.num_elements() * wanted.block_bytes / wanted.block_elements;
    }
    if (imatrix != nullptr && tensor.method == Method::kRtn && quant::fitted_format(tensor.choice.type) != nullptr) ++num_without;
    if (tensor.method == Method::kRtn && is_codebook(tensor.choice.type)) ++num_codebooks;
    plan.tensors.push_back(std::move(tensor));
  }
  std::erase_if(entries, [](const io::GgufEntry& entry) { return is_stale(entry.key); });
  entries.push_back(io::uint32_entry("general.quantization_version", 2));
  entries.push_back(io::uint32_entry("general.file_type", options.types.empty() ? plan.recipe.file_type : main_file_type(plan)));
  plan.entries = std::move(entries);
  plan.num_bytes = io::GgufLayout(plan.entries, plan.views()).num_bytes();
  if (num_without > 0) plan.warnings.push_back(fmt::format("{} tensors have no importance: all their numbers count alike", num_without));
  if (num_codebooks > 0) {
    plan.warnings.push_back(fmt::format("{} tensors of IQ2 and IQ3 are rounded without importance, which loses much: --calibrate self would help", num_codebooks));
  }
  const double share = static_cast<double>(plan.fallback_bytes) / static_cast<double>(std::max<std::int64_t>(1, plan.num_bytes));
  if (share > kNotableFallback || share < -kNotableFallback) {
    const std::string line = fmt::format("{} tensors have rows that the blocks of their type do not divide: others make the file {} {}",
                                         plan.num_fallbacks, format_bytes(std::abs(plan.fallback_bytes)), share > 0 ? "larger" : "smaller");
    if (options.is_strict) return make_error(ErrorKind::kUsage, "strict: " + line, "strict");
    plan.warnings.push_back(line);
  }
  return plan;
}

}  // namespace kvasir::compress
