// The pieces of JSON that Ollama's answers share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "server/api/api_context.h"

namespace kvasir::server::api {

// The release of Ollama whose requests and answers these are; clients look for features by it.
inline constexpr std::string_view kOllamaApiVersion = "0.12.11";

// With nanoseconds: "2026-11-28T03:31:59.000000000Z".
std::string rfc3339(std::chrono::system_clock::time_point time);
// The model's name there: with the tag "latest" where it has none.
std::string tagged_name(const ApiContext& context);
// As requests call it: what was asked for, or the model's own name.
std::string answering_name(const ApiContext& context, const std::string& asked);
// 64 hexadecimal digits that tell models apart. They are no hash of the file.
std::string model_digest(const ApiContext& context);
// The object of "details".
void write_model_details(JsonWriter& json, const ModelInfo& model);
// Nanoseconds and counts of an answer that took so long in all. Waiting counts as "load_duration".
void write_durations(JsonWriter& json, std::chrono::nanoseconds total, const RequestCost& cost, const Usage& usage);

// The answer to a request that only loads the model.
std::string loaded_json(const ApiContext& context, const std::string& asked, bool is_chat);

}  // namespace kvasir::server::api
