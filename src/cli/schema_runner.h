// kvasir schema test: the runner of MaskBench on a model's vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace kvasir::cli {

struct SchemaTestOptions {
  std::string model;
  std::string cases;              // lines {name, schema, tests: [{valid, data}]}; may be gzip
  std::vector<std::string> only;  // names; empty: all
  std::int32_t num_repeats = 3;
  double timeout_s = 10;
  std::string failures;           // a file that gets a line of JSON for each failure; empty: none
};

// Exit code 1: an invalid instance was accepted, a mask was wrong, or a schema crashed.
Result<int> test_schemas(const SchemaTestOptions& options, const GlobalOptions& globals);

}  // namespace kvasir::cli
