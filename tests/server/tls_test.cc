// HTTPS: the same server behind a certificate, which may be replaced while it runs.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "certificate.h"
#include "http_client.h"
#include "running_server.h"

namespace kvasir::server::tls_test {
namespace {

namespace ssl = boost::asio::ssl;
using boost::asio::ip::tcp;
using namespace std::chrono_literals;

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    const std::string stem =
        (std::filesystem::temp_directory_path() / ("kvasir-tls-" + std::to_string(::getpid()))).string();
    certificate_file_ = stem + ".crt";
    key_file_ = stem + ".key";
    write_certificate(certificate_file_, key_file_, "first");
  }
  ~TlsTest() override {
    std::filesystem::remove(certificate_file_);
    std::filesystem::remove(key_file_);
  }
  ServerConfig config() {
    ServerConfig config;
    config.tls_certificate_file = certificate_file_;
    config.tls_key_file = key_file_;
    config.warn = [this](std::string_view line) { warnings_.emplace_back(line); };
    return config;
  }

  struct Answer {
    std::string text;              // to the end of the connection
    std::string certificate_name;  // of the server
    boost::system::error_code end;
  };
  static Answer ask(std::uint16_t port, const std::string& request) {
    boost::asio::io_context io;
    ssl::context context(ssl::context::tls_client);
    ssl::stream<tcp::socket> stream(io, context);
    stream.next_layer().connect({boost::asio::ip::address_v4::loopback(), port});
    stream.handshake(ssl::stream_base::client);
    Answer answer;
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(stream.native_handle()), X509_free);
    char name[64] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
    answer.certificate_name = name;
    boost::asio::write(stream, boost::asio::buffer(request));
    boost::asio::read(stream, boost::asio::dynamic_buffer(answer.text), answer.end);
    return answer;
  }

  std::string certificate_file_, key_file_;
  std::vector<std::string> warnings_;
};

std::string closing_request(std::string_view method, std::string_view path, std::string_view body = {}) {
  return http_request(method, path, body, {"Connection: close"});
}

TEST_F(TlsTest, AnswersAndSaysWhereTheAnswerEnds) {
  const RunningServer server({}, config());
  const Answer models = ask(server.port(), closing_request("GET", "/v1/models"));
  EXPECT_TRUE(models.text.starts_with("HTTP/1.1 200 OK\r\n")) << models.text;
  EXPECT_EQ(models.end, boost::asio::error::eof);  // told, not cut off
  const Answer stream = ask(server.port(), closing_request("POST", "/v1/completions",
                                                           R"({"prompt":"a","max_tokens":4,"stream":true})"));
  EXPECT_NE(stream.text.find("data: [DONE]"), std::string::npos) << stream.text;
  EXPECT_EQ(stream.end, boost::asio::error::eof);
}

// The kernel resets a connection that closes with something unread, and the client would not see the answer.
TEST_F(TlsTest, ReadsOnPastARefusalInTheMiddleOfABody) {
  const RunningServer server({}, config());
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
      "Content-Length: 100000000\r\n\r\n";
  const Answer refused = ask(server.port(), head + std::string(16 << 20, ' '));
  EXPECT_TRUE(refused.text.starts_with("HTTP/1.1 413 ")) << refused.text << refused.end.message();
  EXPECT_EQ(refused.end, boost::asio::error::eof);
}

TEST_F(TlsTest, SaysToPlainHttpWhatItSpeaks) {
  const RunningServer server({}, config());
  for (const char* method : {"GET", "POST", "PUT", "HEAD", "CONNECT"}) {
    HttpClient plain(server.port());
    plain.send(std::string(method) + " /v1/models HTTP/1.1\r\nHost: t\r\n\r\n");
    const ClientResponse refused = plain.receive();
    EXPECT_EQ(refused.status, 400) << method;
    EXPECT_NE(refused.body.find("https_required"), std::string::npos) << refused.body;
    EXPECT_TRUE(plain.closes_within(2000ms));
  }
  HttpClient nonsense(server.port());
  nonsense.send("nonsense\r\n\r\n");
  EXPECT_TRUE(nonsense.closes_within(2000ms));
  EXPECT_TRUE(ask(server.port(), closing_request("GET", "/health/live")).text.starts_with("HTTP/1.1 200"));
}

