#include "engine/open_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/printable.h"
#include "engine/sampling_metadata.h"
#include "engine/vocab_metadata.h"
#include "io/described_folder.h"
#include "io/hf_config.h"
#include "io/model_folder.h"
#include "io/quantized_source.h"
#include "model/model.h"
#include "text/hf/tokenizer_json.h"

namespace kvasir {
namespace {

// Beside the default one; tokenizer.chat_templates lists the names. Others, such as "rag", are not used.
constexpr const char* kForTools = "tokenizer.chat_template.tool_use";

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Other families have words under this key, of images.
bool is_bidirectional(const io::HfConfig& config) {
  bool flag = false;
  const auto value = config.find("use_bidirectional_attention");
  return value && value->get_bool().get(flag) == simdjson::SUCCESS && flag;
}

}  // namespace

OpenedModel::OpenedModel(std::unique_ptr<io::WeightSource> source, std::string folder, io::FolderTexts texts)
    : source_(std::move(source)),
      folder_(std::move(folder)),
      texts_(std::move(texts)),
      generation_defaults_(read_sampling(source_->metadata())) {}

Result<OpenedModel> OpenedModel::open_folder(const std::string& path, io::ComputedFloats floats) {
  KVASIR_TRY(const io::HfConfig config, io::HfConfig::open(path));
  const auto mapping = model::hf_mapping(config.model_type(), is_bidirectional(config));
  if (!mapping) return make_error(ErrorKind::kBadFile, printable_line(config.name()) + ": " + mapping.error().message);
  KVASIR_TRY(io::FolderTexts texts, io::read_folder_texts(path));
  KVASIR_TRY(auto source, io::open_folder(path, config, **mapping, texts, floats));
  return OpenedModel(std::move(source), path, std::move(texts));
}

Result<OpenedModel> OpenedModel::describe_folder(const std::string& path, const Error& why) {
  KVASIR_TRY(const io::HfConfig config, io::HfConfig::open(path));
  const auto mapping = model::hf_mapping(config.model_type(), is_bidirectional(config));
  KVASIR_TRY(io::FolderTexts texts, io::read_folder_texts(path));
  KVASIR_TRY(auto source, io::describe_folder(path, config, mapping.value_or(nullptr),
                                              model::unsupported_architecture(config.model_type()), texts, why));
  return OpenedModel(std::move(source), path, std::move(texts));
}

Result<OpenedModel> open_model(const std::string& path) {
  if (is_folder(path)) return OpenedModel::open_folder(path, io::ComputedFloats::kRounded);
  KVASIR_TRY(auto source, io::open_gguf(path));
  return OpenedModel(std::move(source));
}

Result<OpenedModel> open_model_to_describe(const std::string& path) {
  if (is_folder(path)) {
    auto runs = OpenedModel::open_folder(path, io::ComputedFloats::kRounded);
    return runs ? std::move(runs) : OpenedModel::describe_folder(path, runs.error());
  }
  KVASIR_TRY(auto source, io::open_gguf(path, io::TensorTypes::kAny));
  return OpenedModel(std::move(source));
}

Status OpenedModel::quantize(const std::string& type, int num_threads) {
  const auto dtype = io::load_type_named(type);
  if (!dtype) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("quantize: must be q8_0, q4_0, q4_k, mxfp4 or bf16, is {}", printable(type)), "quantize");
  }
  // Weights that other engines have quantised are rounded once: from their numbers, not from Q8_0.
  if (!folder_.empty()) {
    KVASIR_TRY(OpenedModel exact, open_folder(folder_, io::ComputedFloats::kExact));
    *this = std::move(exact);
  }
  const auto config = model::load_config(*source_);
  const bool is_encoder = config && config->is_encoder;
  source_ = io::quantize_on_load(std::move(source_), *dtype, num_threads, /*has_head=*/!is_encoder);
  return {};
}

Result<std::unique_ptr<text::Tokenizer>> OpenedModel::load_tokenizer(std::optional<bool> adds_special) const {
  if (!texts_.tokenizer.empty()) {
    return text::load_tokenizer_json({.tokenizer_json = texts_.tokenizer,
                                      .tokenizer_config = texts_.tokenizer_config,
                                      .config = texts_.config,
                                      .generation_config = texts_.generation_config});
  }
  KVASIR_TRY(auto vocab, read_vocab(source_->metadata()));
  if (!vocab) return std::unique_ptr<text::Tokenizer>();
  if (adds_special) vocab->add_bos = vocab->add_eos = vocab->add_separator = adds_special;
  return text::Tokenizer::create(std::move(*vocab));
}

Result<std::unique_ptr<text::ChatTemplate>> OpenedModel::load_chat_template(
    const std::string& override_source) const {
  std::string template_source = override_source, for_tools;
  if (template_source.empty()) {
    KVASIR_TRY(auto own, source_->metadata().find_string("tokenizer.chat_template"));
    KVASIR_TRY(auto named, source_->metadata().find_string(kForTools));
    template_source = own.value_or("");
    for_tools = named.value_or("");
    if (template_source.empty()) template_source = std::exchange(for_tools, {});
    if (template_source.empty()) return std::unique_ptr<text::ChatTemplate>();
  }
  auto parsed = text::ChatTemplate::parse(template_source);
  if (!parsed) {
    return make_error(override_source.empty() ? ErrorKind::kBadFile : ErrorKind::kUsage,
                      parsed.error().message);
  }
  if (!for_tools.empty()) {
    auto named = text::ChatTemplate::parse(for_tools);
    if (!named) return make_error(ErrorKind::kBadFile, std::string(kForTools) + ": " + named.error().message);
    parsed->set_for_tools(std::move(*named));
  }
  return std::make_unique<text::ChatTemplate>(std::move(*parsed));
}

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
  KVASIR_TRY(const OpenedModel model, open_model(path));
  KVASIR_TRY(auto tokenizer, model.load_tokenizer());
  if (tokenizer == nullptr)
    return make_error(ErrorKind::kBadFile, printable_line(path) + ": the file has no tokenizer");
  return tokenizer;
}

}  // namespace kvasir
