// A pattern as instructions for a machine that runs several places of it at once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kvasir/result.h"
#include "text/regex/syntax.h"

namespace kvasir::text::regex {

struct Instruction {
  enum class Kind : std::uint8_t { kSet, kSplit, kLook, kMatch };
  Kind kind = Kind::kMatch;
  bool at_end = false;      // kLook: it holds at the text's end
  std::uint32_t set = 0;    // kSet, kLook: place in Program::sets
  std::uint32_t next = 0;   // kSplit: the preferred way
  std::uint32_t other = 0;  // kSplit
};

struct Program {
  std::vector<Instruction> instructions;
  std::vector<CodePointSet> sets;
  std::uint32_t start = 0;
};

// kBadFile: more than 20,000 instructions.
Result<Program> compile_program(const Node& root);

}  // namespace kvasir::text::regex
