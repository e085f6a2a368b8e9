#include "python/session.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "python/engine_settings.h"
#include "python/python_error.h"
#include "store/model_store.h"

namespace kvasir::python {
namespace {

constexpr std::chrono::milliseconds kReturnInterval{1};

// State of the whole process. A thread that touches it holds the interpreter.
struct Interpreter {
  std::vector<std::weak_ptr<Session>> sessions;
  bool is_ending = false;
  std::atomic<int> num_closing{0};  // threads that are in close()
};

// Never destroyed: objects that outlive the interpreter's end may still look at it.
Interpreter& interpreter() {
  static auto* const python = new Interpreter;
  return *python;
}

// Leaves it as it is for ever: its threads are another process's.
void abandon(std::shared_ptr<Engine> engine) { new std::shared_ptr<Engine>(std::move(engine)); }

}  // namespace

std::shared_ptr<Session> Session::create() {
  std::shared_ptr<Session> session(new Session);
  Interpreter& python = interpreter();
  session->closing_ = python.is_ending;
  std::erase_if(python.sessions, [](const auto& known) { return known.expired(); });
  python.sessions.push_back(session);
  return session;
}

void Session::end_all() {
  Interpreter& python = interpreter();
  python.is_ending = true;
  for (const std::weak_ptr<Session>& known : std::exchange(python.sessions, {})) {
    if (const std::shared_ptr<Session> session = known.lock()) session->close();
  }
  const nb::gil_scoped_release released;
  while (python.num_closing > 0) std::this_thread::sleep_for(kReturnInterval);
}

void Session::load(const std::string& model, const nb::dict& settings, const nb::object& progress) {
  EngineConfig config = read_settings(settings);
  if (closing_) raise_usage("LLM: is closed");
  std::exception_ptr raised;
  const auto on_progress = [&](const std::string& phase, double fraction) {
    if (closing_) return false;
    const nb::gil_scoped_acquire held;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress.is_none()) progress(phase, fraction);
      return true;
    } catch (...) {
      raised = std::current_exception();
      return false;
    }
  };
  const auto load_engine = [&]() -> Result<std::shared_ptr<Engine>> {
    const Away away(*this);
    KVASIR_TRY(config.model_path, store::resolve_model(model));
    return Engine::load(config, on_progress);
  };
  auto engine = load_engine();
  if (raised) std::rethrow_exception(raised);
  if (!engine) raise(engine.error());
  if (closing_) raise_usage("LLM: is closed");  // since its last progress
  const std::lock_guard lock(mutex_);
  engine_ = std::move(*engine);
}

void Session::close() {
  closing_ = true;
  std::shared_ptr<Engine> engine;
  {
    const std::lock_guard lock(mutex_);
    engine = std::exchange(engine_, nullptr);
  }
  if (is_of_another_process()) return abandon(std::move(engine));
  if (engine == nullptr && num_away_ == 0) return;
  const Away away(interpreter().num_closing);
  if (engine != nullptr) engine->drain(0);
  engine.reset();
  while (num_away_ > 0) std::this_thread::sleep_for(kReturnInterval);
}

std::shared_ptr<Engine> Session::engine() const {
  check_process();
  if (std::shared_ptr<Engine> engine = engine_if_open()) return engine;
  raise_usage("LLM: is closed");
}

void Session::check_process() const {
  if (!is_of_another_process()) return;
  raise_usage("LLM: was loaded before this process was forked; a process that computes loads its own");
}

std::shared_ptr<Engine> Session::engine_if_open() const {
  const std::lock_guard lock(mutex_);
  return engine_;
}

bool Session::is_of_another_process() const { return process_ != ::getpid(); }

}  // namespace kvasir::python
