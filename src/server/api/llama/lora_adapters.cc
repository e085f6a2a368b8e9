// GET and POST /lora-adapters, as llama-server answers them.
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/adapter_choice.h"
#include "server/api/admin/operators.h"
#include "server/api/endpoint.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {
namespace {

void answer_lora_adapters(const ApiContext& context, const Writer& writer) {
  const AdapterNames names = context.engine.adapters();
  const ChosenAdapter usual = context.default_adapter->get();
  std::string body;
  JsonWriter json(body);
  json.begin_array();
  for (std::size_t i = 0; i < names->size(); ++i) {
    const bool is_usual = (*names)[i] == usual.name;
    json.begin_object().member("id", i).member("path", (*names)[i]);  // where the file lies is nobody's business
    json.member("scale", is_usual ? usual.scale.value_or(1.0f) : 0.0f).end_object();
  }
  json.end_array();
  writer->respond({.headers = {{"Cache-Control", "no-store"}}, .body = std::move(body)});
}

ApiStatus set_lora_adapters(const ApiContext& context, const Writer& writer) {
  KVASIR_CHECKED(check_operator(*writer));
  // The body is the list itself. As a member it is read, and named in errors, like that of a request.
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(fmt::format("{{\"lora\":{}\n}}", writer->request().body), context.limits));
  const auto list = find_member(document.root(), "lora");
  if (!list || document.root().size() != 1) return bad_request("the body must be an array");
  KVASIR_TRY(const std::vector<LoraScale> scales, lora_scales_of({"lora", *list, context.limits}));
  KVASIR_TRY(ChosenAdapter chosen, adapter_by_list(context, scales));
  context.default_adapter->set(std::move(chosen));
  writer->respond({.body = R"({"success":true})"});
  return {};
}

}  // namespace

extern const Endpoint kLoraAdapters = {
    .method = "GET",
    .pattern = "/lora-adapters",
    .meaning = "the adapters, their numbers for `lora`, and how much of them runs where a request names none",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { answer_lora_adapters(context, writer); },
    .api = "llama-server",
    .is_of_model = true,
};

extern const Endpoint kSetLoraAdapters = {
    .method = "POST",
    .pattern = "/lora-adapters",
    .meaning = "the adapter of requests that name none, as a list like their `lora`; for operators",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(set_lora_adapters(context, writer), *writer); },
    .api = "llama-server",
    .is_of_server = true,
};

}  // namespace kvasir::server::api
