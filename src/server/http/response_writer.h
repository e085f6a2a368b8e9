// One request and the writer of its one response, as a handler sees them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "server/http/abort_cause.h"
#include "server/http/event.h"
#include "server/http/message.h"
#include "server/observe/access_log.h"

namespace kvasir::server::http {

// A handler answers once: respond(), or begin_stream(), write() as often as needed and end_stream() or
// fail_stream(), or the same with begin_body() and write_body(). Afterwards, and after an abort, every call is ignored, so that a late engine output does no
// harm. A handler may keep the writer and answer from later tasks.
//
// Thread safety: post() may be called from any thread; everything else only from tasks of post() and from the
// handler's first call, which never run at the same time.
class ResponseWriter {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~ResponseWriter() = default;

  virtual const Request& request() const = 0;
  virtual Clock::time_point received_at() const = 0;
  // For the log: what the engine took, before the answer ends; of an aborted one, whose line waits for it
  // then, when the engine has let go of it.
  virtual void note_generation(const observe::GenerationRecord& record) = 0;
  // From the callback of on_abort(): note_generation() is still to come.
  virtual void await_generation() = 0;
  // Headers that go with the answer, whatever it becomes.
  virtual void add_header(Header header) = 0;

  // Keeps a thing until the answer is over, such as the model that makes it.
  void keep(std::shared_ptr<const void> thing) { kept_ = std::move(thing); }
  const std::shared_ptr<const void>& kept() const { return kept_; }

  virtual void post(std::function<void()> task) = 0;
  // Called once if the answer can no longer reach the client, or cannot be made, instead of it; replaces an
  // earlier callback.
  virtual void on_abort(std::function<void()> callback) = 0;

  virtual void respond(Response response) = 0;

  // How HTTP carries the events of this answer's stream, before it begins; without it, as the server does. Other
  // carriers have a form of their own. `encoding` outlives the writer.
  virtual void encode_events(const EventEncoding& /*encoding*/) {}
  // Sends the head; the events follow.
  virtual void begin_stream() = 0;
  // These go together: a reader gets all of them at once, or loses the stream.
  virtual void write(std::span<const Event> events) = 0;
  // Sends the head of an answer whose body, `num_bytes` in all, comes in pieces. False, and nothing is sent: this
  // carrier has whole bodies alone.
  virtual bool begin_body(Response /*head*/, std::int64_t /*num_bytes*/) { return false; }
  // Requires: begin_body(), and no more bytes than it said. The next piece waits for when_sent().
  virtual void write_body(std::string /*bytes*/) {}
  // Says nothing, so that nobody on the way takes the stream for dead.
  virtual void ping() = 0;
  virtual void end_stream() = 0;
  // Ends the stream and closes the connection: the client must not take it for complete.
  virtual void fail_stream() = 0;
  // Calls back once when all that was written has left; never when it cannot. Replaces an earlier callback.
  virtual void when_sent(std::function<void()> callback) = 0;
  // Calls back whenever nothing has been written for `quiet`, until the answer ends; again replaces.
  virtual void when_quiet(std::chrono::milliseconds quiet, std::function<void()> callback) = 0;

 private:
  std::shared_ptr<const void> kept_;
};

}  // namespace kvasir::server::http
