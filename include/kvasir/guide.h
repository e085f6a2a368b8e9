// The form that an answer must have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvasir {

// The answer is a text of the guide, or ends with FinishReason::kLength on its way to one.
struct Guide {
  enum class Kind : std::uint8_t {
    kJsonSchema,  // a value that satisfies the schema `text` (docs/GUIDED.md)
    kRegex,       // a text that the regular expression `text` matches as a whole
    kChoice,      // one of `choices`
  };
  Kind kind = Kind::kJsonSchema;
  std::string text = {};
  std::vector<std::string> choices = {};
};

}  // namespace kvasir
