// The report of `kvasir eval gate`, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "eval/gate/gate_check.h"

namespace kvasir::cli {

// The two that were compared.
struct GateSubject {
  std::string model, reference;
  std::string change;  // in words, such as "--kv-policy ladder --kv-budget 0.3"
};

// A line a layer and a line a figure.
std::string gate_text(const eval::GateReport& report, const GateSubject& subject);
// {passed, score, layers: [{name, passed, checks: [{name, value, limit, less_is_better, holds}]}]} and what is behind it. A
// figure that does not count has no `holds`.
std::string gate_document(const eval::GateReport& report, const GateSubject& subject);

}  // namespace kvasir::cli
