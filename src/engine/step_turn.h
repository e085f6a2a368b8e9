// Engines of one process that share its cores take turns, a step each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace kvasir {

// Without it the workers of two engines would spin for the same cores, and each step would wait for the slower one.
//
// Thread safety: any thread. Turns come in the order in which they were asked for.
class StepTurn {
 public:
  // A turn until it is destroyed.
  class Held {
   public:
    Held() = default;  // none
    Held(Held&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (turns_ != nullptr) turns_->end();
    }

   private:
    friend class StepTurn;
    explicit Held(StepTurn* turns) : turns_(turns) {}
    StepTurn* turns_ = nullptr;
  };

  // Waits for a turn. Null has none to give: the engine is alone.
  [[nodiscard]] static Held take(StepTurn* turns);

 private:
  void begin();
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0, current_ = 0;  // guarded; tickets
};

}  // namespace kvasir
