#include "test_collector.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <span>

#include "server/observe/tracing/proto_reader.h"
#include "server/observe/tracing/trace_context.h"

namespace kvasir::server {
namespace {

using namespace std::chrono_literals;

std::string hex_of(std::string_view bytes) {
  return observe::hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string read_value(std::string_view value) {
  observe::ProtoReader reader(value);
  const auto field = reader.next();
  if (!field) return {};
  switch (field->number) {
    case 1:
      return std::string(field->bytes);
    case 2:
      return field->value != 0 ? "true" : "false";
    case 3:
      return std::to_string(static_cast<std::int64_t>(field->value));
    case 4:
      return std::to_string(std::bit_cast<double>(field->value));
    default:
      break;
  }
  std::string list;
  observe::ProtoReader values(field->bytes);
  while (const auto element = values.next()) list += (list.empty() ? "" : ",") + read_value(element->bytes);
  return list;
}

void read_attribute(std::string_view pair, std::map<std::string, std::string>& attributes) {
  observe::ProtoReader reader(pair);
  const auto name = reader.next(), value = reader.next();
  ASSERT_TRUE(name && value);
  EXPECT_TRUE(attributes.emplace(name->bytes, read_value(value->bytes)).second) << name->bytes << " twice";
}

ReceivedSpan read_span(std::string_view bytes) {
  ReceivedSpan span;
  observe::ProtoReader reader(bytes);
  while (const auto field = reader.next()) {
    if (field->number == 1) span.trace_id = hex_of(field->bytes);
    if (field->number == 2) span.span_id = hex_of(field->bytes);
    if (field->number == 3) span.trace_state = field->bytes;
    if (field->number == 4) span.parent_span_id = hex_of(field->bytes);
    if (field->number == 5) span.name = field->bytes;
    if (field->number == 6) span.kind = static_cast<int>(field->value);
    if (field->number == 7) span.begin_ns = field->value;
    if (field->number == 8) span.end_ns = field->value;
    if (field->number == 9) read_attribute(field->bytes, span.attributes);
    if (field->number == 15) span.status = static_cast<int>(observe::ProtoReader(field->bytes).next()->value);
    if (field->number == 16) span.flags = static_cast<std::uint32_t>(field->value);
  }
  return span;
}

// The fields of that number in a message.
std::vector<std::string_view> fields_of(std::string_view message, int number) {
  std::vector<std::string_view> found;
  observe::ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == number) found.push_back(field->bytes);
  }
  return found;
}

std::size_t content_length(const std::string& head) {
  const std::size_t at = head.find("Content-Length: ");
  return at == head.npos ? 0 : std::stoul(head.substr(at + 16));
}

}  // namespace

std::vector<ReceivedSpan> read_spans(std::string_view body) {
  std::vector<ReceivedSpan> spans;
  for (const std::string_view resource_spans : fields_of(body, 1)) {
    for (const std::string_view scope_spans : fields_of(resource_spans, 2)) {
      for (const std::string_view span : fields_of(scope_spans, 2)) spans.push_back(read_span(span));
    }
  }
  return spans;
}

std::map<std::string, std::string> read_resource(std::string_view body) {
  std::map<std::string, std::string> attributes;
  for (const std::string_view resource : fields_of(fields_of(body, 1).at(0), 1)) {
    for (const std::string_view pair : fields_of(resource, 1)) read_attribute(pair, attributes);
  }
  return attributes;
}

ServerConfig traced_to(const TestCollector& collector) {
  ServerConfig config;
  config.tracing = observe::TracingConfig{
      .url = observe::parse_collector_url(collector.url(), observe::UrlUse::kBase).value(),
      .headers = {},
      .ca_file = {},
      .sampler = {},
      .resource = {{"service.name", "here"}},
      .version = "1.2"};
  config.tracing->pending.max_delay = 5ms;
  return config;
}

TestCollector::TestCollector(std::vector<Reply> replies) : replies_(std::move(replies)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener_, 16), 0);
  EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

TestCollector::~TestCollector() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void TestCollector::serve() {
  while (true) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    answer(connection);
    ::close(connection);
  }
}

void TestCollector::answer(int connection) {
  std::string bytes;
  std::size_t head_end = bytes.npos;
  while (head_end == bytes.npos || bytes.size() < head_end + 4 + content_length(bytes.substr(0, head_end))) {
    char buffer[4096];
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) return;
    bytes.append(buffer, static_cast<std::size_t>(count));
    head_end = bytes.find("\r\n\r\n");
  }
  Reply reply;
  {
    std::unique_lock lock(mutex_);
    reply = replies_[std::min(posts_.size(), replies_.size() - 1)];
    posts_.push_back({bytes.substr(0, head_end), bytes.substr(head_end + 4)});
    changed_.notify_all();
    changed_.wait_for(lock, reply.delay, [this] { return closing_; });
  }
  const std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " Something\r\n" + reply.headers +
                           "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body;
  ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

std::vector<TestCollector::Post> TestCollector::posts(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 5s, [&] { return posts_.size() >= count; });
  return posts_;
}

std::vector<ReceivedSpan> TestCollector::spans(std::size_t count) {
  std::vector<ReceivedSpan> spans;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 5s, [&] {
    spans.clear();
    for (const Post& post : posts_) {
      for (ReceivedSpan& span : read_spans(post.body)) spans.push_back(std::move(span));
    }
    return spans.size() >= count;
  });
  return spans;
}

}  // namespace kvasir::server
