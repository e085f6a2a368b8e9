#include "server/api/responses/stored_stream.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "server/api/responses/response_events.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

constexpr std::chrono::milliseconds kLook{250};  // whether it has ended
constexpr int kLooksPerPing = 40;

// -1: from the first on.
ApiResult<std::int64_t> starting_after(const http::Request& request) {
  const auto text = http::query_value(request.query, "starting_after");
  if (!text || text->empty()) return -1;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && rest == end && number >= 0) return number;
  return bad_request(fmt::format("starting_after must be the number of an event, got '{}'",
                                 printable(std::string_view(*text).substr(0, 32))),
                     "starting_after");
}

class StoredStream : public std::enable_shared_from_this<StoredStream> {
 public:
  StoredStream(ApiContext& context, Writer writer, std::string id, std::int64_t after)
      : context_(context), writer_(std::move(writer)), id_(std::move(id)), after_(after) {}

  // Asks the store for the response, and sends what can be said of it.
  void look() {
    const auto find = [owner = owner_of(*writer_), id = id_](stored::ObjectStore& store) -> ApiResult<std::string> {
      auto found = store.find(stored::Kind::kResponse, owner, id);
      if (!found) return std::unexpected(to_store_error(std::move(found).error()));
      if (!*found) return std::unexpected(no_such("Response", id, "response_id"));
      return std::move((*found)->json);
    };
    ask_store(context_, writer_, find, [self = shared_from_this()](const std::string& json) { self->take(json); },
              [writer = writer_] { writer->fail_stream(); });
  }

 private:
  void take(const std::string& json) {
    auto events = events_of_response(json, context_.limits);
    if (!events) return writer_->fail_stream();
    const bool is_last = has_ended(json, context_.limits);
    if (!std::exchange(has_begun_, true)) {
      writer_->begin_stream();
    }
    send(*events, is_last);
    if (is_last) return writer_->end_stream();
    writer_->when_quiet(kLook, [self = shared_from_this()] { self->wait(); });
  }

  void wait() {
    if (++num_looks_ % kLooksPerPing == 0) writer_->ping();
    look();
  }

  // Those that were not sent yet; the last event of a response is sent whatever its number.
  void send(http::Events& events, bool is_last) {
    const auto num_known = static_cast<std::size_t>(after_ + 1);
    const std::size_t num_skipped = std::min(num_known, events.size() - (is_last ? 1 : 0));
    after_ = std::max(after_, static_cast<std::int64_t>(events.size()) - 1);
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(num_skipped));
    if (!events.empty()) writer_->write(events);
  }

  ApiContext& context_;
  const Writer writer_;
  const std::string id_;
  std::int64_t after_;  // the number of the last event that the client has
  bool has_begun_ = false;
  std::int64_t num_looks_ = 0;
};

}  // namespace

void stream_stored_response(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto after = starting_after(writer->request());
  if (!after) return writer->respond(error_response(after.error(), writer->request()));
  std::make_shared<StoredStream>(context, writer, id, *after)->look();
}

}  // namespace kvasir::server::api
