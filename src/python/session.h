// An engine as Python holds it: loaded once, closed once, and gone before the interpreter is.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "kvasir/engine.h"

namespace kvasir::python {

namespace nb = nanobind;

// Python's threads let go of the interpreter while they wait for the engine. An interpreter that ends
// meanwhile would end them in the middle of C++, so close(), which Python calls at its exit, first waits
// until they are back.
//
// Thread safety: any thread that holds the interpreter may call anything.
class Session {
 public:
  Session() = default;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `model` is a catalogue's name or a path, `settings` as read_settings() takes them; `progress` is None or
  // is called with a phase and a fraction, and what it raises ends the loading, as Ctrl-C does. Requires: not
  // called before.
  void load(const std::string& model, const nb::dict& settings, const nb::object& progress);
  // Cancels what runs and frees the engine; once is enough.
  void close();
  bool is_open() const { return engine_if_open() != nullptr; }

  // Raises a UsageError when it is closed, or when this is a fork of the process that loaded it.
  std::shared_ptr<Engine> engine() const;
  // Null: it is closed.
  std::shared_ptr<Engine> engine_if_open() const;
  // Shows what the engine's thread had to say as a RuntimeWarning; raises where warnings are errors.
  void show_warning();

  // While it lives this thread has let go of the interpreter.
  class Away {
   public:
    explicit Away(Session& session) : count_(session.num_away_) {}

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
  bool is_of_another_process() const;

  mutable std::mutex mutex_;  // never held while waiting for the interpreter
  std::shared_ptr<Engine> engine_;
  pid_t process_ = 0;  // that loaded it; 0: nobody has
  std::string warning_;
  std::atomic<int> num_away_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace kvasir::python
