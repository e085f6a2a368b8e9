// POST /v1/load_lora_adapter and /v1/unload_lora_adapter, as vLLM has them.
#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "base/printable.h"
#include "server/api/adapter_loader.h"
#include "server/api/admin/operators.h"
#include "server/api/endpoint.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {
namespace {

constexpr Field<AdapterRequest> kAdapterFields[] = {
    {"lora_name", "string", {}, "what requests call it, as their model", read_string<&AdapterRequest::name>},
    {"lora_path", "string", {}, "a folder or a file that lies in a folder of `--lora-dir`; default: `lora_name`, perhaps with `.gguf`",
     read_string<&AdapterRequest::path>},
    {"load_inplace", "boolean", {}, "replace the adapter that has the name", read_boolean<&AdapterRequest::replaces>},
};

constexpr Field<AdapterRequest> kAdapterNameFields[] = {
    {"lora_name", "string", {}, "which one", read_string<&AdapterRequest::name>},
};

ApiResult<AdapterRequest> read_adapter_request(const ApiContext& context, const Writer& writer,
                                               std::span<const Field<AdapterRequest>> fields) {
  KVASIR_CHECKED(check_operator(*writer));
  if (context.adapters == nullptr) {
    return std::unexpected(
        ApiError{403, "adapters come and go while the server runs where it was started with --lora-dir", {}, "forbidden"});
  }
  Warnings warnings;
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(writer->request().body, context.limits));
  AdapterRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<AdapterRequest>>(), fields, context.limits, request, warnings));
  add_warnings(warnings, *writer);
  if (request.name.empty()) return bad_request("lora_name is missing", "lora_name", "missing_parameter");
  return request;
}

// Programs of vLLM's read the status; people read the line.
AdapterLoader::Done answer_when_done(const Writer& writer, std::string line) {
  return [writer, line = std::move(line)](ApiStatus status) {
    writer->post([writer, line, status = std::move(status)] {
      if (!status) return respond_unless(status, *writer);
      writer->respond({.content_type = "text/plain; charset=utf-8", .body = line});
    });
  };
}

ApiStatus load_adapter(const ApiContext& context, const Writer& writer) {
  KVASIR_TRY(AdapterRequest request, read_adapter_request(context, writer, kAdapterFields));
  const std::string line = fmt::format("Success: LoRA adapter '{}' added successfully.", printable(request.name));
  return context.adapters->load(std::move(request), answer_when_done(writer, line));
}

ApiStatus unload_adapter(const ApiContext& context, const Writer& writer) {
  KVASIR_TRY(AdapterRequest request, read_adapter_request(context, writer, kAdapterNameFields));
  const std::string line = fmt::format("Success: LoRA adapter '{}' removed successfully.", printable(request.name));
  return context.adapters->unload(std::move(request.name), answer_when_done(writer, line));
}

}  // namespace

extern const Endpoint kLoadAdapter = {
    .method = "POST",
    .pattern = "/v1/load_lora_adapter",
    .meaning = "load an adapter from a folder of `--lora-dir`, or replace one; for operators",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(load_adapter(context, writer), *writer); },
    .api = "kvasir",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(std::span<const Field<AdapterRequest>>(kAdapterFields))}; },
    .is_of_server = true,
};

extern const Endpoint kUnloadAdapter = {
    .method = "POST",
    .pattern = "/v1/unload_lora_adapter",
    .meaning = "unload an adapter: requests that run end with it, others do not find it; for operators",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(unload_adapter(context, writer), *writer); },
    .api = "kvasir",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(std::span<const Field<AdapterRequest>>(kAdapterNameFields))}; },
    .is_of_server = true,
};

}  // namespace kvasir::server::api
