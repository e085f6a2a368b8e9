// Files that are larger than what is in memory of them: they come in parts, whole or not at all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/process_memory.h"
#include "eventually.h"
#include "sqlite/database.h"
#include "state_client.h"

namespace kvasir::server::upload_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;

std::string field(const std::string& name, const std::string& value) {
  return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
}

const std::string kFileHead = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n\r\n";

// In the order of curl -F file=@… -F purpose=…: what it is for comes last.
std::string form_of(const std::string& content, const std::string& purpose = "batch") {
  return kFileHead + content + "\r\n" + field("purpose", purpose) + "--b--\r\n";
}

std::string head_of(std::size_t body_bytes) {
  return fmt::format(
      "POST /v1/files HTTP/1.1\r\nHost: t\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n",
      body_bytes);
}

ClientResponse upload(const RunningServer& server, const std::string& content, const std::string& purpose = "batch") {
  return ask(server, "POST", "/v1/files", form_of(content, purpose), {"Content-Type: multipart/form-data; boundary=b"});
}

std::string content_of(std::size_t num_bytes) {
  std::string content(num_bytes, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 % 251);
  return content;
}

// In a folder of its own, with little memory for requests.
class Uploads : public testing::Test {
 protected:
  Uploads() {
    config.state_dir = folder.path;
    config.request_memory_bytes = 32 << 20;
  }
  // Objects and parts in the database, which no server has open.
  std::int64_t num_rows() const {
    auto database = sqlite::Database::open(folder.path + "/stored.sqlite", sqlite::Database::Access::kReadWrite).value();
    auto count = database.prepare("SELECT (SELECT count(*) FROM objects) + (SELECT count(*) FROM parts)").value();
    count.bind_all();
    EXPECT_TRUE(count.next().value());
    return count.integer(0);
  }

  const StateFolder folder;
  ServerConfig config;
};

TEST_F(Uploads, AreWholeWhateverTheirSize) {
  for (const std::size_t num_bytes : {kMiB - 1, kMiB, kMiB + 1, 12 * kMiB + 77}) {
    const RunningServer server({}, config);
    const std::string content = content_of(num_bytes);
    const ClientResponse made = upload(server, content);
    ASSERT_EQ(made.status, 200) << made.body;
    EXPECT_EQ(text_at(made.body, "/bytes"), std::to_string(num_bytes));
    const std::string path = "/v1/files/" + text_at(made.body, "/id");
    EXPECT_EQ(ask(server, "GET", path).body, made.body);
    EXPECT_TRUE(ask(server, "GET", path + "/content").body == content);
  }
}

TEST_F(Uploads, AreReadBackInPartsWhateverTheirSize) {
  const RunningServer server({}, config);
  const std::string content = content_of(40 * kMiB);  // more than all requests may have
  const std::string path = "/v1/files/" + text_at(upload(server, content).body, "/id") + "/content";
  const std::string get = "GET " + path + " HTTP/1.1\r\nHost: t\r\n\r\n";
  const std::int64_t before_bytes = rss_bytes();
  std::deque<HttpClient> clients;
  for (int i = 0; i < 6; ++i) clients.emplace_back(server.port()).send(get);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // nobody reads
  EXPECT_LT(rss_bytes() - before_bytes, static_cast<std::int64_t>(6 * 4 * kMiB));
  while (clients.size() > 1) clients.pop_back();
  const ClientResponse answer = clients[0].receive();
  EXPECT_EQ(answer.header("content-length"), std::to_string(content.size()));
  EXPECT_TRUE(answer.body == content);
  clients[0].send(get);  // on the same connection
  EXPECT_TRUE(clients[0].receive().body == content);
}

