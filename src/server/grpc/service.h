// The service kvasir.v1.Kvasir.
#pragma once

#include <boost/asio/io_context.hpp>

#include "kvasir/v1/kvasir.grpc.pb.h"
#include "server/http/session_context.h"

namespace kvasir::server {

// Thread safety: gRPC calls it from threads of its own; answers are made by those of `io`, each on a strand.
class GrpcService final : public v1::Kvasir::CallbackService {
 public:
  // Both outlive it.
  GrpcService(boost::asio::io_context& io, const SessionContext& context) : io_(io), context_(context) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(grpc::CallbackServerContext* call,
                                                           const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* call, const v1::EmbedRequest* request,
                                  v1::EmbedResponse* response) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* call, const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;

 private:
  boost::asio::io_context& io_;
  const SessionContext& context_;
};

}  // namespace kvasir::server
