#include "store/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/json_writer.h"
#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kBriefElements = 6;
constexpr std::size_t kBriefBytes = 90;

template <class T>
constexpr bool kIsArray = false;
template <class T>
constexpr bool kIsArray<std::vector<T>> = true;

// The value as JSON; of an array at most `max_elements`.
std::string to_json(const io::MetadataValue& value, std::size_t max_elements) {
  std::string out;
  JsonWriter json(out);
  const auto write = [&]<class Content>(const Content& content) {
    if constexpr (kIsArray<Content>) {
      json.begin_array();
      for (std::size_t i = 0; i < std::min(content.size(), max_elements); ++i) {
        json.value(static_cast<typename Content::value_type>(content[i]));
      }
      json.end_array();
    } else {
      json.value(content);
    }
  };
  std::visit(write, value);
  return out;
}

std::size_t num_elements_of(const io::MetadataValue& value) {
  const auto count = []<class Content>(const Content& content) -> std::size_t {
    if constexpr (kIsArray<Content>) return content.size();
    return 1;
  };
  return std::visit(count, value);
}

MetadataDescription describe(const std::string& key, const io::MetadataValue& value) {
  const std::size_t num_elements = num_elements_of(value);
  std::string brief = printable(to_json(value, kBriefElements), kBriefBytes);
  if (num_elements > kBriefElements) brief += fmt::format(" ({} elements)", num_elements);
  return {key, to_json(value, num_elements), std::move(brief)};
}

TensorDescription describe(const TensorView& tensor) {
  return {tensor.name,
          std::string(name_of(tensor.dtype)),
          {tensor.shape.begin(), tensor.shape.begin() + tensor.rank},
          tensor.num_bytes()};
}

TensorDescription describe(const io::UnsupportedTensor& tensor) {
  return {tensor.name, tensor.type, tensor.shape, tensor.num_bytes};
}

}  // namespace

ModelDescription describe_model(const io::WeightSource& source, bool with_metadata) {
  ModelDescription description;
  description.path = source.description();
  description.summary = io::summarize(source);
  for (const TensorView& tensor : source.tensors()) description.tensors.push_back(describe(tensor));
  for (const io::UnsupportedTensor& tensor : source.unsupported()) {
    description.tensors.push_back(describe(tensor));
  }
  if (!with_metadata) return description;
  for (const auto& [key, value] : source.metadata().values()) {
    description.metadata.push_back(describe(key, value));
  }
  return description;
}

}  // namespace kvasir::store