TEST_F(Uploads, ThatAreDeletedCutTheirDownload) {
  const RunningServer server({}, config);
  const std::string path = "/v1/files/" + text_at(upload(server, content_of(40 * kMiB)).body, "/id");
  HttpClient client(server.port());
  client.send("GET " + path + "/content HTTP/1.1\r\nHost: t\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(ask(server, "DELETE", path).status, 200);
  EXPECT_LT(client.receive().body.size(), 40 * kMiB);
}

TEST_F(Uploads, SeveralAtOnceTakeLittleMemory) {
  constexpr std::size_t kNumUploads = 8, kFileBytes = 16 * kMiB;
  const RunningServer server({}, config);
  const std::string body = form_of(content_of(kFileBytes));
  const std::int64_t before_bytes = rss_bytes();
  std::int64_t most_bytes = 0;
  std::atomic<std::size_t> num_done{0};
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < kNumUploads; ++i) {
    clients.emplace_back([&] {
      HttpClient client(server.port());
      client.send(head_of(body.size()));
      client.send(body);
      EXPECT_EQ(client.receive().status, 200);
      ++num_done;
    });
  }
  while (num_done < kNumUploads) {
    most_bytes = std::max(most_bytes, rss_bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LT(most_bytes - before_bytes, static_cast<std::int64_t>(kNumUploads * 3 * kMiB + 24 * kMiB))
      << "of " << kNumUploads * kFileBytes;
}

TEST_F(Uploads, AreNotFoundBeforeTheyAreWhole) {
  const RunningServer server({}, config);
  const std::string body = form_of(content_of(4 * kMiB));
  HttpClient client(server.port());
  client.send(head_of(body.size()) + body.substr(0, 3 * kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files").body, "/data"), "[]");
  client.send(body.substr(3 * kMiB));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_NE(text_at(ask(server, "GET", "/v1/files").body, "/data/0/id"), "");
}

TEST_F(Uploads, ThatAreCutLeaveNothingBehind) {
  {
    const RunningServer server({}, config);
    const std::string body = form_of(content_of(6 * kMiB));
    for (const bool is_reset : {false, true}) {
      HttpClient client(server.port());
      client.send(head_of(body.size()) + body.substr(0, 5 * kMiB));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      is_reset ? client.reset() : client.close();
    }
    EXPECT_TRUE(eventually([&] {
      return ask(server, "GET", "/metrics").body.contains("\nkvasir_http_connections 1\n");
    }));
    HttpClient open(server.port());  // and one that the server's end cuts
    open.send(head_of(body.size()) + body.substr(0, 5 * kMiB));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(text_at(ask(server, "GET", "/v1/files").body, "/data"), "[]");
  }
  EXPECT_EQ(num_rows(), 0);
}

TEST_F(Uploads, ThatAreWrongLeaveNothingBehind) {
  {
    const RunningServer server({}, config);
    const std::string content = content_of(3 * kMiB);
    EXPECT_EQ(text_at(upload(server, content, "fine-tune").body, "/error/param"), "purpose");
    const std::string twice = kFileHead + content + "\r\n" + form_of("x");
    const ClientResponse second = ask(server, "POST", "/v1/files", twice, {"Content-Type: multipart/form-data; boundary=b"});
    EXPECT_EQ(text_at(second.body, "/error/param"), "file");
    const std::string half = kFileHead + content;
    const ClientResponse cut = ask(server, "POST", "/v1/files", half, {"Content-Type: multipart/form-data; boundary=b"});
    EXPECT_EQ(text_at(cut.body, "/error/code"), "bad_form");
    const std::string long_field = field("purpose", std::string(5000, 'x')) + "--b--\r\n";
    const ClientResponse field =
        ask(server, "POST", "/v1/files", long_field, {"Content-Type: multipart/form-data; boundary=b"});
    EXPECT_EQ(text_at(field.body, "/error/code"), "bad_form");
  }
  EXPECT_EQ(num_rows(), 0);
}

TEST_F(Uploads, BeyondTheStoreAreRefusedBeforeOthersLeave) {
  config.state_bytes = 16 << 20;  // of which files have 4.5 MiB
  const RunningServer server({}, config);
  ASSERT_EQ(upload(server, "kept").status, 200);
  const std::string body = form_of(content_of(6 * kMiB));
  HttpClient whole(server.port());
  whole.send(head_of(body.size()) + body.substr(0, 2 * kMiB));
  const ClientResponse refused = whole.receive();
  EXPECT_EQ(refused.status, 413) << refused.body;
  HttpClient chunked(server.port());
  chunked.send("POST /v1/files HTTP/1.1\r\nHost: t\r\nContent-Type: multipart/form-data; boundary=b\r\n"
               "Transfer-Encoding: chunked\r\n\r\n");
  for (std::size_t at = 0; at < 6 * kMiB; at += kMiB) {
    chunked.send(fmt::format("{:x}\r\n{}\r\n", kMiB, body.substr(at, kMiB)));
  }
  EXPECT_EQ(chunked.receive().status, 413);
  EXPECT_EQ(text_at(ask(server, "GET", "/v1/files").body, "/data/0/filename"), "in.jsonl") << "the first one stays";
}

TEST_F(Uploads, NeedRoomForTheirPartsAlone) {
  config.request_memory_bytes = 8 << 20;
  const RunningServer server({}, config);
  EXPECT_EQ(upload(server, content_of(12 * kMiB)).status, 200);
  config.request_memory_bytes = 2 << 20;
  ServerConfig small = config;
  small.state_dir.clear();
  const RunningServer little({}, small);
  const ClientResponse refused = upload(little, content_of(kMiB));
  EXPECT_EQ(refused.status, 413);
  EXPECT_NE(refused.body.find("--request-memory"), std::string::npos) << refused.body;
}

}  // namespace
}  // namespace kvasir::server::upload_test
