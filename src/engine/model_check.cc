#include "engine/model_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "backend/registry.h"
#include "base/printable.h"
#include "base/thread_pool.h"
#include "engine/sampling_metadata.h"
#include "engine/vocab_metadata.h"
#include "model/known_keys.h"
#include "model/left_out_tensors.h"
#include "model/model.h"

namespace kvasir {
namespace {

void add_error(const Error& error, std::vector<std::string>& reasons) {
  if (std::ranges::find(reasons, error.message) == reasons.end()) reasons.push_back(error.message);
}

template <class T>
void add_fault(const Result<T>& result, std::vector<std::string>& reasons) {
  if (!result) add_error(result.error(), reasons);
}

// A line for each type that no kernel reads, however many tensors have it.
void add_types(const io::WeightSource& source, std::vector<std::string>& reasons) {
  std::map<std::string, std::vector<std::string>> names_of;
  for (const io::UnsupportedTensor& tensor : source.unsupported()) {
    names_of[tensor.type].push_back(printable(tensor.name));
  }
  for (const auto& [type, names] : names_of) {
    const std::string others = names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1);
    reasons.push_back(
        fmt::format("weights of {} are not supported (tensor {}{})", type, names.front(), others));
  }
}

// Tensors that the model runs without.
void add_left_out(const io::WeightSource& source, const Result<model::ModelConfig>& config,
                  std::vector<std::string>& notices) {
  if (!config) return;
  const std::vector<std::string> names = model::left_out_tensors(source, *config);
  if (names.empty()) return;
  const std::string others = names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1);
  notices.push_back(fmt::format("left out, as text does without: tensor {}{}", printable(names.front()), others));
}

// Missing, superfluous and misshapen tensors.
void add_tensors(const io::WeightSource& source, std::vector<std::string>& reasons) {
  ThreadPool pool(1);
  const auto backend = backend::make_cpu_backend("", pool, backend::Precision::kExact);
  if (!backend) return;
  constexpr std::size_t kMostNamed = 12;  // a file of another family has hundreds
  const std::vector<Error> faults = model::tensor_faults(source, **backend);
  const std::size_t num_named = faults.size() > kMostNamed ? kMostNamed - 1 : faults.size();
  for (const Error& fault : std::span(faults).first(num_named)) add_error(fault, reasons);
  if (num_named < faults.size()) reasons.push_back(fmt::format("{} more tensors likewise", faults.size() - num_named));
}

// Adds the reasons of the configuration and the tensors.
void add_config(const io::WeightSource& source, std::vector<std::string>& reasons) {
  add_types(source, reasons);
  const auto config = model::load_config(source);
  add_fault(config, reasons);
  for (const std::string& refused : model::check_keys(source.metadata()).refused) {
    if (std::ranges::find(reasons, refused) == reasons.end()) reasons.push_back(refused);
  }
  if (config && source.unsupported().empty()) add_tensors(source, reasons);
  if (config && config->is_encoder) add_fault(check_encoder_says_special_tokens(source.metadata()), reasons);
}

}  // namespace

std::vector<std::string> reasons_not_to_run(const OpenedModel& model) {
  const io::WeightSource& source = model.source();
  std::vector<std::string> reasons(source.faults().begin(), source.faults().end());
  if (reasons.empty()) add_config(source, reasons);
  add_fault(model.load_tokenizer(), reasons);
  add_fault(model.load_chat_template(""), reasons);
  return reasons;
}

std::vector<std::string> notices_about(const io::WeightSource& source, const text::Tokenizer* tokenizer) {
  const io::Metadata& metadata = source.metadata();
  const auto config = model::load_config(source);
  std::vector<std::string> notices = vocab_notices(metadata);
  if (config && config->architecture == "gemma-embedding" && source.find("dense_2.weight") == nullptr) {
    notices.emplace_back("the file has no dense_2: embeddings are not those that the model was trained for");
  }
  const bool generates = !config || !config->is_encoder;
  if (generates && tokenizer != nullptr && tokenizer->vocab().end_of_generation().empty()) {
    notices.emplace_back("the vocabulary names no token that ends an answer: only its longest length does");
  }
  if (const TensorView* table = source.find("token_embd.weight");
      table != nullptr && tokenizer != nullptr && table->num_rows() < tokenizer->vocab().num_tokens()) {
    notices.push_back(fmt::format("tokens {} to {} have no row in the embedding of {}: a prompt with one is refused",
                                  table->num_rows(), tokenizer->vocab().num_tokens() - 1, table->num_rows()));
  }
  if (const auto unknown = model::check_keys(metadata).unknown; !unknown.empty()) {
    notices.push_back(fmt::format("not known, and not taken into account: {}", fmt::join(unknown, ", ")));
  }
  add_left_out(source, config, notices);
  std::ranges::move(sampling_notices(metadata), std::back_inserter(notices));
  return notices;
}

}  // namespace kvasir
