#include "server/carriers/grpc/service.h"

#include <fmt/format.h>

#include <boost/asio/strand.hpp>
#include <memory>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api_error.h"
#include "server/carriers/grpc/call_response_writer.h"
#include "server/carriers/grpc/message_json.h"

namespace kvasir::server::carriers {
namespace {

// The body of the HTTP request that a call's bytes stand for. Error: they are no such message.
using ReadBody = ApiResult<std::string> (*)(grpc::ByteBuffer bytes);

template <class Request>
ApiResult<Request> message_of(grpc::ByteBuffer bytes) {
  Request request;
  if (!grpc::SerializationTraits<Request>::Deserialize(&bytes, &request).ok()) {
    return bad_request(
        fmt::format("the bytes are no {}, or a text in it is not UTF-8", Request::descriptor()->full_name()));
  }
  KVASIR_CHECKED(check_finite(request));
  return request;
}

template <class Request>
ApiResult<std::string> read_body(grpc::ByteBuffer bytes) {
  KVASIR_TRY(const Request request, message_of<Request>(std::move(bytes)));
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  append_members(json, request);
  json.end_object();
  return body;
}

ApiResult<std::string> read_generate_body(grpc::ByteBuffer bytes) {
  KVASIR_TRY(const auto request, message_of<v1::GenerateRequest>(std::move(bytes)));
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  append_members(json, request, "prompt_token_ids", "prompt");
  json.member("stream", true).end_object();
  return body;
}

void to_bytes(const google::protobuf::Message& message, grpc::ByteBuffer& bytes) {
  bytes.Clear();  // gRPC writes into an empty one alone
  bool is_own_buffer = false;
  grpc::SerializationTraits<google::protobuf::Message>::Serialize(message, &bytes, &is_own_buffer);
}

// The call as a POST to the path, with its metadata as headers.
http::Request http_request(const grpc::CallbackServerContext& call, std::string path) {
  http::Request request{.method = "POST", .path = std::move(path), .headers = {}, .body = {}, .tenant = {}};
  for (const auto& [name, value] : call.client_metadata()) {
    request.headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
  }
  return request;
}

// A reactor of gRPC's and the line of the answer that speaks through it. It deletes itself when gRPC is done
// with it, which is not before finish().
template <class Reactor, class Response>
class Line : public Reactor, public CallLine {
 public:
  explicit Line(grpc::CallbackServerContext& call) : call_(call) {}

  void answer(boost::asio::io_context& io, http::Request request, ReadBody read,
              const grpc::ByteBuffer& bytes, const http::SessionContext& context) {
    ApiStatus accepted = accept(request, read, bytes, context);
    answer_ = std::make_shared<CallResponseWriter>(boost::asio::make_strand(io), std::move(request), *this,
                                                   context);
    answer_->begin(std::move(accepted));
  }

  grpc::CallbackServerContext& context() final { return call_; }
  google::protobuf::Message& message() final {
    message_.Clear();
    return message_;
  }

 protected:
  CallResponseWriter& answer() { return *answer_; }
  // The message, as it has been filled.
  const Response& said() const { return message_; }

 private:
  // Nothing is read of one who has no key.
  static ApiStatus accept(http::Request& request, ReadBody read, const grpc::ByteBuffer& bytes,
                          const http::SessionContext& context) {
    if (context.admission != nullptr) {
      KVASIR_TRY(request.tenant, context.admission->admit(request));
    }
    KVASIR_TRY(request.body, read(bytes));
    return {};
  }

  void OnCancel() final { answer_->on_cancelled(); }
  void OnDone() final {
    answer_->on_done();
    delete this;
  }

  grpc::CallbackServerContext& call_;
  std::shared_ptr<CallResponseWriter> answer_;
  Response message_;
};

template <class Response>
class StreamLine final : public Line<grpc::ServerWriteReactor<grpc::ByteBuffer>, Response> {
 public:
  using Line<grpc::ServerWriteReactor<grpc::ByteBuffer>, Response>::Line;

  void write() override {
    to_bytes(this->said(), bytes_);
    this->StartWrite(&bytes_);
  }
  void finish(const grpc::Status& status) override { this->Finish(status); }

 private:
  void OnWriteDone(bool is_sent) override { this->answer().on_written(is_sent); }

  grpc::ByteBuffer bytes_;
};

template <class Response>
class UnaryLine final : public Line<grpc::ServerUnaryReactor, Response> {
 public:
  UnaryLine(grpc::CallbackServerContext& call, grpc::ByteBuffer& bytes)
      : Line<grpc::ServerUnaryReactor, Response>(call), bytes_(bytes) {}

  void write() override {}  // finish() sends the message
  void finish(const grpc::Status& status) override {
    if (status.ok()) to_bytes(this->said(), bytes_);
    this->Finish(status);
  }

 private:
  grpc::ByteBuffer& bytes_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GrpcService::Generate(grpc::CallbackServerContext* call,
                                                                  const grpc::ByteBuffer* request) {
  auto line = std::make_unique<StreamLine<v1::GenerateResponse>>(*call);
  line->answer(io_, http_request(*call, "/v1/generate"), read_generate_body, *request, context_);
  return line.release();
}

grpc::ServerUnaryReactor* GrpcService::Embed(grpc::CallbackServerContext* call,
                                             const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  auto line = std::make_unique<UnaryLine<v1::EmbedResponse>>(*call, *response);
  line->answer(io_, http_request(*call, "/v1/embeddings"), read_body<v1::EmbedRequest>, *request, context_);
  return line.release();
}

grpc::ServerUnaryReactor* GrpcService::Rerank(grpc::CallbackServerContext* call,
                                              const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  auto line = std::make_unique<UnaryLine<v1::RerankResponse>>(*call, *response);
  line->answer(io_, http_request(*call, "/v1/rerank"), read_body<v1::RerankRequest>, *request, context_);
  return line.release();
}

grpc::ServerUnaryReactor* GrpcService::Tokenize(grpc::CallbackServerContext* call,
                                                const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  auto line = std::make_unique<UnaryLine<v1::TokenizeResponse>>(*call, *response);
  line->answer(io_, http_request(*call, "/tokenize"), read_body<v1::TokenizeRequest>, *request, context_);
  return line.release();
}

}  // namespace kvasir::server::carriers
