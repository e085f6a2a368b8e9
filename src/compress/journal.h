// What of a file is done, so that a run that was stopped goes on.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "kvasir/result.h"

namespace kvasir::compress {

struct FinishedTensor {
  std::string sha256;  // of its bytes
  double error = 0.0;
};

// A text file beside the output: a line with the run's fingerprint, then a line a tensor. Lines that a crash cut are
// ignored. Thread safety: none.
class Journal {
 public:
  // Opens the journal, or begins a new one where there is none or it is another run's. Errors: kMachine.
  static Result<Journal> open(const std::string& path, const std::string& fingerprint);

  // The tensors of the earlier run.
  const std::map<std::string, FinishedTensor>& finished() const { return finished_; }
  // An earlier journal was another run's: of another source, or with other options.
  bool began_anew() const { return began_anew_; }
  // Durable when it returns. Errors: kMachine.
  Status add(const std::string& tensor, const FinishedTensor& finished);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, FinishedTensor> finished_;
  bool began_anew_ = false;
};

}  // namespace kvasir::compress
