// Requests and folders for tests of what the server stores.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "http_client.h"
#include "running_server.h"
#include "server/auth/key_file.h"

namespace kvasir::server {

// The text or JSON at a place in a body; empty: nothing is there.
inline std::string text_at(const std::string& body, const char* pointer) {
  simdjson::dom::parser parser;
  auto value = parser.parse(body).at_pointer(pointer);
  if (value.error()) return "";
  return value.is_string() ? std::string(value.get_string().value()) : simdjson::minify(value.value());
}

// A path of the test's own, removed before and after it.
class StateFolder {
 public:
  StateFolder() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    path = (std::filesystem::temp_directory_path() / (std::string("kvasir-state-") + test.test_suite_name() + "-" +
                                                      test.name() + "-" + std::to_string(::getpid())))
               .string();
    std::filesystem::remove_all(path);
  }
  ~StateFolder() { std::filesystem::remove_all(path); }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // A file with the keys kv-ann and kv-bob.
  std::string keys() const { return keys_of({"ann", "bob"}); }
  // The same file with the keys of these names.
  std::string keys_of(const std::vector<std::string>& names) const {
    std::filesystem::create_directories(path);
    std::vector<auth::ApiKey> keys;
    for (const std::string& name : names) {
      keys.push_back({.name = name, .hash = auth::hash_of("kv-" + name), .created = "2026-11-23T00:00:00Z"});
    }
    EXPECT_TRUE(auth::write_key_file(path + "/keys", keys));
    return path + "/keys";
  }

  std::string path;
};

inline ClientResponse ask(const RunningServer& server, const char* method, const std::string& path,
                          const std::string& body = {}, const std::vector<std::string>& headers = {}) {
  HttpClient client(server.port());
  return client.request(method, path, body, headers);
}

}  // namespace kvasir::server
