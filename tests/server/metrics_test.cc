// The numbers of an operator's dashboards: stages of the first token, slices, and another server's names.
#include <gtest/gtest.h>

#include <string>

#include "http_client.h"
#include "running_server.h"
#include "server/observe/request_slices.h"

namespace kvasir::server::metrics_test {
namespace {

using namespace std::chrono_literals;

std::string metrics_after(const RunningServer& server, std::initializer_list<const char*> bodies) {
  HttpClient client(server.port());
  for (const char* body : bodies) EXPECT_EQ(client.request("POST", "/v1/completions", body).status, 200);
  return client.request("GET", "/metrics").body;
}

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << "\nis missing in\n" << text;
}

// The value behind the first occurrence of `name`.
double value_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1.0 : std::stod(text.substr(at + name.size() + 2));
}

TEST(Metrics, SplitTheTimeToTheFirstToken) {
  const RunningServer server({.prefill = 30ms});
  const std::string text = metrics_after(
      server, {R"({"prompt":"abc","max_tokens":2})", R"({"prompt":"abc","max_tokens":2,"stream":true})"});
  double sum = 0.0;
  for (const char* stage : {"preprocess", "queue", "prefill", "first_decode"}) {
    const std::string labels = std::string("{model=\"fake\",stage=\"") + stage + "\"}";
    expect_line(text, "kvasir_start_stage_seconds_count" + labels + " 2");
    sum += value_of(text, "kvasir_start_stage_seconds_sum" + labels);
  }
  EXPECT_GE(sum, 0.06);
  EXPECT_NEAR(sum, value_of(text, "kvasir_time_to_first_token_seconds_sum{model=\"fake\"}"), 1e-6);
  expect_line(text, "kvasir_start_stage_seconds_count{model=\"fake\",stage=\"flush\"} 1");  // of the stream
}

TEST(Metrics, ShowStepsAndFormatsOfKv) {
  const RunningServer server;
  const std::string text = metrics_after(server, {});
  expect_line(text, "kvasir_step_seconds_bucket{model=\"fake\",le=\"0.0025\"} 0");
  expect_line(text, "kvasir_step_seconds_bucket{model=\"fake\",le=\"0.005\"} 3");
  expect_line(text, "kvasir_step_seconds_sum{model=\"fake\"} 0.012");
  expect_line(text, "kvasir_step_sequences_bucket{model=\"fake\",le=\"256\"} 0");
  expect_line(text, "kvasir_step_sequences_count{model=\"fake\"} 3");
  expect_line(text, "kvasir_step_sequences_sum{model=\"fake\"} 900");
  expect_line(text, "kvasir_kv_format_bytes{format=\"f16\"} 4096");
}

TEST(Metrics, EscapeForeignText) {
  const RunningServer server({}, {.served_model_name = "a\"b\\\n\x1b\xff"});
  const std::string text = metrics_after(server, {});
  expect_line(text, R"(kvasir_requests_running{model="a\"b\\\\x0a\\x1b\\xff"} 0)");
}

TEST(Metrics, CountTheLinesThatLogsLost) {
  const RunningServer server({}, {.logs = {{.log = "kv", .count = [] { return std::int64_t{7}; }}}});
  expect_line(metrics_after(server, {}), R"(kvasir_log_lines_dropped_total{log="kv"} 7)");
}

TEST(Metrics, CountRequestsByTheirKind) {
  const RunningServer server;
  const std::string text = metrics_after(
      server, {R"({"prompt":"abc","max_tokens":2})", R"({"prompt":"abc","max_tokens":2,"priority":-1})"});
  expect_line(text, "kvasir_slice_requests_total{slice=\"prompt_tokens\",value=\"le_64\"} 2");
  expect_line(text, "kvasir_slice_requests_total{slice=\"output_tokens\",value=\"le_64\"} 2");
  expect_line(text, "kvasir_slice_requests_total{slice=\"priority\",value=\"-1\"} 1");
  expect_line(text, "kvasir_slice_requests_total{slice=\"priority\",value=\"0\"} 1");
  EXPECT_GT(value_of(text, "kvasir_slice_first_token_seconds_total{slice=\"prompt_tokens\",value=\"le_64\"}"),
            0.0);
}

TEST(Metrics, SlicesAreBounded) {
  observe::RequestSlices slices;
  for (int i = 0; i < 1000; ++i) {
    observe::AccessRecord record{.tenant = "tenant-" + std::to_string(i),
                                 .generation = observe::GenerationRecord{}};
    record.generation->priority = i;
    record.generation->usage.prompt_tokens = 100 * i;
    slices.count(record);
  }
  EXPECT_LT(slices.sums().size(), 160u);
  EXPECT_EQ(slices.sums().at({"tenant", "(others)"}).num_requests, 1000 - 64);
}

TEST(Metrics, HaveVllmsNamesWhereTheyAreWanted) {
  ServerConfig config;
  config.metrics_alias = "vllm";
  const RunningServer server({}, config);
  const std::string text = metrics_after(server, {R"({"prompt":"abc","max_tokens":2})"});
  expect_line(text, "vllm:num_requests_waiting{model_name=\"fake\"} 0");
  expect_line(text, "vllm:generation_tokens_total{model_name=\"fake\"} 2");
  expect_line(text, "vllm:time_to_first_token_seconds_count{model_name=\"fake\"} 1");
  EXPECT_EQ(metrics_after(RunningServer(), {}).find("vllm:"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::metrics_test
