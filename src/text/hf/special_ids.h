// Which tokens begin, end and fill texts, as the files beside a tokenizer.json say.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "kvasir/result.h"
#include "text/vocab.h"

namespace kvasir::text::hf {

struct SpecialIdFiles {
  std::string_view tokenizer_config = {};
  std::string_view config = {};
  std::string_view generation_config = {};
};

// Sets the ids of `data`, and whether BOS and EOS are added. A token that is not in the vocabulary is left out.
// kBadFile: a file that is no JSON object.
Status read_special_ids(const SpecialIdFiles& files, VocabData& data);

}  // namespace kvasir::text::hf
