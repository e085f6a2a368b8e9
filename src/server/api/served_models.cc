#include "server/api/served_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <ranges>
#include <utility>

#include "base/memory_reserve.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "server/api/model_name.h"

namespace kvasir::server::api {
namespace {

constexpr std::chrono::milliseconds kTick{250};

ApiError shutting_down() { return {503, "the server is shutting down", {}, "shutting_down"}; }

ApiError was_removed(const std::string& name) {
  return {404, fmt::format("the model \"{}\" was deleted", printable(name)), "model", "model_not_found"};
}

// The model's file is the operator's affair: a client may only try again.
ApiError loading_failed(const std::string& name, const Error& error) {
  if (error.kind == ErrorKind::kCancelled) return shutting_down();
  const bool is_passing = error.kind == ErrorKind::kMachine || error.kind == ErrorKind::kUnavailable;
  return {is_passing ? 503 : 500, fmt::format("the model \"{}\" could not be loaded: {}", printable(name), error.message),
          "model", is_passing ? "overloaded" : "model_not_loaded"};
}

Result<std::unique_ptr<Engine>> load_engine(const ServedModel& model, const std::atomic<bool>& is_cancelled) {
  try {
    return model.load(is_cancelled);
  } catch (const std::exception& error) {  // no memory, or no thread: the others go on
    return make_error(ErrorKind::kMachine, error.what());
  }
}

bool has_name(const ServedModel& model, std::string_view name) {
  const auto is_it = [name](const std::string& served) { return is_name_of(served, name); };
  return is_it(model.name) || std::ranges::any_of(model.names, is_it);
}

}  // namespace

std::string_view name_of(ModelState state) {
  constexpr std::array<std::string_view, 4> kNames = {"known", "loading", "loaded", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

ServedModels::ServedModels(std::vector<ServedModel> models, Config config)
    : config_(config), entries_(models.size() + kMaxAdded), contexts_(entries_.size()) {
  bool loads = false;
  for (ServedModel& model : models) {
    auto entry = std::make_unique<Entry>(std::move(model));
    if (entry->model.engine->is_loaded()) entry->state = ModelState::kLoaded;
    loads = loads || entry->model.load != nullptr;
    entries_[num_entries_++] = std::move(entry);
  }
  if (loads) thread_ = std::thread([this] { run(); });
}

ServedModels::~ServedModels() {
  is_stopping_ = true;
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ServedModels::bind(const std::vector<ApiContext*>& contexts, MakeContext make_context) {
  std::ranges::copy(contexts, contexts_.begin());
  make_context_ = std::move(make_context);
}

bool ServedModels::add(ServedModel model) {
  const std::size_t index = num_entries_;
  if (index == entries_.size()) return false;
  entries_[index] = std::make_unique<Entry>(std::move(model));
  contexts_[index] = make_context_(entries_[index]->model);
  ++num_entries_;
  return true;
}

bool ServedModels::remove(std::size_t index, const std::stop_token& stop) {
  Entry& entry = *entries_[index];
  std::unique_lock lock(mutex_);
  entry.is_removed = true;
  entry.was_asked_to_leave = true;
  changed_.notify_all();
  const auto is_out = [&] {
    const bool is_idle = entry.state == ModelState::kKnown || entry.state == ModelState::kFailed;
    return is_idle && entry.waiting.empty() && entry.num_users == 0;
  };
  while (!is_out() && !stop.stop_requested()) changed_.wait_for(lock, kTick);
  return !stop.stop_requested();
}

std::vector<std::size_t> ServedModels::indices() const {
  std::vector<std::size_t> served;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    if (!entries_[i]->is_removed) served.push_back(i);
  }
  return served;
}

bool ServedModels::has_one() const {
  return std::ranges::count_if(entries(), [](const auto& entry) { return !entry->is_removed; }) == 1;
}

std::size_t ServedModels::find(std::string_view name) const {
  if (name.empty()) return 0;
  const std::size_t named = find_named(name);
  return named == npos && config_.any_name ? 0 : named;
}

std::size_t ServedModels::find_named(std::string_view name) const {
  for (const std::size_t i : indices()) {
    const auto is_it = [name](const std::string& served) { return is_name_of(served, name); };
    if (has_name(entries_[i]->model, name) || std::ranges::any_of(*entries_[i]->model.engine->adapters(), is_it)) return i;
  }
  return npos;
}

bool ServedModels::is_model(std::string_view name) const {
  return std::ranges::any_of(indices(), [&](std::size_t i) { return has_name(entries_[i]->model, name); });
}

ServedModels::Lease ServedModels::lease_of(Entry& entry) {
  return Lease(&entry, [this](const void* leased) {
    give_back(*static_cast<Entry*>(const_cast<void*>(leased)));  // NOLINT: it is ours
  });
}

void ServedModels::give_back(Entry& entry) {
  {
    const std::lock_guard lock(mutex_);
    --entry.num_users;
    entry.last_use = Clock::now();
  }
  changed_.notify_all();
}

void ServedModels::acquire(std::size_t index, Then then) {
  Entry& entry = *entries_[index];
  {
    const std::lock_guard lock(mutex_);
    const bool is_there = entry.state == ModelState::kLoaded && !entry.is_leaving;
    if (!is_there && !is_stopping_ && !entry.is_removed) {
      entry.waiting.push_back(std::move(then));
      if (std::ranges::find(wanted_, index) == wanted_.end()) wanted_.push_back(index);
      changed_.notify_all();
      return;
    }
    if (is_there) ++entry.num_users;
    if (!is_there) index = npos;
  }
  if (index == npos) return then(std::unexpected(is_stopping_ ? shutting_down() : was_removed(entry.model.name)));
  then(lease_of(entry));
}

bool ServedModels::unload(std::size_t index) {
  Entry& entry = *entries_[index];
  const std::lock_guard lock(mutex_);
  const bool is_gone = entry.state != ModelState::kLoaded || (entry.is_leaving && entry.num_users == 0);
  if (is_gone || entry.model.load == nullptr) return false;
  entry.was_asked_to_leave = true;
  changed_.notify_all();
  return true;
}

std::vector<ModelStatus> ServedModels::status() const {
  std::vector<ModelStatus> models;
  for (const std::size_t i : indices()) models.push_back(status_of(i));
  return models;
}

ModelStatus ServedModels::status_of(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = *entries_[index];
  const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - entry.last_use);
  return {.index = index,
          .name = entry.model.name,
          .names = entry.model.names,
          .path = entry.model.path,
          .state = entry.state,
          .failure = entry.failure,
          .num_users = entry.num_users,
          .idle_ms = entry.num_users > 0 ? 0 : idle.count(),
          .load_ms = entry.load_ms};
}

void ServedModels::drain(std::int64_t timeout_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (const auto& entry : entries()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    entry->model.engine->drain(std::max<std::int64_t>(0, left.count()));
  }
}

std::int64_t ServedModels::num_loaded() const {
  return std::ranges::count(entries(), ModelState::kLoaded, [](const auto& entry) { return entry->state; });
}

// The loaded one that was used longest ago; npos: there is none.
std::size_t ServedModels::least_recently_used(bool only_idle) const {
  std::size_t found = npos;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    const Entry& entry = *entries_[i];
    if (entry.state != ModelState::kLoaded || entry.model.load == nullptr || (only_idle && entry.num_users > 0)) continue;
    if (found == npos || entry.last_use < entries_[found]->last_use) found = i;
  }
  return found;
}

// One that nobody uses and that was asked to leave, or was unused for too long; npos: there is none.
std::size_t ServedModels::expired() const {
  for (std::size_t i = 0; i < entries().size(); ++i) {
    const Entry& entry = *entries_[i];
    if (entry.state != ModelState::kLoaded || entry.num_users > 0 || entry.model.load == nullptr) continue;
    const bool is_old = config_.keep_alive.count() > 0 && Clock::now() - entry.last_use >= config_.keep_alive;
    if (entry.was_asked_to_leave || is_old) return i;
  }
  return npos;
}

void ServedModels::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (const std::size_t index = expired(); index != npos) {
      unload(lock, index);
    } else if (!wanted_.empty()) {
      const std::size_t next = wanted_.front();
      wanted_.pop_front();
      serve_next(lock, next);
    } else {
      changed_.wait_for(lock, kTick);
    }
  }
  const ApiError error = shutting_down();
  for (const auto& entry : entries()) answer_waiting(lock, *entry, &error);
}

