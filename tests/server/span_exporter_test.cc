// Spans on their way: batches, retries, what is dropped, and a collector that is slow, gone or back.
#include "server/observe/tracing/span_exporter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "certificate.h"
#include "running_server.h"
#include "server/observe/tracing/otlp.h"
#include "server/observe/tracing/proto_writer.h"
#include "test_collector.h"

namespace kvasir::server::span_exporter_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

observe::TracedRequest traced(std::string path = "/v1/models") {
  return {
      .record = {.request_id = "req_1",
                 .client_request_id = {},
                 .trace_id = {},
                 .tenant = {},
                 .method = "GET",
                 .path = path,
                 .route = std::move(path),
                 .status = 200,
                 .abort_cause = {},
                 .generation = {},
                 .trace = observe::RequestTrace{observe::new_trace_id(), observe::new_span_id(), {}, {}, {}}},
      .ended_at = std::chrono::system_clock::now()};
}

TEST(PendingRequests, AreDueWhenTheyAreABatchOrTheOldestHasWaited) {
  observe::PendingRequests pending({.max_requests = 5, .batch_requests = 3, .max_delay = 100ms});
  const auto start = Clock::time_point(1s);
  EXPECT_EQ(pending.due_at(), Clock::time_point::max());
  EXPECT_TRUE(pending.push(traced("/0"), start));
  EXPECT_TRUE(pending.push(traced("/1"), start + 50ms));
  EXPECT_EQ(pending.due_at(), start + 100ms);
  EXPECT_TRUE(pending.push(traced("/2"), start + 60ms));
  EXPECT_LE(pending.due_at(), start + 60ms);  // at once
  EXPECT_TRUE(pending.push(traced("/3"), start + 70ms));
  EXPECT_TRUE(pending.push(traced("/4"), start + 80ms));
  EXPECT_FALSE(pending.push(traced("/5"), start + 90ms));
  const auto batch = pending.take_batch();
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[0].record.path, "/0");
  EXPECT_EQ(pending.due_at(), start + 170ms);
  EXPECT_EQ(pending.take_batch().size(), 2u);
  EXPECT_TRUE(pending.empty());
  EXPECT_TRUE(pending.take_batch().empty());
}

TEST(Backoff, DoublesToItsLongestAndGivesUp) {
  const auto start = Clock::time_point(1s);
  observe::Backoff backoff({.first = 100ms, .longest = 350ms, .give_up_after = 2000ms}, start);
  EXPECT_EQ(backoff.next(start, {}, 1.0), 100ms);
  EXPECT_EQ(backoff.next(start + 100ms, {}, 0.0), 100ms);  // half of 200
  EXPECT_EQ(backoff.next(start + 200ms, {}, 1.0), 350ms);
  EXPECT_EQ(backoff.next(start + 200ms, {}, 1.0), 350ms);
  EXPECT_EQ(backoff.next(start + 1600ms, {}, 1.0), 350ms);
  EXPECT_EQ(backoff.next(start + 1700ms, {}, 1.0), std::nullopt);
}

TEST(Backoff, WaitsAsLongAsTheServerAsksUnlessThatIsTooLong) {
  const auto start = Clock::time_point(1s);
  observe::Backoff backoff({.first = 100ms, .longest = 300ms, .give_up_after = 5000ms}, start);
  EXPECT_EQ(backoff.next(start, 3s, 0.5), 3000ms);
  EXPECT_EQ(backoff.next(start + 3s, 0s, 1.0), 200ms) << "no sooner than without being asked";
  EXPECT_EQ(backoff.next(start + 3s, 3s, 0.5), std::nullopt);
}

std::string partial_success(std::int64_t num_rejected, std::string_view message) {
  std::string body;
  observe::ProtoWriter(body).message(1, [&](observe::ProtoWriter& partial) {
    partial.varint(1, static_cast<std::uint64_t>(num_rejected)).bytes(2, message);
  });
  return body;
}

TEST(ExportResponse, IsReadAndNeverTrusted) {
  const observe::PartialSuccess partial = observe::parse_export_response(partial_success(3, "too many"));
  EXPECT_EQ(partial.num_rejected_spans, 3);
  EXPECT_EQ(partial.message, "too many");
  EXPECT_EQ(observe::parse_export_response("").num_rejected_spans, 0);
  for (const std::string& broken : {std::string("{}"), std::string("\x0A\xFF", 2), std::string(64, '\xFF'),
                                    std::string("\x0A\x05\x08", 3), std::string("\x0B\x01", 2)}) {
    EXPECT_EQ(observe::parse_export_response(broken).num_rejected_spans, 0) << broken;
    EXPECT_LE(observe::parse_refusal(broken).size(), broken.size());
  }
  std::string refusal;
  observe::ProtoWriter(refusal).varint(1, 3).bytes(2, "no such tenant");
  EXPECT_EQ(observe::parse_refusal(refusal), "no such tenant");
}

