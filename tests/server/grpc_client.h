// A client of the gRPC port of a test's server, by gRPC's own library.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "http_client.h"
#include "kvasir/v1/kvasir.grpc.pb.h"
#include "running_server.h"

namespace kvasir::server::grpc_test {

inline ServerConfig with_grpc(ServerConfig config = {}) {
  config.grpc_port = 0;
  return config;
}

inline std::string address_of(const RunningServer& server) {
  return "localhost:" + std::to_string(server.server->grpc_port().value());
}

// A channel of its own, not one that gRPC shares.
inline std::shared_ptr<grpc::Channel> channel_to(
    const RunningServer& server,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials()) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Bounds the bytes that the client takes before somebody reads; they would grow until whole answers fit.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  return grpc::CreateCustomChannel(address_of(server), credentials, arguments);
}

class Client {
 public:
  explicit Client(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::Kvasir::NewStub(channel)) {}
  explicit Client(const RunningServer& server) : Client(channel_to(server)) {}

  v1::Kvasir::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::Kvasir::Stub> stub_;
};

inline v1::GenerateRequest prompt(const std::string& text = "Hi") {
  v1::GenerateRequest request;
  request.set_prompt(text);
  return request;
}

inline v1::Error error_of(const grpc::ClientContext& context) {
  v1::Error error;
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find("kvasir-error-bin");
  if (found != metadata.end())
    error.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
  return error;
}

// One call of Generate, to its end.
struct Generated {
  Generated(Client& client, const v1::GenerateRequest& request) {
    const auto reader = client.stub().Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) responses.push_back(response);
    status = reader->Finish();
  }

  std::string text() const {
    std::string all;
    for (const auto& response : responses) all += response.text();
    return all;
  }
  v1::Error error() const { return error_of(context); }

  grpc::ClientContext context;
  std::vector<v1::GenerateResponse> responses;
  grpc::Status status;
};

inline std::string metrics_of(const RunningServer& server) {
  return HttpClient(server.port()).request("GET", "/metrics").body;
}

}  // namespace kvasir::server::grpc_test
