// The work of a step that was scheduled, for the model of its time.
#pragma once

#include <algorithm>
#include <span>

#include "admission/step_work.h"
#include "sched/scheduler_output.h"

namespace kvasir::sched {

// Requires: all of the sequences run all layers.
inline admission::StepWork work_of(std::span<const ScheduledSequence> sequences) {
  admission::StepWork work;
  for (const ScheduledSequence& s : sequences) {
    if (s.is_decoding()) {
      work.add_decoding(s.first_position);
      work.add_draft(s.first_position + 1, s.num_draft_tokens());
    } else {
      work.add_chunk(s.first_position, s.num_tokens);
      work.num_prompt_logits_rows += std::max(0, s.num_logits_rows() - 1);
    }
  }
  return work;
}

}  // namespace kvasir::sched
