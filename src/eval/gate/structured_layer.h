// The third layer of the gate: answers in a JSON Schema, with guided decoding and without.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/gate/gate_arm.h"
#include "eval/gate/gate_check.h"

namespace kvasir::eval {

struct SchemaItem {
  std::string name;
  std::string schema;  // that SchemaReader takes
  std::vector<TokenId> prompt;
};

// The text of an answer's tokens.
using DecodeAnswer = std::function<Result<std::string>(std::span<const TokenId> tokens)>;

struct StructuredLimits {
  double ended = 0.95;        // guided answers that end, as a share of those that end with the reference
  double same_error = 0.8;    // free answers with the reference's first error, of those that begin with JSON there
  double more_loops = 0.02;   // of free answers, above the reference's share
  std::int32_t least = 20;         // guided answers that end with the reference
  std::int32_t least_of_kind = 5;  // free answers that count
};

struct StructuredItems {
  std::vector<SchemaItem> schemas;
  DecodeAnswer decode;
  std::int32_t max_tokens = 256;  // of an answer
  StructuredLimits limits = {};
};

// Whether the last 64 tokens repeat 16 of them four times.
bool ends_in_loop(std::span<const TokenId> tokens);

// Guided answers that end are all right, or as large a share of them as with the reference. Errors: as GateArm::answer.
Result<GateLayer> run_structured_layer(const GateArms& arms, const StructuredItems& items, const GateProgress& progress);

}  // namespace kvasir::eval
