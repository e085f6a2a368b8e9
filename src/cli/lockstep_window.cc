#include "cli/lockstep_window.h"

#include <utility>

namespace kvasir::cli {

void LockstepWindow::record(std::size_t stream, const RequestOutput& output) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  Stream& news = streams_[stream];
  for (TokenId token : output.token_ids) {
    news.tokens.push_back(token);
    if (news.tokens.size() == 1 && ++num_started_ == streams_.size()) open(now);
    if (begin_ && news.tokens.size() == news.tokens_at_begin + static_cast<std::size_t>(n_gen_) &&
        ++num_complete_ == streams_.size()) {
      end_ = now;
    }
  }
  kv_bytes_share_ = output.usage.kv_bytes_share;
  if (output.error && !error_) error_ = output.error;
  if (output.request_finished) ++num_finished_;
  if (end_ || all_finished()) changed_.notify_all();
}

void LockstepWindow::open(Clock::time_point now) {
  begin_ = now;
  for (Stream& stream : streams_) stream.tokens_at_begin = stream.tokens.size();
  if (n_gen_ > 0) return;
  num_complete_ = streams_.size();
  end_ = now;
}

bool LockstepWindow::wait_until_closed(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return end_ || all_finished(); });
}

Result<LockstepWindow::Times> LockstepWindow::wait_until_finished() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return all_finished(); });
  if (error_) return std::unexpected(*error_);
  if (!end_) return make_error(ErrorKind::kInternal, "bench: the streams ended before all had their tokens");
  return Times{*begin_, *end_};
}

std::vector<std::vector<TokenId>> LockstepWindow::take_tokens() {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<TokenId>> tokens;
  for (Stream& stream : streams_) tokens.push_back(std::move(stream.tokens));
  return tokens;
}

}  // namespace kvasir::cli
