#include "server/http/response_head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace kvasir::server::http {
namespace {

// RFC 9110, 5.6.7; names of days and months are English whatever the locale.
std::string http_date(std::time_t time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm utc = fmt::gmtime(time);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  head += "\r\n";
}

}  // namespace

std::string response_head(const Response& response, std::span<const Header> extra, BodyFraming framing,
                          bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  append_header(head, "Date", http_date(std::time(nullptr)));
  if (!response.content_type.empty()) append_header(head, "Content-Type", response.content_type);
  if (framing == BodyFraming::kLength && response.status != 204) {
    append_header(head, "Content-Length", std::to_string(response.body.size()));
  }
  if (framing == BodyFraming::kChunked) append_header(head, "Transfer-Encoding", "chunked");
  for (const Header& header : response.headers) append_header(head, header.name, header.value);
  for (const Header& header : extra) append_header(head, header.name, header.value);
  append_header(head, "Connection", keep_alive ? "keep-alive" : "close");
  head += "\r\n";
  return head;
}

std::string http_chunk(std::string_view piece) {
  return piece.empty() ? std::string() : fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
}

}  // namespace kvasir::server::http
