#include "server/api/openai/embedding_format.h"

#include <openssl/evp.h>

#include <bit>
#include <cstring>

#include "base/json_writer.h"

namespace kvasir::server::api {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string base64_of(const std::vector<float>& floats) {
  const std::size_t num_bytes = floats.size() * sizeof(float);
  std::vector<unsigned char> bytes(num_bytes);
  std::memcpy(bytes.data(), floats.data(), num_bytes);
  std::vector<unsigned char> text((num_bytes + 2) / 3 * 4 + 1);  // and a zero at the end
  const int size = EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(num_bytes));
  return {text.begin(), text.begin() + size};
}

}  // namespace

std::string EmbeddingFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  std::string body;
  std::size_t num_floats = 0;
  for (const ChoiceResult& choice : choices) num_floats += choice.embedding.size();
  body.reserve(num_floats * (is_base64_ ? 6 : 15));  // at once: a string that grows is there twice
  JsonWriter json(body);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    json.begin_object().member("object", "embedding").member("index", i).key("embedding");
    if (is_base64_) {
      json.value(base64_of(choices[i].embedding));
    } else {
      json.begin_array();
      for (const float value : choices[i].embedding) json.value(value);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().member("model", model_).key("usage").begin_object();
  json.member("prompt_tokens", usage.prompt_tokens).member("total_tokens", usage.prompt_tokens);
  json.end_object().end_object();
  return body;
}

void EmbeddingFormat::append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events&) {}

void EmbeddingFormat::append_last_events(const Usage&, http::Events&) {}

}  // namespace kvasir::server::api
