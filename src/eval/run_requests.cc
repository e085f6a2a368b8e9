#include "eval/run_requests.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace kvasir::eval {
namespace {

constexpr std::chrono::milliseconds kPatience{50};

// The engine's thread leaves its news here for the one that waits.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Generated> answers;
  std::size_t num_done = 0;
  std::optional<Error> error;
};

void record(Board& board, std::size_t index, RequestOutput output) {
  const std::scoped_lock lock(board.mutex);
  Generated& answer = board.answers[index];
  answer.token_ids.insert(answer.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  if (!output.request_finished) return;
  if (output.stop_token != kNoToken) answer.token_ids.push_back(output.stop_token);
  answer.is_ended = output.finish_reason == FinishReason::kStop;
  if (output.error && !board.error) board.error = std::move(output.error);
  ++board.num_done;
  board.changed.notify_all();
}

}  // namespace

Result<std::vector<Generated>> run_requests(Engine& engine, std::size_t num_requests, std::size_t num_streams,
                                            const NextRequest& next, const KeepGoing& keep_going,
                                            const std::function<void(std::size_t num_done)>& progress) {
  const auto board = std::make_shared<Board>();
  board->answers.resize(num_requests);
  std::vector<RequestId> ids;
  std::optional<Error> refused;
  bool is_interrupted = false;
  std::unique_lock lock(board->mutex);
  while (board->num_done < num_requests && !board->error && !refused && !is_interrupted) {
    while (ids.size() < std::min(num_requests, board->num_done + num_streams) && !refused) {
      const std::size_t index = ids.size();
      lock.unlock();
      auto id = engine.submit(next(index), [board, index](RequestOutput output) { record(*board, index, std::move(output)); });
      lock.lock();
      if (id) ids.push_back(*id);
      if (!id) refused = id.error();
    }
    board->changed.wait_for(lock, kPatience);
    const std::size_t num_done = board->num_done;
    lock.unlock();
    progress(num_done);
    is_interrupted = keep_going && !keep_going();
    lock.lock();
  }
  lock.unlock();
  for (const RequestId id : ids) engine.cancel(id);
  lock.lock();
  board->changed.wait(lock, [&] { return board->num_done >= ids.size(); });
  if (refused) return std::unexpected(*std::move(refused));
  if (board->error) return std::unexpected(*board->error);
  if (is_interrupted) return make_error(ErrorKind::kCancelled, "interrupted");
  return std::move(board->answers);
}

}  // namespace kvasir::eval
