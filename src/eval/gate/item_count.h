// Items of one kind that a layer asked, and what came of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "eval/gate/gate_check.h"
#include "eval/gate/gate_arm.h"

namespace kvasir::eval {

struct ItemCount {
  std::int32_t num_asked = 0;
  std::int32_t num_counted = 0;  // that the reference does right
  std::int32_t num_kept = 0;     // .. and the changed arm too

  // `least`: of fewer that count the kind is no figure.
  GateCheck check(std::string_view name, double limit, std::int32_t least) const {
    return share_check(name, num_kept, num_counted, num_asked, limit, least);
  }
};

// An answer that a request of its own cannot have, as where its schema is refused, is none: the item is lost there. What
// ends the whole run is an error.
Result<ArmAnswer> answer_or_none(GateArm& arm, const ArmQuestion& question);

}  // namespace kvasir::eval
