// A path that the server answers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_context.h"
#include "server/api/field_reference.h"
#include "server/http/body_sink.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

using Writer = std::shared_ptr<http::ResponseWriter>;

// One file defines it, as `extern const Endpoint`, and endpoints.def lists it.
struct Endpoint {
  std::string_view method;
  std::string_view pattern;  // as http::Route's
  std::string_view meaning;  // for the API reference
  // Responds through the writer, now or later. `rest`: as http::Handler's.
  void (*answer)(ApiContext& context, const Writer& writer, const std::string& rest);
  std::string_view api = "openai";  // whose clients ask it, as logs name them; "kvasir": the server's own
  // The fields of its body. Null: it has none.
  FieldTable (*fields)() = nullptr;
  // Its field "model" is what it asks about, not who answers.
  bool is_of_server = false;
  // It has no body, and is about the model that its query names, else about the first.
  bool is_of_model = false;
  // As http::Route's. Null: its body is no file.
  ApiResult<std::shared_ptr<http::BodySink>> (*open_sink)(ApiContext& context, const http::Request& head,
                                                          const auth::Tenant& tenant) = nullptr;
};

}  // namespace kvasir::server::api
