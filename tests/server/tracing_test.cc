// The traces of a server: whose they are, what they say and what never.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"
#include "test_collector.h"

namespace kvasir::server::tracing_test {
namespace {

using namespace std::chrono_literals;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSampled[] = "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kUnsampled[] = "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
constexpr RequestCost kCost = {.queue_ms = 0.25,
                               .prefill_ms = 0.5,
                               .decode_ms = 0.75,
                               .cpu_ms = 3.0,
                               .kv_byte_seconds = 4.0,
                               .num_preemptions = 2};

std::vector<ReceivedSpan> named(const std::vector<ReceivedSpan>& spans, std::string_view name) {
  std::vector<ReceivedSpan> found;
  std::ranges::copy_if(spans, std::back_inserter(found),
                       [&](const ReceivedSpan& s) { return s.name == name; });
  return found;
}

TEST(Traces, GoOnWithTheClientsTrace) {
  TestCollector collector;
  const RunningServer server({.cost = kCost}, traced_to(collector));
  HttpClient client(server.port());
  const auto answer = client.request(
      "POST", "/v1/completions?key=secret-query",
      R"({"prompt":"secret words","max_tokens":3,"temperature":0.5})",
      {kSampled, "Tracestate: a=1", "User-Agent: tester/1", "Authorization: Bearer secret-key"});
  ASSERT_EQ(answer.status, 200);
  const auto spans = collector.spans(4);
  ASSERT_EQ(spans.size(), 4u);
  const ReceivedSpan request = named(spans, "POST /v1/completions").at(0);
  EXPECT_EQ(request.parent_span_id, "00f067aa0ba902b7");
  EXPECT_EQ(request.kind, 2);
  EXPECT_EQ(request.flags, 0x301u);
  EXPECT_EQ(request.status, 0);
  for (const ReceivedSpan& span : spans) {
    EXPECT_EQ(span.trace_id, kTrace);
    EXPECT_EQ(span.trace_state, "a=1");
    EXPECT_LE(request.begin_ns, span.begin_ns);
    EXPECT_LE(span.begin_ns, span.end_ns);
    EXPECT_LE(span.end_ns, request.end_ns);
    if (span.name == request.name) continue;
    EXPECT_EQ(span.parent_span_id, request.span_id);
    EXPECT_EQ(span.kind, 1);
    EXPECT_EQ(span.flags, 0x101u);
  }
  const auto expect = [&](const char* name, const std::string& value) {
    const auto found = request.attributes.find(name);
    ASSERT_NE(found, request.attributes.end()) << name;
    EXPECT_EQ(found->second, value) << name;
  };
  expect("http.request.method", "POST");
  expect("http.route", "/v1/completions");
  expect("http.response.status_code", "200");
  expect("url.path", "/v1/completions");
  expect("url.scheme", "http");
  expect("user_agent.original", "tester/1");
  expect("gen_ai.operation.name", "text_completion");
  expect("gen_ai.provider.name", "kvasir");
  expect("gen_ai.request.model", "fake");
  expect("gen_ai.request.max_tokens", "3");
  expect("gen_ai.request.temperature", "0.500000");
  expect("gen_ai.request.stream", "false");
  expect("gen_ai.response.finish_reasons", "length");
  expect("gen_ai.usage.input_tokens", "12");
  expect("gen_ai.usage.output_tokens", "3");
  expect("kvasir.cpu_seconds", "0.003000");
  expect("kvasir.kv_byte_seconds", "4.000000");
  expect("kvasir.preemptions", "2");
  expect("kvasir.request_id", answer.header("x-request-id"));
  EXPECT_GT(std::stod(request.attributes.at("gen_ai.server.time_to_first_token")), 0.0);
  EXPECT_EQ(request.attributes.count("error.type"), 0u);
  for (const auto& post : collector.posts(1)) {
    EXPECT_EQ(post.body.find("secret"), std::string::npos);
    EXPECT_EQ(read_resource(post.body).at("service.name"), "here");
    EXPECT_EQ(read_resource(post.body).at("service.version"), "1.2");
  }
}

TEST(Traces, HaveTheStagesOneAfterTheOther) {
  TestCollector collector;
  const RunningServer server({.step = 2ms, .cost = kCost}, traced_to(collector));
  HttpClient client(server.port());
  client.request("POST", "/v1/completions", R"({"prompt":"abc","max_tokens":3,"n":2})");
  const auto spans = collector.spans(4);
  ASSERT_EQ(spans.size(), 4u);
  const ReceivedSpan queue = named(spans, "queue").at(0), prefill = named(spans, "prefill").at(0),
                     decode = named(spans, "decode").at(0);
  EXPECT_EQ(queue.end_ns - queue.begin_ns, 250'000u);
  EXPECT_EQ(prefill.begin_ns, queue.end_ns);
  EXPECT_EQ(prefill.end_ns - prefill.begin_ns, 500'000u);
  EXPECT_EQ(decode.begin_ns, prefill.end_ns);
  EXPECT_EQ(decode.end_ns - decode.begin_ns, 750'000u);
  EXPECT_EQ(prefill.attributes.at("kvasir.computed_tokens"), "3");
  EXPECT_EQ(decode.attributes.at("kvasir.generated_tokens"), "6");
  const ReceivedSpan request = named(spans, "POST /v1/completions").at(0);
  EXPECT_EQ(request.attributes.at("gen_ai.request.choice.count"), "2");
  EXPECT_EQ(request.attributes.at("gen_ai.response.finish_reasons"), "length,length");
}

TEST(Traces, BeginHereWithoutACallerAndAreLeftOutWhereHeDoesNotSample) {
  TestCollector collector;
  const RunningServer server({}, traced_to(collector));
  HttpClient client(server.port());
  client.request("GET", "/v1/models", {}, {kUnsampled});
  client.request("GET", "/health/ready");
  client.request("GET", "/metrics");
  client.request("GET", "/v1/models", {}, {"Traceparent: nonsense", "Tracestate: a=1"});
  client.request("GET", "/health/ready", {}, {kSampled});
  const auto spans = collector.spans(2);
  ASSERT_EQ(spans.size(), 2u);
  const ReceivedSpan root = named(spans, "GET /v1/models").at(0);
  EXPECT_EQ(root.parent_span_id, "");
  EXPECT_EQ(root.trace_state, "");
  EXPECT_EQ(root.flags, 0x101u);
  EXPECT_NE(root.trace_id, kTrace);
  EXPECT_EQ(named(spans, "GET /health/ready").at(0).trace_id, kTrace);
}

TEST(Traces, SayWhyARequestWasRefused) {
  TestCollector collector;
  const RunningServer server({.max_requests = 0}, traced_to(collector));
  HttpClient client(server.port());
  client.request("POST", "/v1/completions", R"({"prompt":)");
  client.request("GET", "/nowhere");
  client.request("POST", "/v1/completions", R"({"prompt":"a"})");
  client.request("BREW", "/v1/models");
  const auto spans = collector.spans(4);
  ASSERT_EQ(spans.size(), 4u);
  const auto expect = [&](std::size_t i, const char* name, const char* status, bool is_error) {
    EXPECT_EQ(spans[i].name, name);
    EXPECT_EQ(spans[i].attributes.at("http.response.status_code"), status);
    EXPECT_EQ(spans[i].attributes.at("error.type"), status);
    EXPECT_EQ(spans[i].status, is_error ? 2 : 0) << name;
  };
  expect(0, "POST /v1/completions", "400", false);
  expect(1, "GET", "404", false);
  EXPECT_EQ(spans[1].attributes.count("http.route"), 0u);
  expect(2, "POST /v1/completions", "503", true);
  expect(3, "HTTP", "405", false);
  EXPECT_EQ(spans[3].attributes.at("http.request.method"), "_OTHER");
  EXPECT_EQ(spans[3].attributes.at("http.request.method_original"), "BREW");
}

TEST(Traces, SayWhereARequestWithoutAKeyWanted) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("kvasir-trace-keys-" + std::to_string(::getpid()))).string();
  ASSERT_TRUE(auth::write_key_file(file, {{.name = "team", .hash = auth::hash_of("kv-team")}}));
  TestCollector collector;
  ServerConfig config = traced_to(collector);
  config.api_keys_file = file;
  const RunningServer server({}, config);
  std::filesystem::remove(file);
  HttpClient client(server.port());
  EXPECT_EQ(client.request("GET", "/v1/models/fake").status, 401);
  EXPECT_EQ(client.request("GET", "/nowhere").status, 401);
  EXPECT_EQ(client.request("POST", "/v1/completions", R"({"prompt":"a"})").status, 401);  // before its body
  const auto spans = collector.spans(3);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].name, "GET /v1/models/*");
  EXPECT_EQ(spans[0].attributes.at("http.route"), "/v1/models/*");
  EXPECT_EQ(spans[0].attributes.at("error.type"), "401");
  EXPECT_EQ(spans[1].name, "GET");
  EXPECT_EQ(spans[1].attributes.count("http.route"), 0u);
  EXPECT_EQ(spans[2].name, "POST /v1/completions");
}

TEST(Traces, SayHowAStreamBrokeOff) {
  TestCollector collector;
  const RunningServer server(
      {.answer = std::string(300, 'a'), .step = 5ms, .fail_after_tokens = 200, .cost = kCost},
      traced_to(collector));
  {
    HttpClient client(server.port());
    client.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":250,"stream":true})"));
    client.receive_until("data:");
  }
  const auto left = named(collector.spans(4), "POST /v1/completions");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].attributes.at("error.type"), "disconnected");
  EXPECT_EQ(left[0].status, 0);
  EXPECT_GE(std::stoi(left[0].attributes.at("gen_ai.usage.output_tokens")), 1);
  EXPECT_EQ(left[0].attributes.at("kvasir.cpu_seconds"), "0.003000");
  HttpClient client(server.port());
  EXPECT_EQ(
      client.request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":250,"stream":true})").status,
      200);
  const auto failed = named(collector.spans(8), "POST /v1/completions");
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[1].attributes.at("error.type"), "stream_failed");
  EXPECT_EQ(failed[1].status, 2);
}

