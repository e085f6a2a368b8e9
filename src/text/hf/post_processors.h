// The tokens around a text, as the post-processor of a tokenizer.json file has them.
#pragma once

#include "kvasir/result.h"
#include "text/hf/json_view.h"
#include "text/sequence_frame.h"
#include "text/vocab.h"

namespace kvasir::text::hf {

// kBadFile: an unknown type, an id outside the vocabulary, a template without its text.
Result<SequenceFrame> read_post_processor(const JsonView& json, const Vocab& vocab);

}  // namespace kvasir::text::hf