TEST_F(TlsTest, TakesTheNewCertificateOfAFileThatChanged) {
  const RunningServer server({}, config());
  EXPECT_EQ(ask(server.port(), closing_request("GET", "/health/live")).certificate_name, "first");
  write_certificate(certificate_file_, key_file_, "second");
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(ask(server.port(), closing_request("GET", "/health/live")).certificate_name, "second");
  std::filesystem::remove(key_file_);
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(ask(server.port(), closing_request("GET", "/health/live")).certificate_name, "second");
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(TlsTest, WaitsForNoPipeAndNoPassphrase) {
  ServerConfig bad = config();
  bad.tls_key_file = std::filesystem::temp_directory_path().string();
  FakeEngine engine;
  EXPECT_TRUE(Server::create(engine, bad).error().message.ends_with(": cannot be read: it is a folder"));
  bad.tls_key_file = key_file_ + "-pipe";
  ASSERT_EQ(::mkfifo(bad.tls_key_file.c_str(), 0600), 0);
  EXPECT_EQ(Server::create(engine, bad).error().message,
            bad.tls_key_file + ": cannot be read: it is no regular file");
  const RunningServer server({}, config());
  std::filesystem::rename(bad.tls_key_file, key_file_);
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(ask(server.port(), closing_request("GET", "/health/live")).certificate_name, "first");
  EXPECT_EQ(warnings_.size(), 1u);
  std::filesystem::remove(key_file_);
  write_certificate(certificate_file_, key_file_, "secret", "a passphrase");
  const auto encrypted = Server::create(engine, config());
  ASSERT_FALSE(encrypted);
  EXPECT_TRUE(encrypted.error().message.starts_with(key_file_ + ": is encrypted;"))
      << encrypted.error().message;
}

TEST_F(TlsTest, StartsNoServerWithoutItsFiles) {
  FakeEngine engine;
  ServerConfig missing = config();
  missing.tls_key_file += "-none";
  const auto unread = Server::create(engine, missing);
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().message, missing.tls_key_file + ": cannot be read: No such file or directory");
  ServerConfig swapped = config();
  std::swap(swapped.tls_certificate_file, swapped.tls_key_file);
  const auto unfit = Server::create(engine, swapped);
  ASSERT_FALSE(unfit);
  EXPECT_TRUE(unfit.error().message.starts_with(certificate_file_ + ": holds no private key in PEM: "))
      << unfit.error().message;
  ServerConfig mixed = config();
  mixed.tls_key_file += "-other";
  write_certificate(certificate_file_ + "-other", mixed.tls_key_file, "other");
  const auto foreign = Server::create(engine, mixed);
  std::filesystem::remove(certificate_file_ + "-other");
  std::filesystem::remove(mixed.tls_key_file);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().message, mixed.tls_key_file + ": not the key of " + certificate_file_);
  ServerConfig half = config();
  half.tls_key_file.clear();
  const auto refused = Server::create(engine, half);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
}

// A client that closes without TLS's own farewell, as most do.
TEST_F(TlsTest, FreesTheSlotsOfClientsThatAreGone) {
  const RunningServer server({}, config());
  for (int i = 0; i < 20; ++i) ask(server.port(), closing_request("GET", "/health/live"));
  const auto deadline = std::chrono::steady_clock::now() + 1s;
  bool is_free = false;
  while (!is_free && std::chrono::steady_clock::now() < deadline) {
    const Answer metrics = ask(server.port(), closing_request("GET", "/metrics"));
    is_free = metrics.text.find("kvasir_http_connections 1\n") != std::string::npos;
  }
  EXPECT_TRUE(is_free);
}

}  // namespace
}  // namespace kvasir::server::tls_test
