#include "engine/open_model.h"

#include <utility>

#include "base/printable.h"
#include "engine/sampling_metadata.h"
#include "engine/vocab_metadata.h"

namespace kvasir {
namespace {

// Beside the default one; tokenizer.chat_templates lists the names. Others, such as "rag", are not used.
constexpr const char* kForTools = "tokenizer.chat_template.tool_use";

}  // namespace

OpenedModel::OpenedModel(std::unique_ptr<io::WeightSource> source)
    : source_(std::move(source)), generation_defaults_(read_sampling(source_->metadata())) {}

Result<OpenedModel> open_model(const std::string& path) {
  KVASIR_TRY(auto source, io::open_gguf(path));
  return OpenedModel(std::move(source));
}

Result<OpenedModel> open_model_to_describe(const std::string& path) {
  KVASIR_TRY(auto source, io::open_gguf(path, io::TensorTypes::kAny));
  return OpenedModel(std::move(source));
}

Result<std::unique_ptr<text::Tokenizer>> OpenedModel::load_tokenizer() const {
  KVASIR_TRY(auto vocab, read_vocab(source_->metadata()));
  if (!vocab) return std::unique_ptr<text::Tokenizer>();
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
