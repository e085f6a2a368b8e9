#include "server/carriers/websocket/channel_response_writer.h"

#include <utility>

#include "server/carriers/websocket/channel.h"
#include "server/carriers/websocket/channel_message.h"

namespace kvasir::server::carriers {

ChannelResponseWriter::ChannelResponseWriter(std::shared_ptr<Channel> channel, std::string id,
                                             http::Request request)
    : http::TrackedResponseWriter(channel->executor(), std::move(request), Clock::now(), channel->context_),
      channel_(std::move(channel)),
      id_(std::move(id)),
      memory_(context().memory, this->request().tenant.name) {
  ++context().metrics.num_answering;
}

ApiStatus ChannelResponseWriter::take_memory() { return memory_.resize(body_memory_bytes(request().body)); }

void ChannelResponseWriter::begin(const http::Response& response, State state) {
  note_begin(response.status, state);
  std::vector<http::Header> headers = take_headers();
  headers.insert(headers.end(), response.headers.begin(), response.headers.end());
  channel_->send(status_message(id_, response.status, headers, response.body), /*is_piece=*/false);
}

void ChannelResponseWriter::respond(http::Response response) {
  if (state() != State::kOpen) return;
  begin(response, State::kOpen);
  finish();
}

// With the headers that a stream has over HTTP.
void ChannelResponseWriter::begin_stream() {
  if (state() == State::kOpen) begin(context().events.head(), State::kStreaming);
}

void ChannelResponseWriter::write(std::span<const http::Event> events) {
  if (state() != State::kStreaming) return;
  std::size_t num_bytes = 0;
  for (const http::Event& event : events) num_bytes += event.data.size();
  if (!channel_->takes(num_bytes)) return channel_->abort(http::AbortCause::kSlowReader);
  for (const http::Event& event : events) {
    if (event.kind != http::Event::Kind::kEnd) channel_->send(event_message(id_, event.data), true);
  }
  note_write();
}

void ChannelResponseWriter::fail_stream() {
  note_failure();
  finish_stream("failed");
}

void ChannelResponseWriter::finish_stream(std::string_view how) {
  if (state() != State::kStreaming) return;
  channel_->send(end_message(id_, how), true);
  finish();
}

void ChannelResponseWriter::finish() {
  end();
  const auto channel = std::exchange(channel_, nullptr);
  memory_.set(0);
  channel->forget(id_);
  channel->log_when_sent(record());
}

void ChannelResponseWriter::abort(http::AbortCause cause) {
  if (state() == State::kDone) return;
  const auto channel = std::exchange(channel_, nullptr);
  --context().metrics.num_answering;
  context().metrics.count_abort(cause);
  memory_.set(0);
  end_aborted(cause);
  if (cause == http::AbortCause::kCancelled) channel->send(end_message(id_, name_of(cause)), true);
}

void ChannelResponseWriter::give_up_unsaid() {
  const auto channel = channel_;
  if (channel != nullptr) channel->give_up();
}

void ChannelResponseWriter::when_sent(std::function<void()> callback) {
  if (state() != State::kDone) channel_->when_sent(std::move(callback));
}

}  // namespace kvasir::server::carriers
