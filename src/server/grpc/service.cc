#include "server/grpc/service.h"

#include <boost/asio/strand.hpp>
#include <memory>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/grpc/call_answer.h"
#include "server/grpc/message_json.h"

namespace kvasir::server {
namespace {

// A reactor of gRPC's and the line of the answer that speaks through it. It deletes itself when gRPC is done
// with it, which is not before finish().
template <class Reactor>
class Line : public Reactor, public CallLine {
 public:
  explicit Line(grpc::CallbackServerContext& call) : call_(call) {}

  void answer(boost::asio::io_context& io, HttpRequest request, const SessionContext& context) {
    ApiStatus admitted;
    if (context.keys != nullptr) {
      auto tenant = context.keys->admit(request);
      if (tenant) {
        request.tenant = *std::move(tenant);
      } else {
        admitted = std::unexpected(std::move(tenant).error());
      }
    }
    answer_ = std::make_shared<CallAnswer>(boost::asio::make_strand(io), std::move(request), *this, context);
    answer_->begin(std::move(admitted));
  }

  grpc::CallbackServerContext& context() final { return call_; }
  void finish(const grpc::Status& status) final { this->Finish(status); }

 protected:
  CallAnswer& answer() { return *answer_; }

 private:
  void OnCancel() final { answer_->on_cancelled(); }
  void OnDone() final {
    answer_->on_done();
    delete this;
  }

  grpc::CallbackServerContext& call_;
  std::shared_ptr<CallAnswer> answer_;
};

template <class Response>
class StreamLine final : public Line<grpc::ServerWriteReactor<Response>> {
 public:
  using Line<grpc::ServerWriteReactor<Response>>::Line;

  google::protobuf::Message& message() override {
    message_.Clear();
    return message_;
  }
  void write() override { this->StartWrite(&message_); }

 private:
  void OnWriteDone(bool is_sent) override { this->answer().on_written(is_sent); }

  Response message_;
};

class UnaryLine final : public Line<grpc::ServerUnaryReactor> {
 public:
  UnaryLine(grpc::CallbackServerContext& call, google::protobuf::Message& response)
      : Line(call), response_(response) {}

  google::protobuf::Message& message() override { return response_; }
  void write() override {}  // finish() sends the message

 private:
  google::protobuf::Message& response_;
};

// The call as a POST to the path, with its metadata as headers.
HttpRequest http_request(const grpc::CallbackServerContext& call, std::string path, std::string body) {
  HttpRequest request{
      .method = "POST", .path = std::move(path), .headers = {}, .body = std::move(body), .tenant = {}};
  for (const auto& [name, value] : call.client_metadata()) {
    request.headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
  }
  return request;
}

std::string json_of(const google::protobuf::Message& request) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  append_members(json, request);
  json.end_object();
  return body;
}

std::string json_of_generate(const v1::GenerateRequest& request) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  append_members(json, request, "prompt_token_ids", "prompt");
  json.member("stream", true).end_object();
  return body;
}

}  // namespace

grpc::ServerWriteReactor<v1::GenerateResponse>* GrpcService::Generate(grpc::CallbackServerContext* call,
                                                                      const v1::GenerateRequest* request) {
  auto line = std::make_unique<StreamLine<v1::GenerateResponse>>(*call);
  line->answer(io_, http_request(*call, "/v1/generate", json_of_generate(*request)), context_);
  return line.release();
}

grpc::ServerUnaryReactor* GrpcService::Embed(grpc::CallbackServerContext* call,
                                             const v1::EmbedRequest* request, v1::EmbedResponse* response) {
  auto line = std::make_unique<UnaryLine>(*call, *response);
  line->answer(io_, http_request(*call, "/v1/embeddings", json_of(*request)), context_);
  return line.release();
}

grpc::ServerUnaryReactor* GrpcService::Tokenize(grpc::CallbackServerContext* call,
                                                const v1::TokenizeRequest* request,
                                                v1::TokenizeResponse* response) {
  auto line = std::make_unique<UnaryLine>(*call, *response);
  line->answer(io_, http_request(*call, "/tokenize", json_of(*request)), context_);
  return line.release();
}

}  // namespace kvasir::server
