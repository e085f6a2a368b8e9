#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace kvasir::server {
namespace {

constexpr int kTimeoutMs = 5000;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string ClientResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) close();
}

HttpClient::~HttpClient() { close(); }

void HttpClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void HttpClient::finish_sending() { shutdown(fd_, SHUT_WR); }

void HttpClient::reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void HttpClient::take_some(std::size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  (void)!::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
}

void HttpClient::shrink_receive_buffer() {
  const int bytes = 2048;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void HttpClient::send_urgently(char byte) { (void)!::send(fd_, &byte, 1, MSG_OOB | MSG_NOSIGNAL); }

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool HttpClient::fill() {
  pollfd waiting{fd_, POLLIN, 0};
  if (fd_ < 0 || poll(&waiting, 1, kTimeoutMs) <= 0) return false;
  char bytes[16384];
  const auto count = recv(fd_, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

std::string HttpClient::take_line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) return {};
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::string HttpClient::take_bytes(std::size_t count, bool& complete) {
  while (buffer_.size() < count && fill()) {
  }
  complete = buffer_.size() >= count;
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, bytes.size());
  return bytes;
}

ClientResponse HttpClient::receive(bool is_head) {
  ClientResponse response;
  const std::string status_line = take_line();
  if (!status_line.starts_with("HTTP/1.1 ")) return response;
  response.status = std::stoi(status_line.substr(9, 3));
  for (std::string line = take_line(); !line.empty(); line = take_line()) {
    const auto colon = line.find(": ");
    response.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
  }
  if (is_head || response.status == 204 || response.status == 100) {
    response.complete = true;
  } else if (response.header("transfer-encoding") == "chunked") {
    for (;;) {
      const std::string size = take_line();
      if (size.empty()) return response;
      const std::string chunk = take_bytes(std::stoul(size, nullptr, 16), response.complete);
      take_line();
      if (chunk.empty()) return response;
      response.body += chunk;
    }
  } else if (!response.header("content-length").empty()) {
    response.body = take_bytes(std::stoul(response.header("content-length")), response.complete);
  } else {
    while (fill()) {
    }
    response.body = std::move(buffer_);
    response.complete = true;
  }
  return response;
}

std::string HttpClient::receive_until(std::string_view text) {
  while (buffer_.find(text) == std::string::npos && fill()) {
  }
  return buffer_;
}

bool HttpClient::closes_within(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < deadline) {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, 20) == 0) continue;
    char bytes[16384];
    if (recv(fd_, bytes, sizeof bytes, 0) <= 0) return true;
  }
  return false;
}

ClientResponse HttpClient::request(std::string_view method, std::string_view path, std::string_view body,
                                   const std::vector<std::string>& headers) {
  send(http_request(method, path, body, headers));
  return receive(method == "HEAD");
}

std::string http_request(std::string_view method, std::string_view path, std::string_view body,
                         const std::vector<std::string>& headers) {
  std::string request = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
  for (const std::string& header : headers) request += header + "\r\n";
  if (!body.empty()) {
    request += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return request + "\r\n" + std::string(body);
}

std::vector<std::string> sse_events(std::string_view body) {
  std::vector<std::string> events;
  while (!body.empty()) {
    const auto end = body.find("\n\n");
    const std::string_view event = body.substr(0, end);
    if (event.starts_with("data: ")) events.emplace_back(event.substr(6));
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 2);
  }
  return events;
}

}  // namespace kvasir::server
