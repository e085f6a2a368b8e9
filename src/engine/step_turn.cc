#include "engine/step_turn.h"

namespace kvasir {

StepTurn::Held StepTurn::take(StepTurn* turns) {
  if (turns == nullptr) return {};
  turns->begin();
  return Held(turns);
}

void StepTurn::begin() {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_++;
  changed_.wait(lock, [&] { return current_ == ticket; });
}

void StepTurn::end() {
  {
    const std::lock_guard lock(mutex_);
    ++current_;
  }
  changed_.notify_all();
}

}  // namespace kvasir
