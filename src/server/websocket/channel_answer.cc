#include "server/websocket/channel_answer.h"

#include <utility>

#include "server/http/sse.h"
#include "server/websocket/channel.h"
#include "server/websocket/channel_message.h"

namespace kvasir::server {

ChannelAnswer::ChannelAnswer(std::shared_ptr<Channel> channel, std::string id, HttpRequest request)
    : TrackedExchange(channel->executor(), std::move(request), Clock::now(), channel->context_),
      channel_(std::move(channel)),
      id_(std::move(id)),
      memory_(context().memory, this->request().tenant.name) {
  ++context().metrics.num_answering;
}

ApiStatus ChannelAnswer::take_memory() { return memory_.resize(body_memory_bytes(request().body)); }

void ChannelAnswer::begin(const HttpResponse& response, State state) {
  note_begin(response.status, state);
  std::vector<Header> headers = take_headers();
  headers.insert(headers.end(), response.headers.begin(), response.headers.end());
  channel_->send(status_message(id_, response.status, headers, response.body), /*is_piece=*/false);
}

void ChannelAnswer::respond(HttpResponse response) {
  if (state() != State::kOpen) return;
  begin(response, State::kOpen);
  finish();
}

void ChannelAnswer::begin_stream(HttpResponse head) {
  if (state() == State::kOpen) begin(head, State::kStreaming);
}

void ChannelAnswer::write(std::string_view piece) {
  if (state() != State::kStreaming) return;
  if (!channel_->takes(piece.size())) return channel_->abort(AbortCause::kSlowReader);
  for_each_sse_event(piece,
                     [this](std::string_view data) { channel_->send(event_message(id_, data), true); });
  note_write();
}

void ChannelAnswer::fail_stream() {
  note_failure();
  finish_stream("failed");
}

void ChannelAnswer::finish_stream(std::string_view how) {
  if (state() != State::kStreaming) return;
  channel_->send(end_message(id_, how), true);
  finish();
}

void ChannelAnswer::finish() {
  end();
  const auto channel = std::exchange(channel_, nullptr);
  memory_.set(0);
  channel->forget(id_);
  channel->log_when_sent(record());
}

void ChannelAnswer::abort(AbortCause cause) {
  if (state() == State::kDone) return;
  const auto channel = std::exchange(channel_, nullptr);
  --context().metrics.num_answering;
  context().metrics.count_abort(cause);
  memory_.set(0);
  end_aborted(cause);
  if (cause == AbortCause::kCancelled) channel->send(end_message(id_, name_of(cause)), true);
}

void ChannelAnswer::when_sent(std::function<void()> callback) {
  if (state() != State::kDone) channel_->when_sent(std::move(callback));
}

}  // namespace kvasir::server
