// A model's own text and what it predicts there, for files that are made from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/interruption.h"
#include "cli/verb.h"
#include "eval/divergence.h"
#include "kvasir/result.h"

namespace kvasir::cli {

class SourceLogits {
 public:
  // Nothing for an encoder, and without a tokenizer. `folder`: where the logits lie meanwhile. Errors: those of open_session,
  // kCancelled.
  static Result<std::optional<SourceLogits>> record(const std::string& model, const std::string& folder,
                                                    const GlobalOptions& globals, Interruption& interruption);
  // How far the file at `path` is from the model. Errors: as above.
  Result<eval::Divergence> compare(const std::string& path, const GlobalOptions& globals, Interruption& interruption) const;

 private:
  std::vector<std::vector<TokenId>> windows_;
  eval::LogitsFile file_;
};

}  // namespace kvasir::cli
