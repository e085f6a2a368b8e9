// A server with API keys: who has none learns nothing, tenants share no prefixes, what is revoked is refused.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"
#include "server/auth/key_ring.h"

namespace kvasir::server::api_keys_test {
namespace {

using namespace std::chrono_literals;

constexpr char kPrompt[] = R"({"prompt":"a","max_tokens":1})";

// While it lives, no file can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class ApiKeys : public testing::Test {
 protected:
  ApiKeys() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("kvasir-keys-") + test.name() + "-" + std::to_string(::getpid())))
                .string();
    write({{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = "2026-11-23T00:00:00Z"},
           {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"}});
  }
  ~ApiKeys() override { std::filesystem::remove(path_); }

  void write(const std::vector<auth::ApiKey>& keys) { ASSERT_TRUE(auth::write_key_file(path_, keys)); }
  ServerConfig config() {
    ServerConfig config;
    config.api_keys_file = path_;
    config.warn = [this](std::string_view line) { warnings_.emplace_back(line); };
    return config;
  }
  static int status_with(const RunningServer& server, const std::string& authorization) {
    return HttpClient(server.port())
        .request("POST", "/v1/completions", kPrompt, {"Authorization: " + authorization})
        .status;
  }

  std::string path_;
  std::vector<std::string> warnings_;
};

TEST_F(ApiKeys, AreAskedOfEverybodyWhateverThePath) {
  const RunningServer server({}, config());
  for (const char* path : {"/v1/completions", "/v1/models", "/metrics", "/load", "/no/such/path"}) {
    SCOPED_TRACE(path);
    const ClientResponse answer = HttpClient(server.port()).request("GET", path);
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("www-authenticate"), "Bearer");
    EXPECT_NE(answer.body.find(R"("code":"invalid_api_key")"), std::string::npos) << answer.body;
  }
  // The page asks for one itself.
  for (const char* path : {"/health/live", "/health/ready", "/ping", "/version", "/openapi.json", "/"}) {
    EXPECT_EQ(HttpClient(server.port()).request("GET", path).status, 200) << path;
  }
}

TEST_F(ApiKeys, LetInWhoHasOne) {
  const RunningServer server({}, config());
  EXPECT_EQ(status_with(server, "Bearer kv-ann"), 200);
  EXPECT_EQ(status_with(server, "bearer kv-bob"), 200);
  for (const char* refused :
       {"Bearer kv-eve", "Bearer ", "Bearer", "Basic kv-ann", "kv-ann", "Bearer kv-ann2"}) {
    EXPECT_EQ(status_with(server, refused), 401) << refused;
  }
}

TEST_F(ApiKeys, EndTheRunningAnswersOfARevokedOne) {
  RunningServer server({.answer = std::string(3000, 'x'), .step = 5ms, .max_model_len_tokens = 4096}, config());
  const std::string ann = "Authorization: Bearer kv-ann", bob = "Authorization: Bearer kv-bob";
  HttpClient stream(server.port()), whole(server.port()), other(server.port());
  stream.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":3000,"stream":true})", {ann}));
  EXPECT_NE(stream.receive_until("data: ").find(" 200 "), std::string::npos);
  whole.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":3000})", {ann}));
  other.send(http_request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":400,"stream":true})", {bob}));
  std::this_thread::sleep_for(100ms);
  const auto revoked_at = std::chrono::steady_clock::now();
  write({{.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"}});
  EXPECT_EQ(whole.receive().status, 401);
  EXPECT_EQ(stream.receive_until("[DONE]").find("[DONE]"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - revoked_at, 1500ms);
  EXPECT_NE(other.receive().body.find("[DONE]"), std::string::npos);
}

TEST_F(ApiKeys, AreAskedForBeforeABodyIsRead) {
  ServerConfig config = this->config();
  config.cors_origins = {"https://page.example"};
  const RunningServer server({}, config);
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nOrigin: https://page.example\r\nContent-Length: "
      "100000\r\n";
  for (const char* rest : {"\r\n", "Expect: 100-continue\r\n\r\n", "\r\n{\"prompt\":"}) {
    SCOPED_TRACE(rest);
    HttpClient client(server.port());
    client.send(head + rest);
    const ClientResponse answer = client.receive();
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("connection"), "close");
    EXPECT_EQ(answer.header("access-control-allow-origin"), "https://page.example");
    EXPECT_TRUE(client.closes_within(5s));
  }
}

TEST_F(ApiKeys, KeepTenantsPrefixesApart) {
  RunningServer server({}, config());
  ASSERT_EQ(status_with(server, "Bearer kv-ann"), 200);
  const std::string anns = server.engine.last_request().cache_namespace;
  ASSERT_EQ(status_with(server, "Bearer kv-bob"), 200);
  const std::string bobs = server.engine.last_request().cache_namespace;
  EXPECT_NE(anns, bobs);
  // Nor does a salt lead into another's.
  ASSERT_EQ(HttpClient(server.port())
                .request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1,"cache_salt":"ann\n"})",
                         {"Authorization: Bearer kv-bob"})
                .status,
            200);
  EXPECT_NE(server.engine.last_request().cache_namespace, anns);
}

