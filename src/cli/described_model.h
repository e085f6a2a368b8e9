// A MODEL argument whose header alone is read: on this machine, or on the hub.
#pragma once

#include <optional>
#include <string>

#include "cli/verb.h"
#include "engine/open_model.h"
#include "kvasir/result.h"
#include "store/hub/hub_headers.h"

namespace kvasir::cli {

struct DescribedModel {
  std::optional<store::HubHeaders> headers;  // of a model that is on the hub only
  OpenedModel opened;                        // may have tensors that no kernel reads
  std::string path;                          // as people know it: of a model on the hub its name
  std::string license;                       // as the hub says; else empty

  // The line with the model's name in the place of the folder that its headers lie in.
  std::string in_words(std::string line) const;
};

// hf:OWNER/NAME that is not here is asked for on the hub, by ranges. Errors: as store::resolve_model,
// store::HubHeaders::fetch and open_model_to_describe.
Result<DescribedModel> open_described(const std::string& model, const GlobalOptions& globals);

}  // namespace kvasir::cli
