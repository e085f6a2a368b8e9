// Requests of Ollama's clients, with errors in the words that they look for.
#pragma once

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "base/printable.h"
#include "server/api/api_context.h"

namespace kvasir::server::api {

// "model 'x' not found", by which clients know that they may pull it.
inline ApiError in_ollama_words(ApiError error, const ApiContext& context, const std::string& asked) {
  if (error.code != "model_not_found") return error;
  error.message = fmt::format("model '{}' not found: this server has {}", printable(asked), served_names(context));
  return error;
}

// As read_request().
template <class Parse, class Read = std::invoke_result_t<Parse, std::string_view, const Limits&, Warnings&>>
Read read_ollama_request(const ApiContext& context, http::ResponseWriter& writer, Parse parse) {
  std::string asked;
  Read read = read_request(context, writer, [&](std::string_view body, const Limits& limits, Warnings& warnings) {
    Read parsed = parse(body, limits, warnings);
    if (parsed) asked = parsed->model;
    return parsed;
  });
  if (!read) return std::unexpected(in_ollama_words(std::move(read).error(), context, asked));
  return read;
}

}  // namespace kvasir::server::api
