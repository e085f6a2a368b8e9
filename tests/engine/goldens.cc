#include "goldens.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace kvasir::testing {
namespace {

const std::string kGoldens = KVASIR_SOURCE_DIR "/tests/goldens/";

std::string golden_file(const std::string& name, std::string_view file) {
  return kGoldens + name + "/" + std::string(file);
}

// "supported" or "waits:PART"; the part, or nullptr-like failure as an Error.
Result<std::string> read_state(const std::string& word, const std::string& line) {
  constexpr std::string_view kWaits = "waits:";
  if (word == "supported") return std::string();
  if (word.starts_with(kWaits) && word.size() > kWaits.size()) return word.substr(kWaits.size());
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("goldens.txt: a state is 'supported' or 'waits:PART', not '{}': {}", word, line));
}

Error bad_value(std::string_view what) {
  return {.kind = ErrorKind::kBadFile, .message = fmt::format("expected.json: {}", what)};
}

template <class T>
Result<std::vector<T>> read_numbers(simdjson::dom::array array) {
  std::vector<T> numbers;
  for (const simdjson::dom::element element : array) {
    double value = 0.0;
    if (element.get(value) != simdjson::SUCCESS) return std::unexpected(bad_value("a value is no number"));
    numbers.push_back(static_cast<T>(value));
  }
  return numbers;
}

// Empty without that key.
template <class T>
Result<std::vector<T>> read_numbers(const simdjson::dom::element& document, const char* key) {
  simdjson::dom::array array;
  if (document[key].get(array) != simdjson::SUCCESS) return std::vector<T>();
  return read_numbers<T>(array);
}

// The experts of the last layer; the file has all layers. Empty without experts.
Result<std::vector<std::vector<std::int32_t>>> read_experts(const simdjson::dom::element& document) {
  std::vector<std::vector<std::int32_t>> experts;
  simdjson::dom::array layers, tokens, used;
  if (document["experts"].get(layers) != simdjson::SUCCESS) return experts;
  for (const simdjson::dom::element layer : layers) {
    experts.clear();
    if (layer.get(tokens) != simdjson::SUCCESS)
      return std::unexpected(bad_value("experts: no list of tokens"));
    for (const simdjson::dom::element token : tokens) {
      if (token.get(used) != simdjson::SUCCESS) return std::unexpected(bad_value("experts: no list of ids"));
      KVASIR_TRY(std::vector<std::int32_t> ids, read_numbers<std::int32_t>(used));
      experts.push_back(std::move(ids));
    }
  }
  return experts;
}

Result<GoldenEmbedding> read_embedding(const simdjson::dom::element& document) {
  GoldenEmbedding embedding;
  KVASIR_TRY(embedding.prompt, read_numbers<TokenId>(document, "prompt"));
  KVASIR_TRY(embedding.vector, read_numbers<float>(document, "vector"));
  KVASIR_TRY(embedding.token_types, read_numbers<std::uint8_t>(document, "token_types"));
  return embedding;
}

Result<std::vector<float>> read_logits(const std::string& path, std::size_t count) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() != count * sizeof(float)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: must have {} bytes, has {}", path,
                                                       count * sizeof(float), bytes.size()));
  }
  std::vector<float> logits(count);
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  return logits;
}

}  // namespace

bool GoldenState::has_effect(std::string_view tensor_or_key) const {
  return std::ranges::find(without_effect, tensor_or_key) == without_effect.end();
}

Result<std::vector<GoldenState>> read_golden_states() {
  std::ifstream file(kGoldens + "goldens.txt");
  std::vector<GoldenState> states;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    GoldenState state;
    std::string gguf, folder, converter;
    if (!(words >> state.name >> gguf >> folder >> converter)) {
      return make_error(ErrorKind::kBadFile,
                        "goldens.txt: a line has a name, two states and a converter, not: " + line);
    }
    KVASIR_TRY(state.gguf_waits_for, read_state(gguf, line));
    KVASIR_TRY(state.folder_waits_for, read_state(folder, line));
    for (std::string word; words >> word;) state.without_effect.push_back(word);
    states.push_back(std::move(state));
  }
  if (states.empty()) return make_error(ErrorKind::kBadFile, "goldens.txt: missing or empty");
  return states;
}

std::string golden_model_path(const std::string& name, GoldenForm form) {
  return form == GoldenForm::kGguf ? golden_file(name, "model.gguf") : kGoldens + name;
}

Result<Golden> read_golden(const std::string& name) {
  const std::string path = golden_file(name, "expected.json");
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (parser.load(path).get(document) != simdjson::SUCCESS)
    return make_error(ErrorKind::kBadFile, path + ": no such file, or no JSON");
  Golden golden;
  KVASIR_TRY(golden.prompt, read_numbers<TokenId>(document, "prompt"));
  KVASIR_TRY(golden.greedy, read_numbers<TokenId>(document, "greedy"));
  KVASIR_TRY(golden.logit_positions, read_numbers<std::int32_t>(document, "logit_positions"));
  simdjson::dom::array embeddings;
  if (document["embeddings"].get(embeddings) == simdjson::SUCCESS) {
    for (const simdjson::dom::element element : embeddings) {
      KVASIR_TRY(GoldenEmbedding embedding, read_embedding(element));
      golden.embeddings.push_back(std::move(embedding));
    }
  }
  if (!golden.embeddings.empty()) return golden;
  std::int64_t vocab_size = 0;
  if (document["vocab_size"].get(vocab_size) != simdjson::SUCCESS)
    return std::unexpected(bad_value("vocab_size: missing"));
  golden.vocab_size = static_cast<std::int32_t>(vocab_size);
  KVASIR_TRY(golden.experts, read_experts(document));
  KVASIR_TRY(golden.logits,
             read_logits(golden_file(name, "logits.f32"),
                         golden.logit_positions.size() * static_cast<std::size_t>(golden.vocab_size)));
  return golden;
}

}  // namespace kvasir::testing
