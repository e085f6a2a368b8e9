// The one way to open a model: for the engine, the command line and, handed over by them, the store.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/external_rows.h"
#include "io/folder_texts.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "kvasir/sampling_params.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir {

// The files of one model. Tensors and metadata are checked when it is opened; other parts are made when they
// are asked for, so a fault in one does not stop who needs another.
//
// Thread safety: const members may be called from any thread.
class OpenedModel {
 public:
  // Empty; only assignment is allowed.
  OpenedModel() = default;

  const io::WeightSource& source() const { return *source_; }
  bool is_folder() const { return !folder_.empty(); }
  // A folder's tokenizer.json; empty where there is none.
  const std::string& tokenizer_json() const { return texts_.tokenizer; }

  // From now on source() gives float matrices in the type of that name (io::load_type_named), made on up to
  // `num_threads` threads while they are read. A folder is opened anew. Errors: kUsage: no type has the name; those of
  // open_model.
  Status quantize(const std::string& type, int num_threads);

  // Null when the model has none. `adds_special`: whether a GGUF file's tokenizer adds BOS and EOS, whatever the file
  // says. Error (kBadFile): a broken or unsupported one.
  Result<std::unique_ptr<text::Tokenizer>> load_tokenizer(std::optional<bool> adds_special = {}) const;
  // `override_source` when it is not empty, else the model's own, with the one it names "tool_use" for
  // conversations with tools; null when there is neither. Error
  // (kBadFile, or kUsage for the override): it does not parse.
  Result<std::unique_ptr<text::ChatTemplate>> load_chat_template(const std::string& override_source) const;
  // The authors' recommendation where a request says nothing (general.sampling.*). Empty: there is none.
  const std::optional<SamplingParams>& generation_defaults() const { return generation_defaults_; }

 private:
  friend Result<OpenedModel> open_model(const std::string& path);
  friend Result<OpenedModel> open_model_to_describe(const std::string& path);
  explicit OpenedModel(std::unique_ptr<io::WeightSource> source, std::string folder = {}, io::FolderTexts texts = {});
  static Result<OpenedModel> open_folder(const std::string& path, io::ComputedFloats floats);
  // A folder that open_folder refuses, because of `why`.
  static Result<OpenedModel> describe_folder(const std::string& path, const Error& why);

  std::unique_ptr<io::WeightSource> source_;
  std::string folder_;     // empty: a GGUF file
  io::FolderTexts texts_;  // of the folder
  std::optional<SamplingParams> generation_defaults_;
};

// `path` is a GGUF file, the first of a split set, or a folder with config.json and safetensors. Reads no weights.
// Errors: as io::open_gguf and io::open_folder; kBadFile for a folder of a model_type that no architecture reads.
Result<OpenedModel> open_model(const std::string& path);
// The same for whoever only describes the file: it may have tensors that no kernel reads, and a folder may be of a
// family or a configuration that is not supported (WeightSource::faults).
Result<OpenedModel> open_model_to_describe(const std::string& path);

// The model's tokenizer alone. Errors: as open_model and load_tokenizer; kBadFile when the model has none.
Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path);

}  // namespace kvasir
