// A small blocking HTTP client that shows the wire as it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server {

struct ClientResponse {
  int status = 0;                              // 0: the connection ended before a whole response
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without the chunked coding
  bool complete = false;                       // the body ended as its framing says

  std::string header(const std::string& name) const;
};

// Every read gives up after 5 seconds.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(std::string_view bytes);
  // Out of band, as TCP has it.
  void send_urgently(char byte);
  // Reads one response; of a HEAD request only its head.
  ClientResponse receive(bool is_head = false);
  // The bytes that arrive until the text has been seen, the peer closes, or time is up.
  std::string receive_until(std::string_view text);
  // Reads so many bytes at most, and forgets them.
  void take_some(std::size_t num_bytes);
  // Whether the peer closes (after what it may still send) within the time.
  bool closes_within(std::chrono::milliseconds time);
  void close();
  // Closes so that the server's kernel knows it at once, whatever it has not read.
  void reset();
  // Sends no more, but still reads.
  void finish_sending();
  void shrink_receive_buffer();

  ClientResponse request(std::string_view method, std::string_view path, std::string_view body = {},
                         const std::vector<std::string>& headers = {});

 private:
  bool fill();
  std::string take_line();
  std::string take_bytes(std::size_t count, bool& complete);

  int fd_ = -1;
  std::string buffer_;
};

std::string http_request(std::string_view method, std::string_view path, std::string_view body = {},
                         const std::vector<std::string>& headers = {});

// The data of each event of an SSE body.
std::vector<std::string> sse_events(std::string_view body);

}  // namespace kvasir::server
