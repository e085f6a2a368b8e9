// The way from an answer to gRPC.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

namespace kvasir::server::carriers {

// Thread safety: none; the answer's strand makes all calls, and none after finish().
class CallLine {
 public:
  virtual ~CallLine() = default;

  virtual grpc::CallbackServerContext& context() = 0;
  // The message that the next write() sends. A call that is answered in one piece sends it with finish().
  virtual google::protobuf::Message& message() = 0;
  // For streams, one message at a time: the response writer hears when it has left.
  virtual void write() = 0;
  // Once, when no write is under way. The line may be gone when it returns.
  virtual void finish(const grpc::Status& status) = 0;
};

}  // namespace kvasir::server::carriers
