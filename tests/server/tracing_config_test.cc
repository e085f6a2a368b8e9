// Flags and OpenTelemetry's variables together.
#include "server/observe/tracing/tracing_config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace kvasir::server::tracing_config_test {
namespace {

class TracingConfigTest : public testing::Test {
 protected:
  using Set = std::map<std::string, std::string>;

  Result<std::optional<observe::TracingConfig>> make(const observe::TracingFlags& flags,
                                                     const Set& variables) {
    warnings_.clear();
    const auto get = [&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    return observe::make_tracing_config(flags, get,
                                        [this](std::string_view line) { warnings_.emplace_back(line); });
  }
  std::string url(const observe::TracingFlags& flags, const Set& variables) {
    const auto config = make(flags, variables);
    if (!config) return config.error().message;
    return *config ? (*config)->url.shown() : "none";
  }
  std::string error(const observe::TracingFlags& flags, const Set& variables) {
    const auto config = make(flags, variables);
    EXPECT_FALSE(config);
    EXPECT_EQ(config.error().kind, ErrorKind::kUsage);
    return config.error().message;
  }

  std::vector<std::string> warnings_;
};

TEST_F(TracingConfigTest, IsNothingUntilSomebodySaysWhere) {
  EXPECT_EQ(url({}, {}), "none");
  EXPECT_EQ(url({.endpoint = {}, .share = 0.5}, {{"OTEL_SERVICE_NAME", "x"}}), "none");
}

TEST_F(TracingConfigTest, TakesTheFlagBeforeTheVariablesOfTracesBeforeThoseOfAllSignals) {
  const Set variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318/base/"},
                         {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/mine"}};
  EXPECT_EQ(url({.endpoint = "http://flag:1", .share = {}}, variables), "http://flag:1/v1/traces");
  EXPECT_EQ(url({}, variables), "https://traces/mine");
  EXPECT_EQ(url({}, {*variables.begin()}), "http://all:4318/base/v1/traces");
}

TEST_F(TracingConfigTest, IsTurnedOffByVariablesButNotAgainstAFlag) {
  for (const auto& off : {Set::value_type{"OTEL_SDK_DISABLED", "True"}, {"OTEL_TRACES_EXPORTER", "none"}}) {
    EXPECT_EQ(url({}, {off, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all"}}), "none");
    EXPECT_EQ(url({.endpoint = "http://flag", .share = {}}, {off}), "http://flag/v1/traces");
  }
}

TEST_F(TracingConfigTest, ReadsUrls) {
  const auto v6 = observe::parse_collector_url("http://[::1]:4318", observe::UrlUse::kBase);
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 4318);
  EXPECT_EQ(v6->authority(), "[::1]:4318");
  const auto query = observe::parse_collector_url("HTTPS://a.example?key=secret", observe::UrlUse::kAsIs);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->target, "/?key=secret");
  EXPECT_EQ(query->port, 443);
  EXPECT_EQ(query->authority(), "a.example");
  EXPECT_EQ(query->shown(), "https://a.example/");
}

TEST_F(TracingConfigTest, RefusesUrlsInALineWithoutTheirKeys) {
  EXPECT_EQ(error({.endpoint = "localhost:4318", .share = {}}, {}),
            "--otlp-endpoint takes a URL that begins with http:// or https://, got 'localhost:4318'");
  EXPECT_EQ(error({}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:65536"}}),
            "OTEL_EXPORTER_OTLP_ENDPOINT takes a URL with a host, and a port from 1 to 65535, got "
            "'http://a:65536'");
  for (const char* bad : {"", "http://", "http://:80", "http://a:0", "http://a:", "http://a:x", "http://[::1",
                          "http://[::1]x", "http://a b", "http://a/#f", "ftp://a"}) {
    EXPECT_FALSE(observe::parse_collector_url(bad, observe::UrlUse::kBase)) << bad;
  }
  for (const char* secret :
       {"http://me:secret@a", "ftp://me:secret@a", "http://a?secret", "http://a b?secret"}) {
    const auto refused = observe::parse_collector_url(secret, observe::UrlUse::kBase);
    ASSERT_FALSE(refused) << secret;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << refused.error().message;
  }
}

TEST_F(TracingConfigTest, ReadsHeadersAndRefusesThemWithoutTheirValues) {
  const Set::value_type endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"};
  const auto config =
      make({}, {endpoint, {"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc , x-b=1=2,"}}).value();
  ASSERT_EQ(config->headers.size(), 2u);
  EXPECT_EQ(config->headers[0].name, "Authorization");
  EXPECT_EQ(config->headers[0].value, "Bearer abc");
  EXPECT_EQ(config->headers[1].value, "1=2");
  const auto of_traces =
      make({},
           {endpoint, {"OTEL_EXPORTER_OTLP_HEADERS", "a=1"}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"}})
          .value();
  ASSERT_EQ(of_traces->headers.size(), 1u);
  EXPECT_EQ(of_traces->headers[0].name, "b");
  for (const char* bad : {"secret", "=secret", "a b=secret", "a=secret%0D%0Ax: y", "a=secret%FF"}) {
    const std::string message = error({}, {endpoint, {"OTEL_EXPORTER_OTLP_HEADERS", bad}});
    EXPECT_EQ(message, "OTEL_EXPORTER_OTLP_HEADERS takes headers as name=value,name=value") << bad;
  }
}

TEST_F(TracingConfigTest, NamesTheServer) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const Set::value_type endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"};
  const Set::value_type attributes = {"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,zone=north%20west"};
  EXPECT_EQ(make({}, {endpoint}).value()->resource, (Pairs{{"service.name", "kvasir"}}));
  EXPECT_EQ(make({}, {endpoint, attributes}).value()->resource,
            (Pairs{{"service.name", "a"}, {"zone", "north west"}}));
  EXPECT_EQ(make({}, {endpoint, attributes, {"OTEL_SERVICE_NAME", "b"}}).value()->resource,
            (Pairs{{"zone", "north west"}, {"service.name", "b"}}));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(make({}, {endpoint, {"OTEL_RESOURCE_ATTRIBUTES", "zone"}}).value()->resource,
            (Pairs{{"service.name", "kvasir"}}));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(TracingConfigTest, ChoosesTheSampler) {
  const Set::value_type endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"};
  const observe::TraceId high{0, 0, 0, 0, 0, 0, 0, 0, 0xFF};
  const auto samples = [&](const observe::TracingFlags& flags, Set variables) {
    variables.insert(endpoint);
    return make(flags, variables).value()->sampler.samples(high, nullptr);
  };
  EXPECT_TRUE(samples({}, {}));
  EXPECT_FALSE(samples({}, {{"OTEL_TRACES_SAMPLER", "always_off"}}));
  EXPECT_TRUE(samples({}, {{"OTEL_TRACES_SAMPLER", "traceidratio"}}));
  EXPECT_FALSE(samples({}, {{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "0.25"}}));
  EXPECT_TRUE(samples({.endpoint = {}, .share = 1.0}, {{"OTEL_TRACES_SAMPLER", "always_off"}}));
  EXPECT_FALSE(samples({.endpoint = {}, .share = 0.5}, {}));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_TRUE(samples({}, {{"OTEL_TRACES_SAMPLER", "xray"}}));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "OTEL_TRACES_SAMPLER: 'xray' is not known here, and counts as parentbased_always_on");
  EXPECT_TRUE(samples({}, {{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "2"}}));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(TracingConfigTest, ReadsTheTimeoutAndWarnsOfAnotherProtocol) {
  const Set::value_type endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"};
  EXPECT_EQ(make({}, {endpoint}).value()->timeout.count(), 10'000);
  EXPECT_EQ(make({}, {endpoint, {"OTEL_EXPORTER_OTLP_TIMEOUT", "500"}}).value()->timeout.count(), 500);
  EXPECT_TRUE(make({}, {endpoint, {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}}).has_value());
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(make({}, {endpoint, {"OTEL_EXPORTER_OTLP_TIMEOUT", "-5"}}).value()->timeout.count(), 10'000);
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(make({}, {endpoint, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}).has_value());
  EXPECT_EQ(warnings_.size(), 1u);
}

}  // namespace
}  // namespace kvasir::server::tracing_config_test
