// One measurement of a KV policy, and the file that they gather in.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::eval {

// A policy at a budget, on one window of text or one hidden needle.
struct KvRow {
  std::string suite;  // "p1", "p2", "needle-late", ...
  std::int32_t ctx_tokens = 0;
  std::int32_t item = 0;  // the window, or the needle's depth in tenths
  std::string policy;
  double budget = 1.0;
  double bytes_share = 1.0, bytes_share_peak = 1.0;  // as Usage
  // For text.
  std::int32_t num_tokens = 0;
  double nll = 0.0, full_nll = 0.0;  // mean over its tokens in nats, with the policy and with the full cache
  double kl = 0.0;                   // mean Kullback-Leibler divergence from the full cache's distribution
  double top1 = 0.0;                 // share of positions whose most likely token is the full cache's
  // For a needle: 1 found, 0 not.
  std::int32_t found = 0, full_found = 0;

  using Key = std::tuple<std::string, std::int32_t, std::int32_t, std::string, double>;
  Key key() const { return {suite, ctx_tokens, item, policy, budget}; }
};

// A CSV file of rows that grows row by row, so that work which was cut off goes on where it was.
class KvRowFile {
 public:
  // Reads what the file has, or begins it. `subject` is what was measured, in one line: rows of another
  // subject are not taken for this one's. Errors: kMachine (cannot be written), kBadFile (another subject's
  // rows, or no rows at all).
  static Result<KvRowFile> open(const std::string& path, const std::string& subject);

  const std::vector<KvRow>& rows() const { return rows_; }
  bool has(const KvRow::Key& key) const { return keys_.contains(key); }
  Status add(KvRow row);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  KvRowFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  Status write(std::string_view text);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<KvRow> rows_;
  std::set<KvRow::Key> keys_;
};

}  // namespace kvasir::eval