class SpanExporterTest : public testing::Test {
 protected:
  std::unique_ptr<observe::SpanExporter> make(const std::string& url,
                                              observe::SpanExporter::Options options = {},
                                              const std::string& ca_file = {}) {
    options.version = "1.2";
    options.shown_url = "URL";
    options.pending.max_delay = 5ms;
    options.backoff.first = 5ms;
    options.resource = {{"service.name", std::string("test")}};
    options.warn = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      warnings_.emplace_back(line);
    };
    auto client = observe::CollectorClient::create(
        {.url = observe::parse_collector_url(url, observe::UrlUse::kBase).value(),
         .headers = {{"X-Key", "abc"}},
         .user_agent = "kvasir/1.2",
         .ca_file = ca_file});
    return std::make_unique<observe::SpanExporter>(std::move(options), std::move(client).value());
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  template <class Done>
  static bool becomes(Done done) {
    for (int i = 0; i < 1000 && !done(); ++i) std::this_thread::sleep_for(5ms);
    return done();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;  // guarded
};

TEST_F(SpanExporterTest, PostsWhatItsCollectorExpects) {
  TestCollector collector;
  const auto exporter = make(collector.url());
  exporter->push(traced());
  const auto posts = collector.posts(1);
  ASSERT_EQ(posts.size(), 1u);
  EXPECT_TRUE(posts[0].head.starts_with("POST /v1/traces HTTP/1.1\r\n")) << posts[0].head;
  for (const char* line : {"Content-Type: application/x-protobuf", "User-Agent: kvasir/1.2", "X-Key: abc"}) {
    EXPECT_NE(posts[0].head.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(read_resource(posts[0].body), (std::map<std::string, std::string>{{"service.name", "test"}}));
  EXPECT_EQ(read_spans(posts[0].body).at(0).name, "GET /v1/models");
  EXPECT_TRUE(becomes([&] { return exporter->counts().exported() == 1; }));
  EXPECT_TRUE(warnings().empty());
}

TEST_F(SpanExporterTest, TriesAgainWhatMayBeTriedAgainAndWarnsOnceEachWay) {
  TestCollector collector({{.status = 503, .headers = {}, .body = {}},
                           {.status = 429, .headers = "Retry-After: 0\r\n", .body = {}},
                           {.status = 502, .headers = {}, .body = {}},
                           {.status = 504, .headers = {}, .body = {}},
                           {}});
  const auto exporter = make(collector.url());
  exporter->push(traced());
  EXPECT_EQ(collector.posts(5).size(), 5u);
  EXPECT_TRUE(becomes([&] { return exporter->counts().exported() == 1; }));
  EXPECT_TRUE(becomes([&] { return warnings().size() == 2; }));
  EXPECT_EQ(warnings(), (std::vector<std::string>{"traces: URL takes no spans: status 503",
                                                  "traces: URL takes spans again, 0 were dropped"}));
}

TEST_F(SpanExporterTest, DropsWhatIsRefusedAndGoesOn) {
  std::string refusal;
  observe::ProtoWriter(refusal).bytes(2, "not\nyou");
  TestCollector collector({{.status = 401, .headers = {}, .body = refusal}, {}});
  const auto exporter = make(collector.url());
  exporter->push(traced());
  EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kRefused) == 1; }));
  exporter->push(traced());
  EXPECT_TRUE(becomes([&] { return exporter->counts().exported() == 1; }));
  EXPECT_TRUE(becomes([&] { return warnings().size() == 2; }));
  EXPECT_EQ(warnings()[0], "traces: URL takes no spans: status 401: not\\x0ayou");
  EXPECT_EQ(warnings()[1], "traces: URL takes spans again, 1 were dropped");
}

TEST_F(SpanExporterTest, CountsWhatIsRejectedOfABatch) {
  TestCollector collector({{.status = 200, .headers = {}, .body = partial_success(1, "old")},
                           {.status = 200, .headers = {}, .body = partial_success(-7, "")},
                           {.status = 200, .headers = {}, .body = partial_success(1 << 30, "")}});
  const auto exporter = make(collector.url());
  for (int i = 1; i <= 3; ++i) {
    exporter->push(traced());
    collector.posts(static_cast<std::size_t>(i));
  }
  EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kRejected) == 2; }));
  EXPECT_EQ(exporter->counts().exported(), 1);
  EXPECT_EQ(warnings(), std::vector<std::string>{"traces: URL took no notice of 1 of 1 spans: old"});
}

TEST_F(SpanExporterTest, GivesUpOnACollectorThatIsGone) {
  std::string url;
  {
    const TestCollector gone;
    url = gone.url();
  }
  const auto exporter = make(url, {.backoff = {.longest = 10ms, .give_up_after = 30ms}});
  exporter->push(traced());
  EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kUnreachable) == 1; }));
  EXPECT_EQ(warnings(),
            std::vector<std::string>{"traces: URL takes no spans: connecting: Connection refused"});
}