TEST_F(ApiKeys, ShowATenantItsOwnCostsAloneUnlessItOperates) {
  write({{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = "2026-11-23T00:00:00Z"},
         {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"},
         {.name = "ops",
          .hash = auth::hash_of("kv-ops"),
          .created = "2026-11-23T00:00:00Z",
          .is_operator = true}});
  const RunningServer server({}, config());
  for (const char* name : {"ann", "bob"})
    ASSERT_EQ(status_with(server, std::string("Bearer kv-") + name), 200);
  const auto metrics_of = [&](const std::string& key) {
    return HttpClient(server.port()).request("GET", "/metrics", "", {"Authorization: Bearer " + key}).body;
  };
  // A request is counted when its answer has left, which its client may see before.
  std::string everybodys;
  for (int i = 0; i < 500 && everybodys.find("tenant=\"bob\"") == everybodys.npos; ++i) {
    std::this_thread::sleep_for(10ms);
    everybodys = metrics_of("kv-ops");
  }
  const std::string anns = metrics_of("kv-ann");
  EXPECT_NE(anns.find("cost_requests_total{tenant=\"ann\""), std::string::npos);
  EXPECT_EQ(anns.find("bob"), std::string::npos) << anns;
  for (const char* name : {"ann", "bob"}) {
    EXPECT_NE(everybodys.find(std::string("cost_requests_total{tenant=\"") + name), std::string::npos);
    EXPECT_NE(everybodys.find(std::string("slice=\"tenant\",value=\"") + name), std::string::npos);
  }
}

TEST_F(ApiKeys, ShowATenantNothingThatTellsOfOthersRequests) {
  write({{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = "2026-11-23T00:00:00Z"},
         {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"},
         {.name = "ops",
          .hash = auth::hash_of("kv-ops"),
          .created = "2026-11-23T00:00:00Z",
          .is_operator = true}});
  ServerConfig aliased = config();
  aliased.metrics_alias = "vllm";
  const RunningServer server({}, aliased);
  const auto seen = [&](const std::string& path, const std::string& key) {
    return HttpClient(server.port()).request("GET", path, "", {"Authorization: Bearer " + key}).body;
  };
  const auto seen_of_the_cache = [&](const std::string& key) {
    std::string lines;
    std::istringstream text(seen("/metrics", key));
    for (std::string line; std::getline(text, line);) {
      if (line.find("cache") != line.npos || line.starts_with("kvasir_slice")) lines += line + "\n";
    }
    const std::string summary = seen("/v1/metrics", key), operations = seen("/v1/operations", key);
    for (const char* name :
         {"\"requests\"", "\"cached_tokens\"", "\"mean_latency_s\"", "\"mean_time_to_first_token_s\""}) {
      const std::size_t at = summary.find(name);
      lines += summary.substr(at, summary.find(',', at) - at) + "\n";
    }
    lines += operations.substr(operations.find("\"prefix_cache\""), 60);
    return lines;
  };
  const auto seen_of_all = [&](const std::string& key) {
    const std::string operations = seen("/v1/operations", key);
    return seen("/metrics", key) + seen("/v1/metrics", key) + operations.substr(operations.find("\"model\""));
  };
  const std::string bobs_before = seen_of_the_cache("kv-bob"), all_before = seen_of_the_cache("kv-ops");
  const std::string bobs_whole_before = seen_of_all("kv-bob");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(status_with(server, "Bearer kv-ann"), 200);
  const auto anns_are_counted = [&] {
    return seen("/metrics", "kv-ann").find("kvasir_prefix_cache_queries_tokens_total{model=\"fake\"} 3") !=
           std::string::npos;
  };
  for (int i = 0; i < 500 && !anns_are_counted(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(anns_are_counted());
  const std::string anns = seen("/v1/metrics", "kv-ann");
  EXPECT_NE(anns.find("\"requests\":3,"), anns.npos) << anns;
  for (const char* name : {"\"mean_latency_s\":0,", "\"mean_time_to_first_token_s\":0,"})
    EXPECT_EQ(anns.find(name), anns.npos) << anns;
  EXPECT_EQ(seen_of_the_cache("kv-bob"), bobs_before);
  EXPECT_EQ(seen_of_all("kv-bob"), bobs_whole_before);
  EXPECT_NE(seen_of_the_cache("kv-ops"), all_before);
}

TEST_F(ApiKeys, AreReadAgainWhenTheFileChanges) {
  const RunningServer server({}, config());
  ASSERT_EQ(status_with(server, "Bearer kv-ann"), 200);
  write({{.name = "eve", .hash = auth::hash_of("kv-eve"), .created = "2026-11-23T00:00:00Z"}});
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(status_with(server, "Bearer kv-ann"), 401);
  EXPECT_EQ(status_with(server, "Bearer kv-eve"), 200);
  // A file that breaks leaves them as they were.
  std::ofstream(path_) << "eve nothing\n";
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(status_with(server, "Bearer kv-eve"), 200);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(":1: the hash must have 64"), std::string::npos) << warnings_[0];
}

TEST_F(ApiKeys, NobodyWithoutOneFillsTheMemoryOfBodies) {
  const RunningServer server({}, config());
  HttpClient client(server.port());
  const ClientResponse answer = client.request("POST", "/health", std::string(100'000, 'x'));
  EXPECT_EQ(answer.status, 413) << answer.body;
  EXPECT_NE(answer.body.find("takes no body"), std::string::npos) << answer.body;
}

TEST_F(ApiKeys, OfAFileThatIsGoneStayAndThatIsSaid) {
  const RunningServer server({}, config());
  std::filesystem::remove(path_);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(1100ms);
    EXPECT_EQ(status_with(server, "Bearer kv-ann"), 200);
  }
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("No such file"), std::string::npos) << warnings_[0];
}

TEST_F(ApiKeys, OfAFileThatCannotBeReadStartNoServer) {
  FakeEngine engine;
  ServerConfig config = this->config();
  config.port = 0;
  config.api_keys_file = path_ + "-none";
  const auto server = Server::create(engine, config);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("No such file"), std::string::npos) << server.error().message;
  config.api_keys_file = std::filesystem::temp_directory_path().string();
  const auto of_a_folder = Server::create(engine, config);
  ASSERT_FALSE(of_a_folder);
  EXPECT_NE(of_a_folder.error().message.find("it is a folder"), std::string::npos)
      << of_a_folder.error().message;
}

// As where connections have taken all descriptors.
TEST_F(ApiKeys, OfAFileThatCannotBeOpenedStayUntilItCan) {
  const auto ring =
      auth::KeyRing::open(path_, [this](std::string_view line) { warnings_.emplace_back(line); });
  ASSERT_TRUE(ring);
  const auto admits = [&](const char* key) {
    http::Request request;
    request.headers = {{"Authorization", std::string("Bearer ") + key}};
    return (*ring)->admit(request).has_value();
  };
  write({{.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z"}});
  std::this_thread::sleep_for(1100ms);
  {
    const NoDescriptors none_left;
    EXPECT_FALSE(auth::read_key_file(path_)) << "it is no file without keys";
    EXPECT_TRUE(admits("kv-ann"));
    EXPECT_TRUE(admits("kv-bob"));
    std::this_thread::sleep_for(1100ms);
    EXPECT_TRUE(admits("kv-bob"));
  }
  ASSERT_EQ(warnings_.size(), 1u) << "of one version of the file";
  EXPECT_NE(warnings_[0].find("Too many open files"), std::string::npos) << warnings_[0];
  std::this_thread::sleep_for(1100ms);
  EXPECT_FALSE(admits("kv-ann")) << "who was revoked meanwhile";
  EXPECT_TRUE(admits("kv-bob"));
}

TEST_F(ApiKeys, AreKeptAsHashesForTheOwnerAlone) {
  const auto key = auth::make_api_key();
  ASSERT_TRUE(key);
  EXPECT_EQ(key->size(), 46u);
  EXPECT_NE(*key, *auth::make_api_key());
  write({{.name = "ann", .hash = auth::hash_of(*key), .created = "2026-11-23T00:00:00Z"}});
  const auto read = auth::read_key_file(path_);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().name, "ann");
  EXPECT_EQ(read->front().hash, auth::hash_of(*key));
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  for (const char* name : {"", "a b", "ann\n", "ünn"}) EXPECT_FALSE(auth::check_key_name(name)) << name;
}

TEST_F(ApiKeys, OfOperatorsLetModelsBePulled) {
  write({{.name = "ann", .hash = auth::hash_of("kv-ann"), .created = "2026-11-23T00:00:00Z"},
         {.name = "bob", .hash = auth::hash_of("kv-bob"), .created = "2026-11-23T00:00:00Z", .is_operator = true}});
  const RunningServer server({}, config());
  const auto pull_as = [&](const std::string& key) {
    return HttpClient(server.port())
        .request("POST", "/api/pull", R"({"model":"fake"})", {"Authorization: Bearer " + key});
  };
  EXPECT_EQ(pull_as("kv-ann").status, 403);
  EXPECT_EQ(pull_as("kv-bob").status, 200);
  EXPECT_EQ(HttpClient(server.port()).request("GET", "/api/version").status, 200);
  EXPECT_EQ(HttpClient(server.port()).request("GET", "/api/tags").status, 401);
}

}  // namespace
}  // namespace kvasir::server::api_keys_test
