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
  // What the next write() sends, or, of a call that is answered in one piece, finish().
  virtual google::protobuf::Message& message() = 0;
  // Of a stream, one at a time: the answer hears when it has left.
  virtual void write() = 0;
  // Once, when no write is under way. The line may be gone when it returns.
  virtual void finish(const grpc::Status& status) = 0;
};

}  // namespace kvasir::server::carriers