TEST_F(SpanExporterTest, NeitherWaitsForASlowCollectorNorKeepsMoreThanItMay) {
  TestCollector collector({{.delay = 3000ms}, {}});
  const auto exporter = make(collector.url(), {.pending = {.max_requests = 10, .batch_requests = 4}});
  exporter->push(traced());
  collector.posts(1);
  const auto began = Clock::now();
  for (int i = 0; i < 1000; ++i) exporter->push(traced());
  EXPECT_LT(Clock::now() - began, 1s);
  EXPECT_EQ(exporter->counts().dropped(observe::DropReason::kQueueFull), 990);
  exporter->finish(5s);
  EXPECT_EQ(exporter->counts().exported(), 11);
  EXPECT_EQ(collector.posts(4).size(), 4u);  // 1, 4, 4, 2
}

TEST_F(SpanExporterTest, TakesNoAnswerForTooLongAnAnswer) {
  TestCollector collector({{.delay = 300ms}, {}});
  const auto exporter = make(collector.url(), {.timeout = 50ms});
  exporter->push(traced());
  EXPECT_TRUE(becomes([&] { return exporter->counts().exported() == 1; }));
  EXPECT_EQ(warnings().at(0), "traces: URL takes no spans: waiting for the answer: no answer in time");
}

TEST_F(SpanExporterTest, FinishesInTimeWhateverTheCollectorDoes) {
  TestCollector collector({{.delay = 60s}});
  auto exporter = make(collector.url());
  exporter->push(traced());
  collector.posts(1);
  exporter->push(traced());
  const auto began = Clock::now();
  exporter->finish(100ms);
  EXPECT_LT(Clock::now() - began, 500ms);
  EXPECT_EQ(exporter->counts().dropped(observe::DropReason::kShutdown), 2);
  exporter->push(traced());
  EXPECT_EQ(exporter->counts().dropped(observe::DropReason::kShutdown), 3);
}

TEST_F(SpanExporterTest, FinishesWithOneMoreAttemptInsteadOfWaiting) {
  TestCollector collector({{.status = 503, .headers = "Retry-After: 30\r\n", .body = {}}, {}});
  const auto exporter = make(collector.url());
  exporter->push(traced());
  collector.posts(1);
  EXPECT_TRUE(becomes([&] { return !warnings().empty(); }));
  const auto began = Clock::now();
  exporter->finish(5s);
  EXPECT_LT(Clock::now() - began, 2s);
  EXPECT_EQ(exporter->counts().exported(), 1);
}

TEST_F(SpanExporterTest, NamesAHostThatIsNotThere) {
  const auto exporter =
      make("http://no-such-host.invalid", {.timeout = 1000ms, .backoff = {.give_up_after = 0ms}});
  exporter->push(traced());
  EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kUnreachable) == 1; }));
  EXPECT_TRUE(warnings().at(0).starts_with("traces: URL takes no spans: looking the host up: "));
}

TEST_F(SpanExporterTest, TrustsWhomItIsToldToOverTlsAndNobodyElse) {
  const std::string stem =
      (std::filesystem::temp_directory_path() / ("kvasir-otlp-" + std::to_string(::getpid()))).string();
  write_certificate(stem + ".crt", stem + ".key", "collector");
  ServerConfig config;
  config.tls_certificate_file = stem + ".crt";
  config.tls_key_file = stem + ".key";
  const RunningServer server({}, config);  // knows no /v1/traces, which it says once it is trusted
  const std::string port = std::to_string(server.port());
  {
    const auto exporter = make("https://127.0.0.1:" + port, {}, stem + ".crt");
    exporter->push(traced());
    EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kRefused) == 1; }));
    EXPECT_EQ(warnings().at(0), "traces: URL takes no spans: status 404");
  }
  {
    const auto exporter = make("https://127.0.0.1:" + port, {.backoff = {.give_up_after = 0ms}});
    exporter->push(traced());
    EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kUnreachable) == 1; }));
    EXPECT_EQ(warnings().at(1), "traces: URL takes no spans: TLS: certificate verify failed");
  }
  {  // the certificate is that of the address alone
    const auto exporter =
        make("https://localhost:" + port, {.backoff = {.give_up_after = 0ms}}, stem + ".crt");
    exporter->push(traced());
    EXPECT_TRUE(becomes([&] { return exporter->counts().dropped(observe::DropReason::kUnreachable) == 1; }));
    EXPECT_EQ(warnings().at(2), "traces: URL takes no spans: TLS: certificate verify failed");
  }
  std::filesystem::remove(stem + ".key");
  EXPECT_FALSE(observe::CollectorClient::create(
      {.url = observe::parse_collector_url("https://a", observe::UrlUse::kBase).value(),
       .headers = {},
       .user_agent = {},
       .ca_file = stem + ".key"}));
  std::filesystem::remove(stem + ".crt");
}

}  // namespace
}  // namespace kvasir::server::span_exporter_test
