#include "eval/divergence.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/printable.h"
#include "eval/scoring.h"
#include "text/tokenizer.h"

namespace kvasir::eval {
namespace {

std::unexpected<Error> failed(const char* what) {
  return make_error(ErrorKind::kMachine, fmt::format("logits of the source cannot be {}: {}", what, std::strerror(errno)));
}

// log(sum(exp(logits))).
double log_sum_exp(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

struct Position {
  double kl = 0.0, nll_exact = 0.0, nll_other = 0.0;
  bool is_same_top = false;
};

Position compare(std::span<const float> exact, std::span<const float> other, TokenId next) {
  const double of_exact = log_sum_exp(exact), of_other = log_sum_exp(other);
  Position position;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double log_p = exact[i] - of_exact, log_q = other[i] - of_other;
    position.kl += std::exp(log_p) * (log_p - log_q);
  }
  position.is_same_top = std::ranges::max_element(exact) - exact.begin() == std::ranges::max_element(other) - other.begin();
  const auto at = static_cast<std::size_t>(next);
  position.nll_exact = of_exact - exact[at];
  position.nll_other = of_other - other[at];
  return position;
}

// The positions of a window whose logits count: each has half a window behind it and a token after it.
std::int64_t first_counted(const std::vector<TokenId>& window) { return std::ssize(window) / 2; }
std::int64_t num_counted(const std::vector<TokenId>& window) { return std::ssize(window) - 1 - first_counted(window); }

}  // namespace

Result<LogitsFile> LogitsFile::create(const std::string& folder, std::int32_t vocab_size) {
  std::string path = (folder.empty() ? std::string(".") : folder) + "/kvasir-logits-XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  if (descriptor < 0) return make_error(ErrorKind::kMachine, fmt::format("{}: {}", printable_line(folder), std::strerror(errno)));
  ::unlink(path.c_str());
  LogitsFile file;
  file.file_.reset(::fdopen(descriptor, "w+b"));
  file.vocab_size_ = vocab_size;
  return file;
}

Status LogitsFile::write(std::int64_t row, std::span<const float> logits) {
  const auto bytes = static_cast<std::int64_t>(logits.size_bytes());
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::pwrite(::fileno(file_.get()), reinterpret_cast<const char*>(logits.data()) + done,
                                   static_cast<std::size_t>(bytes - done), row * bytes + done);
    if (count <= 0) return failed("kept");
    done += count;
  }
  return {};
}

Status LogitsFile::read(std::int64_t row, std::span<float> logits) const {
  const auto bytes = static_cast<std::int64_t>(logits.size_bytes());
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::pread(::fileno(file_.get()), reinterpret_cast<char*>(logits.data()) + done,
                                  static_cast<std::size_t>(bytes - done), row * bytes + done);
    if (count <= 0) return failed("read");
    done += count;
  }
  return {};
}

TokenId opening_of(const Engine& engine) {
  const text::Vocab& vocab = engine.tokenizer()->vocab();
  return vocab.bos() != kNoToken || vocab.end_of_generation().empty() ? std::max(vocab.bos(), TokenId{0})
                                                                      : vocab.end_of_generation().front();
}

Result<std::vector<std::vector<TokenId>>> sample_windows(Engine& engine, TokenId opening, std::int32_t num_windows,
                                                         std::int32_t window_tokens, const KeepGoing& keep_going) {
  constexpr std::int32_t kMostAtOnce = 16;
  std::vector<std::vector<TokenId>> windows;
  Request request;
  request.prompt_token_ids = {opening};
  request.sampling.temperature = 1.0f;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1.0f;
  request.sampling.min_p = 0.0f;
  request.sampling.ignore_eos = true;
  request.sampling.max_tokens = window_tokens - 1;
  while (std::ssize(windows) < num_windows) {
    request.sampling.seed = windows.size() + 1;
    request.sampling.n = std::min(kMostAtOnce, num_windows - static_cast<std::int32_t>(windows.size()));
    KVASIR_TRY(RequestRun run, run_request(engine, request, keep_going));
    for (std::vector<TokenId>& choice : run.choices) {
      choice.insert(choice.begin(), opening);
      windows.push_back(std::move(choice));
    }
  }
  return windows;
}

Status record_logits(Engine& engine, std::span<const std::vector<TokenId>> windows, LogitsFile& file,
                     const KeepGoing& keep_going) {
  std::int64_t first_row = 0;
  for (const std::vector<TokenId>& window : windows) {
    const std::int64_t first = first_counted(window), count = num_counted(window);
    Status status;
    KVASIR_CHECKED(observe_logits(engine, window, [&](std::int32_t position, std::span<const float> logits) {
      if (position < first || position - first >= count || !status) return;
      status = file.write(first_row + position - first, logits);
    }, keep_going));
    KVASIR_CHECKED(std::move(status));
    first_row += count;
  }
  return {};
}

Result<Divergence> measure_divergence(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                      const LogitsFile& exact, const KeepGoing& keep_going) {
  Divergence sum;
  double nll_exact = 0.0, nll_other = 0.0;
  std::vector<float> row(static_cast<std::size_t>(exact.vocab_size()));
  for (const std::vector<TokenId>& window : windows) {
    const std::int64_t first = first_counted(window), count = num_counted(window);
    double kl = 0.0;
    Status status;
    KVASIR_CHECKED(observe_logits(engine, window, [&](std::int32_t position, std::span<const float> logits) {
      if (position < first || position - first >= count || !status) return;
      status = exact.read(sum.num_positions + position - first, row);
      if (!status) return;
      const Position compared = compare(row, logits, window[static_cast<std::size_t>(position) + 1]);
      kl += compared.kl;
      nll_exact += compared.nll_exact;
      nll_other += compared.nll_other;
      sum.top1 += compared.is_same_top ? 1.0 : 0.0;
    }, keep_going));
    KVASIR_CHECKED(std::move(status));
    sum.num_positions += count;
    ++sum.num_windows;
    sum.kl += kl;
    sum.kl_worst = std::max(sum.kl_worst, kl / static_cast<double>(std::max<std::int64_t>(1, count)));
  }
  const auto num_positions = static_cast<double>(std::max<std::int64_t>(1, sum.num_positions));
  sum.kl /= num_positions;
  sum.top1 /= num_positions;
  sum.ratio = std::exp((nll_other - nll_exact) / num_positions);
  return sum;
}

}  // namespace kvasir::eval
