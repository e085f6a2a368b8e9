// How a refusal of the HTTP API is said in gRPC.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

namespace kvasir::server::carriers {

struct CallError {
  grpc::Status status;
  std::string details;  // a kvasir.v1.Error, as trailing metadata "kvasir-error-bin"
};

// For an answer with another status than 200, and its body.
CallError call_error(int http_status, std::string_view body);
// For the event that says why a stream ends before it is complete.
CallError call_error_of_failure(std::string_view data);

}  // namespace kvasir::server::carriers
