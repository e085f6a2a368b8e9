// A path that the server answers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_context.h"
#include "server/api/field_reference.h"
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
  // The fields of its body. Null: it has none.
  FieldTable (*fields)() = nullptr;
  bool takes_file = false;  // its body is one
};

}  // namespace kvasir::server::api
