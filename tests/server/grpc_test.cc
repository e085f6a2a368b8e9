// gRPC as a client of its own library sees it; tests/clients sends whole cases over it.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "certificate.h"
#include "eventually.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc_client.h"
#include "http_client.h"
#include "kvasir/v1/kvasir.grpc.pb.h"
#include "running_server.h"
#include "server/auth/key_file.h"
#include "test_collector.h"

namespace kvasir::server::grpc_test {
namespace {

using namespace std::chrono_literals;

TEST(Grpc, StreamsAnAnswerPieceByPiece) {
  const RunningServer server({.answer = "abc"}, with_grpc());
  Client client(server);
  const Generated answer(client, prompt());
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.text(), "abc");
  ASSERT_GE(answer.responses.size(), 3U);
  EXPECT_TRUE(answer.responses[0].id().starts_with("gen-"));
  EXPECT_EQ(answer.responses[0].finish_reason(), "");
  EXPECT_EQ(answer.responses.back().finish_reason(), "stop");
  EXPECT_EQ(answer.responses.back().prompt_tokens(), 2);
  EXPECT_TRUE(answer.context.GetServerInitialMetadata().contains("x-request-id"));
  EXPECT_NE(metrics_of(server).find(R"(route="/v1/generate")"), std::string::npos);
}

TEST(Grpc, SaysThatAnAnswerWasCutToTheContext) {
  const RunningServer server({}, with_grpc());
  Client client(server);
  v1::GenerateRequest request = prompt();
  request.set_max_tokens(32000);
  const Generated answer(client, request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const auto& metadata = answer.context.GetServerInitialMetadata();
  const auto warning = metadata.find("x-kvasir-warning");
  ASSERT_NE(warning, metadata.end());
  EXPECT_EQ(std::string(warning->second.data(), warning->second.size()),
            "max_tokens: 32000 was cut to 254, what the context of 256 tokens has left");
  EXPECT_EQ(server.engine.last_request().sampling.max_tokens, 254);
}

TEST(Grpc, TakesTokensAndConversations) {
  const RunningServer server({.answer = "abc"}, with_grpc());
  Client client(server);
  v1::GenerateRequest tokens;
  tokens.add_prompt_token_ids('H');
  tokens.add_prompt_token_ids('i');
  tokens.set_max_tokens(1);
  EXPECT_EQ(Generated(client, tokens).text(), "a");
  EXPECT_EQ(server.engine.last_prompt(), (std::vector<TokenId>{'H', 'i'}));
  v1::GenerateRequest chat;
  v1::Message& message = *chat.add_messages();
  message.set_role("user");
  message.set_content("Hi");
  EXPECT_EQ(Generated(client, chat).text(), "abc");
  EXPECT_EQ(server.engine.last_prompt().front(), FakeEngine::kStart);
}

TEST(Grpc, EmbedsAndTokenizes) {
  const RunningServer server({}, with_grpc());
  Client client(server);
  grpc::ClientContext embed, tokenize;
  v1::EmbedRequest texts;
  texts.add_input("a");
  texts.add_input("b");
  v1::EmbedResponse vectors;
  ASSERT_TRUE(client.stub().Embed(&embed, texts, &vectors).ok());
  ASSERT_EQ(vectors.data_size(), 2);
  EXPECT_GT(vectors.data(1).embedding_size(), 0);
  EXPECT_EQ(vectors.data(1).index(), 1);
  EXPECT_EQ(vectors.usage().total_tokens(), 2);
  v1::TokenizeRequest text;
  text.set_prompt("Hi");
  text.set_return_token_strs(true);
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(client.stub().Tokenize(&tokenize, text, &tokens).ok());
  EXPECT_EQ(tokens.count(), 2);
  EXPECT_EQ(tokens.token_strs(1), "i");
  EXPECT_EQ(tokens.max_model_len(), 256);
}

TEST(Grpc, Reranks) {
  const RunningServer server({}, with_grpc());
  Client client(server);
  grpc::ClientContext call;
  v1::RerankRequest request;
  request.set_query("a");
  for (const char* const text : {"b", "c", "d"}) request.add_documents(text);
  request.set_top_n(2);
  request.set_return_documents(true);
  v1::RerankResponse response;
  const grpc::Status status = client.stub().Rerank(&call, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 2);
  for (const v1::RankedDocument& result : response.results()) {
    EXPECT_EQ(result.document().text(), request.documents(result.index()));
    EXPECT_GT(result.relevance_score(), 0.0f);
  }
  EXPECT_EQ(response.usage().total_tokens(), 4);
  grpc::ClientContext again;
  request.clear_documents();
  EXPECT_EQ(client.stub().Rerank(&again, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Grpc, RefusesWithTheStatusAndTheError) {
  const RunningServer server({}, with_grpc());
  Client client(server);
  auto request = prompt();
  request.set_repetition_penalty(1e39);
  const Generated answer(client, request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answer.error().param(), "repetition_penalty");
  EXPECT_EQ(answer.error().message(), answer.status.error_message());
  request = prompt();
  request.set_temperature(std::nan(""));
  const Generated no_number(client, request);
  EXPECT_EQ(no_number.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(no_number.error().message(), "temperature: nan is no finite number");
  request = prompt();
  request.set_model("other");
  EXPECT_EQ(Generated(client, request).status.error_code(), grpc::StatusCode::NOT_FOUND);
  request = prompt(std::string(300, 'a'));
  const Generated too_long(client, request);
  EXPECT_EQ(too_long.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(too_long.error().code(), "context_length_exceeded");
  EXPECT_EQ(Generated(client, {}).error().code(), "missing_parameter");
}

// As a client with another idea of the messages would call. `error`: what the trailing metadata says.
grpc::Status call_with_bytes(const RunningServer& server, const std::string& method, const std::string& bytes,
                             v1::Error& error) {
  grpc::GenericStub stub(channel_to(server));
  grpc::ClientContext context;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, "/kvasir.v1.Kvasir/" + method, {}, &request, &response,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  const grpc::Status status = ended.get_future().get();
  error = error_of(context);
  return status;
}

TEST(Grpc, SaysThatBytesAreNoMessageAndNothingOnStderr) {
  const RunningServer server({}, with_grpc());
  testing::internal::CaptureStderr();
  for (const auto& [method, bytes] :
       {std::pair("Generate", "\xff\xff"), std::pair("Generate", "\x12\x01\xff"),  // a prompt of no UTF-8
        std::pair("Embed", "\x12\x7f"), std::pair("Rerank", "\x12\x7f"), std::pair("Tokenize", "\xff\xff")}) {
    SCOPED_TRACE(method);
    v1::Error error;
    const grpc::Status status = call_with_bytes(server, method, bytes, error);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find("kvasir.v1." + std::string(method) + "Request"), std::string::npos)
        << status.error_message();
    EXPECT_EQ(error.type(), "invalid_request_error");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  v1::Error error;
  EXPECT_EQ(call_with_bytes(server, "Other", "", error).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(metrics_of(server).find(R"(kvasir_http_responses_total{route="/tokenize",code="400"} 1)"),
            std::string::npos);
}

TEST(Grpc, SaysWhenToComeBack) {
  const RunningServer server({.answer = "a", .prefill = 5s, .max_requests = 1}, with_grpc());
  Client client(server);
  grpc::ClientContext context;
  const auto waiting = client.stub().Generate(&context, prompt());
  ASSERT_TRUE(eventually([&] { return server.engine.num_running() == 1; }));
  const Generated answer(client, prompt());
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(answer.context.GetServerTrailingMetadata().contains("retry-after"));
  context.TryCancel();
  waiting->Finish();
}

TEST(Grpc, TellsOfAFailureInTheMiddle) {
  const RunningServer server({.fail_after_tokens = 2}, with_grpc());
  Client client(server);
  const Generated answer(client, prompt());
  EXPECT_EQ(answer.responses.size(), 2U);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_NE(answer.status.error_message().find("the fake engine was told to fail"), std::string::npos);
}

TEST(Grpc, GoesOnWithTheTraceOfItsMetadata) {
  TestCollector collector;
  const RunningServer server({.fail_after_tokens = 3}, with_grpc(traced_to(collector)));
  Client client(server);
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  const auto reader = client.stub().Generate(&context, prompt());
  v1::GenerateResponse response;
  while (reader->Read(&response)) continue;
  EXPECT_FALSE(reader->Finish().ok());
  const auto spans = collector.spans(1);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(spans[0].parent_span_id, "00f067aa0ba902b7");
  EXPECT_EQ(spans[0].name, "POST /v1/generate");
  EXPECT_EQ(spans[0].attributes.at("error.type"), "stream_failed");
}

TEST(Grpc, EndsWhatIsCancelledAndWhatIsTooLate) {
  const RunningServer server({.answer = std::string(200, 'a'), .step = 10ms}, with_grpc());
  Client client(server);
  {
    grpc::ClientContext context;
    const auto reader = client.stub().Generate(&context, prompt());
    v1::GenerateResponse response;
    ASSERT_TRUE(reader->Read(&response));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 1; }));
  {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 100ms);
    auto reader = client.stub().Generate(&context, prompt());
    v1::GenerateResponse response;
    while (reader->Read(&response)) continue;
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 2; }));
  EXPECT_TRUE(eventually([&] {
    return metrics_of(server).find(R"(kvasir_http_aborts_total{cause="cancelled"} 2)") != std::string::npos;
  }));
  EXPECT_EQ(server.engine.num_running(), 0);
}

TEST(Grpc, IsHealthyUntilItDrains) {
  using grpc::health::v1::HealthCheckRequest;
  using grpc::health::v1::HealthCheckResponse;
  RunningServer server({.answer = std::string(30, 'a'), .step = 20ms}, with_grpc());
  grpc::TemplatedGenericStub<HealthCheckRequest, HealthCheckResponse> health(channel_to(server));
  const auto status_of = [&](const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    std::promise<grpc::Status> ended;
    health.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                     [&](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get().ok() ? HealthCheckResponse::ServingStatus_Name(response.status())
                                         : "none";
  };
  EXPECT_EQ(status_of(""), "SERVING");
  EXPECT_EQ(status_of("kvasir.v1.Kvasir"), "SERVING");
  EXPECT_EQ(status_of("another"), "none");
  Client client(server);
  grpc::ClientContext context;
  const auto reader = client.stub().Generate(&context, prompt());
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server.server->stop();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(status_of("kvasir.v1.Kvasir"), "NOT_SERVING");
  while (reader->Read(&response)) continue;
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(Grpc, AnswersManyAtATime) {
  const RunningServer server({.answer = "abcd", .step = 2ms}, with_grpc());
  Client client(server);
  std::vector<std::thread> threads;
  std::atomic<int> num_whole{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { num_whole += Generated(client, prompt()).text() == "abcd"; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_whole, 8);
}

TEST(Grpc, CutsOffAReaderWhoTakesNothing) {
  const RunningServer server({.answer = std::string(100'000, 'a'), .max_model_len_tokens = 1 << 20},
                             with_grpc({.limits = {.output_buffer_bytes = {20'000, 503, "waiting"}}}));
  Client client(server);
  grpc::ClientContext context;
  auto request = prompt();
  request.set_max_tokens(100'000);
  const auto reader = client.stub().Generate(&context, request);
  EXPECT_TRUE(eventually([&] { return server.engine.num_cancelled() == 1; }));
  EXPECT_NE(metrics_of(server).find(R"(cause="slow_reader"} 1)"), std::string::npos);
  v1::GenerateResponse response;
  while (reader->Read(&response)) continue;
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(Grpc, TakesNoMessageBeyondTheBodysLimit) {
  const RunningServer server({}, with_grpc({.limits = {.body_bytes = {1000, 413, "bytes"}}}));
  Client client(server);
  EXPECT_EQ(Generated(client, prompt(std::string(2000, 'a'))).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(Grpc, AsksForAKey) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("kvasir-grpc-keys-" + std::to_string(::getpid()))).string();
  const std::string key = "sk-kvasir-of-a-test";
  ASSERT_TRUE(auth::write_key_file(file, {{.name = "team", .hash = auth::hash_of(key)}}));
  const RunningServer server({.answer = "a"}, with_grpc({.api_keys_file = file}));
  std::filesystem::remove(file);
  Client client(server);
  EXPECT_EQ(Generated(client, prompt()).status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  v1::Error error;
  EXPECT_EQ(call_with_bytes(server, "Generate", "\xff", error).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + key);
  const auto reader = client.stub().Generate(&context, prompt());
  v1::GenerateResponse response;
  while (reader->Read(&response)) continue;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(server.engine.last_request().tenant, "team");
}

TEST(Grpc, DrainsWithEverythingElse) {
  RunningServer server({.answer = std::string(100, 'a'), .step = 20ms}, with_grpc());
  Client client(server);
  grpc::ClientContext context;
  auto request = prompt();
  request.set_max_tokens(100);
  const auto reader = client.stub().Generate(&context, request);
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server.server->stop();
  std::this_thread::sleep_for(50ms);
  int num_pieces = 1;
  const Generated refused(client, prompt());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.error().code(), "shutting_down");
  grpc::ClientContext embed, tokenize;
  v1::EmbedRequest texts;
  texts.add_input("a");
  v1::EmbedResponse vectors;
  EXPECT_EQ(client.stub().Embed(&embed, texts, &vectors).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(error_of(embed).code(), "shutting_down");
  v1::TokenizeRequest text;
  text.set_prompt("Hi");
  v1::TokenizeResponse tokens;
  EXPECT_TRUE(client.stub().Tokenize(&tokenize, text, &tokens).ok());  // which needs no engine
  while (reader->Read(&response)) ++num_pieces;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(num_pieces, 100);
  server.join();
}

TEST(Grpc, StopsAtOnceWhenAskedTwice) {
  RunningServer server({.answer = std::string(200, 'a'), .step = 20ms, .max_model_len_tokens = 1000},
                       with_grpc());
  Client client(server);
  grpc::ClientContext context;
  auto request = prompt();
  request.set_max_tokens(200);
  const auto reader = client.stub().Generate(&context, request);
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  const auto began = std::chrono::steady_clock::now();
  server.server->stop();
  server.server->stop();
  server.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
  while (reader->Read(&response)) continue;
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(Grpc, SpeaksTls) {
  const std::string stem =
      (std::filesystem::temp_directory_path() / ("kvasir-grpc-" + std::to_string(::getpid()))).string();
  const std::string certificate_file = stem + ".crt", key_file = stem + ".key";
  write_certificate(certificate_file, key_file, "localhost");
  std::stringstream certificate;
  certificate << std::ifstream(certificate_file).rdbuf();
  const RunningServer server({.answer = "a"},
                             with_grpc({.tls_certificate_file = certificate_file, .tls_key_file = key_file}));
  Client client(channel_to(server, grpc::SslCredentials({.pem_root_certs = certificate.str()})));
  const Generated answer(client, prompt());
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  Client plain(server);
  EXPECT_FALSE(Generated(plain, prompt()).status.ok());
  std::filesystem::remove(certificate_file);
  std::filesystem::remove(key_file);
}

}  // namespace
}  // namespace kvasir::server::grpc_test
