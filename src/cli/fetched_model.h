// Makes sure that the model of a command is on this machine.
#pragma once

#include <string>

#include "cli/verb.h"

namespace kvasir::cli {

// Pulls the model, with progress, where it is a name of the catalogue or of the hub (hf:OWNER/NAME) that is not here.
// Does nothing for paths, unknown names and models that are here. Errors: those of ModelStore::pull and pull_hub.
Status fetch_if_missing(const std::string& model, const GlobalOptions& globals);

// Whether the model is here, or fetch_if_missing() would pull it. Errors: those of ModelStore::resolve.
Status check_model_name(const std::string& model);

}  // namespace kvasir::cli
