// The service kvasir.v1.Kvasir.
#pragma once

#include <boost/asio/io_context.hpp>

#include "kvasir/v1/kvasir.grpc.pb.h"
#include "server/http/session_context.h"

namespace kvasir::server::carriers {

// Its messages come and go as bytes: of those that are no message gRPC would say only that there is no such
// method.
using RawKvasir = v1::Kvasir::WithRawCallbackMethod_Generate<
    v1::Kvasir::WithRawCallbackMethod_Embed<v1::Kvasir::WithRawCallbackMethod_Rerank<
        v1::Kvasir::WithRawCallbackMethod_Tokenize<v1::Kvasir::Service>>>>;

// Thread safety: gRPC calls it from threads of its own; answers are made by those of `io`, each on a strand.
class GrpcService final : public RawKvasir {
 public:
  // Both outlive it.
  GrpcService(boost::asio::io_context& io, const http::SessionContext& context)
      : io_(io), context_(context) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Rerank(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;

 private:
  boost::asio::io_context& io_;
  const http::SessionContext& context_;
};

}  // namespace kvasir::server::carriers
