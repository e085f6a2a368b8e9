#include "server/api/ollama/ollama_json.h"

#include <fmt/chrono.h>
#include <openssl/evp.h>

#include <array>
#include <cmath>

namespace kvasir::server::api {
namespace {

constexpr double kNanosecondsPerMs = 1e6;

std::int64_t nanoseconds(double ms) { return std::llround(ms * kNanosecondsPerMs); }

// "134.5M", "1.7B".
std::string parameter_size(std::int64_t count) {
  constexpr double kThousand = 1e3, kMillion = 1e6, kBillion = 1e9;
  const auto number = static_cast<double>(count);
  if (number >= kBillion) return fmt::format("{:.1f}B", number / kBillion);
  if (number >= kMillion) return fmt::format("{:.2f}M", number / kMillion);
  return fmt::format("{:.2f}K", number / kThousand);
}

}  // namespace

std::string rfc3339(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     rest.count());
}

std::string tagged_name(const ApiContext& context) {
  return context.model_name + (context.model_name.contains(':') ? "" : ":latest");
}

std::string answering_name(const ApiContext& context, const std::string& asked) {
  return asked.empty() ? tagged_name(context) : asked;
}

std::string model_digest(const ApiContext& context) {
  constexpr std::size_t kNumBytes = 32;
  std::array<unsigned char, kNumBytes> hash{};
  const std::string text = context.model_name + "\n" + context.fingerprint;
  EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr);
  std::string digits;
  for (const unsigned char byte : hash) digits += fmt::format("{:02x}", byte);
  return digits;
}

void write_model_details(JsonWriter& json, const ModelInfo& model) {
  json.begin_object().member("parent_model", "").member("format", "gguf").member("family", model.architecture);
  json.key("families").begin_array().value(model.architecture).end_array();
  json.member("parameter_size", parameter_size(model.num_parameters));
  json.member("quantization_level", model.quantization).end_object();
}

void write_durations(JsonWriter& json, std::chrono::nanoseconds total, const RequestCost& cost, const Usage& usage) {
  json.member("total_duration", total.count()).member("load_duration", nanoseconds(cost.queue_ms));
  json.member("prompt_eval_count", usage.prompt_tokens).member("prompt_eval_duration", nanoseconds(cost.prefill_ms));
  json.member("eval_count", usage.completion_tokens).member("eval_duration", nanoseconds(cost.decode_ms));
}

std::string loaded_json(const ApiContext& context, const std::string& asked, bool is_chat) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("model", answering_name(context, asked));
  json.member("created_at", rfc3339(std::chrono::system_clock::now()));
  if (is_chat) {
    json.key("message").begin_object().member("role", "assistant").member("content", "").end_object();
  } else {
    json.member("response", "");
  }
  json.member("done", true).member("done_reason", "load").end_object();
  return body;
}

}  // namespace kvasir::server::api