void ServedModels::serve_next(std::unique_lock<std::mutex>& lock, std::size_t index) {
  Entry& entry = *entries_[index];
  if (entry.state != ModelState::kLoaded) {
    make_room(lock, index);
    if (is_stopping_) return;
    load(lock, entry);
  } else if (!entry.is_leaving) {
    answer_waiting(lock, entry, nullptr);
  }
}

void ServedModels::make_room(std::unique_lock<std::mutex>& lock, std::size_t index) {
  const std::int64_t most = config_.max_loaded > 0 ? config_.max_loaded : std::ssize(entries());
  while (!is_stopping_ && num_loaded() >= most) {
    std::size_t victim = least_recently_used(true);
    if (victim == npos) victim = least_recently_used(false);
    if (victim == npos || victim == index) return;  // none of them may leave
    Entry& leaving = *entries_[victim];
    leaving.is_leaving = true;
    changed_.wait(lock, [&] { return leaving.num_users == 0 || is_stopping_; });
    if (is_stopping_) return;
    unload(lock, victim);
    if (!leaving.waiting.empty() && std::ranges::find(wanted_, victim) == wanted_.end()) wanted_.push_back(victim);
  }
}

void ServedModels::load(std::unique_lock<std::mutex>& lock, Entry& entry) {
  entry.state = ModelState::kLoading;
  lock.unlock();
  const auto begin = Clock::now();
  auto loaded = load_engine(entry.model, is_stopping_);
  if (loaded) entry.model.engine->attach(*std::move(loaded));
  lock.lock();
  entry.state = loaded ? ModelState::kLoaded : ModelState::kFailed;
  entry.load_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  entry.failure = loaded ? "" : loaded.error().message;
  entry.last_use = Clock::now();
  entry.was_asked_to_leave = false;
  if (loaded) return answer_waiting(lock, entry, nullptr);
  const ApiError error = loading_failed(entry.model.name, loaded.error());
  answer_waiting(lock, entry, &error);
}

void ServedModels::unload(std::unique_lock<std::mutex>& lock, std::size_t index) {
  Entry& entry = *entries_[index];
  entry.is_leaving = true;
  lock.unlock();
  entry.model.engine->detach();
  trim_heap();
  if (entry.model.unloaded) entry.model.unloaded();
  lock.lock();
  entry.state = ModelState::kKnown;
  entry.is_leaving = false;
  entry.was_asked_to_leave = false;
  changed_.notify_all();
  if (!entry.waiting.empty() && std::ranges::find(wanted_, index) == wanted_.end()) wanted_.push_back(index);
}

void ServedModels::answer_waiting(std::unique_lock<std::mutex>& lock, Entry& entry, const ApiError* error) {
  std::deque<Then> waiting = std::exchange(entry.waiting, {});
  if (error == nullptr) entry.num_users += std::ssize(waiting);
  lock.unlock();
  for (Then& then : waiting) {
    try {
      const MemoryReserve::Spared spared;
      error == nullptr ? then(lease_of(entry)) : then(std::unexpected(*error));
    } catch (const std::exception&) {
      // Out of memory: that request alone hears nothing more.
    }
  }
  waiting.clear();
  lock.lock();
}

}  // namespace kvasir::server::api