TEST(Traces, LeaveBeforeTheServerIsGone) {
  TestCollector collector;
  ServerConfig config = traced_to(collector);
  config.tracing->pending.max_delay = 60s;
  RunningServer server({}, config);
  HttpClient(server.port()).request("GET", "/v1/models");
  server.server->stop();
  server.join();
  EXPECT_EQ(collector.spans(1).size(), 1u);
}

TEST(Traces, HoldUpNeitherRequestsNorTheEndWhenTheCollectorIsStuck) {
  TestCollector collector({{.delay = 60s}});
  RunningServer server({}, traced_to(collector));
  HttpClient client(server.port());
  client.request("GET", "/v1/models");
  collector.posts(1);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.request("GET", "/v1/models").status, 200);
  server.server->stop();
  server.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 8s);  // 2 s of it for the collector
}

TEST(Traces, AreCounted) {
  TestCollector collector({{.status = 401, .headers = {}, .body = {}}, {}});
  const RunningServer server({}, traced_to(collector));
  HttpClient client(server.port());
  client.request("GET", "/v1/models");
  collector.posts(1);
  std::this_thread::sleep_for(50ms);
  client.request("GET", "/v1/models");
  const auto wait_for = [&](const std::string& line) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      text = client.request("GET", "/metrics").body;
      if (text.find("\n" + line + "\n") != text.npos) return true;
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << line << "\nis missing in\n" << text;
    return false;
  };
  EXPECT_TRUE(wait_for("kvasir_trace_spans_dropped_total{reason=\"refused\"} 1"));
  EXPECT_TRUE(wait_for("kvasir_trace_spans_exported_total 1"));
  EXPECT_EQ(HttpClient(RunningServer().port()).request("GET", "/metrics").body.find("trace_spans"),
            std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::tracing_test
