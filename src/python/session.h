// An engine as Python holds it: loaded once, closed once, and gone before the interpreter is.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "kvasir/engine.h"

namespace kvasir::python {

namespace nb = nanobind;

// Python's threads let go of the interpreter while they wait for the engine. An interpreter that ends
// meanwhile would end them in the middle of C++, so at its exit end_all() closes every session, and close()
// waits until they are back.
//
// Thread safety: any thread that holds the interpreter may call anything.
class Session : public std::enable_shared_from_this<Session> {
 public:
  static std::shared_ptr<Session> create();
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Python calls this at its exit. It closes all sessions; a later one is closed from the start.
  static void end_all();

  // `model` is a catalogue's name or a path, `settings` as read_settings() takes them; `progress` is None or
  // is called with a phase and a fraction, and what it raises ends the loading, as Ctrl-C does. Requires: not
  // called before.
  void load(const std::string& model, const nb::dict& settings, const nb::object& progress);
  // Cancels what runs and frees the engine; once is enough.
  void close();
  bool is_closing() const { return closing_; }

  // Raises a UsageError when it is closed, or when this is a fork of the process that made it.
  std::shared_ptr<Engine> engine() const;
  // Null: it is closed, or nothing is loaded.
  std::shared_ptr<Engine> engine_if_open() const;
  // Raises a UsageError in a fork, where nothing would ever come.
  void check_process() const;
  bool is_of_another_process() const;

  // While it lives this thread has let go of the interpreter.
  class Away {
   public:
    explicit Away(Session& session) : Away(session.num_away_) {}
    explicit Away(std::atomic<int>& number) : count_(number) {}

   private:
    struct Count {
      explicit Count(std::atomic<int>& n) : number(n) { ++number; }
      ~Count() { --number; }
      std::atomic<int>& number;
    };
    Count count_;  // first: it ends when the interpreter is held again
    nb::gil_scoped_release released_;
  };

 private:
  Session() = default;

  const pid_t process_ = ::getpid();  // that made it
  mutable std::mutex mutex_;          // never held while waiting for the interpreter
  std::shared_ptr<Engine> engine_;
  std::atomic<int> num_away_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace kvasir::python
