// The parts of a form that a client uploads (RFC 7578).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/http/message.h"

namespace kvasir::server::http {

struct FormPart {
  std::string name;
  std::string file_name;  // empty: it is no file
  std::string_view content;
};

// The request's parts, which point into its body. Strict: lines end with CRLF, nothing stands before the first
// boundary, each part has a name, the last boundary is there. Errors (400): another content type, what is
// malformed, more than kMaxFormParts.
inline constexpr std::size_t kMaxFormParts = 32;
ApiResult<std::vector<FormPart>> parse_form(const Request& request);

}  // namespace kvasir::server::http
