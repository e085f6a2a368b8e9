#include "text/regex/program.h"

#include <fmt/format.h>

#include <cstddef>
#include <ranges>
#include <utility>

namespace kvasir::text::regex {
namespace {

constexpr std::size_t kMaxInstructions = 20'000;

class Compiler {
 public:
  Result<Program> compile(const Node& root) {
    const std::uint32_t match = push({});
    program_.start = emit(root, match);
    if (is_full_) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("a pattern has more than {} places once repetitions are written out",
                                    kMaxInstructions));
    }
    return std::move(program_);
  }

 private:
  using Kind = Instruction::Kind;

  std::uint32_t push(Instruction instruction) {
    is_full_ = is_full_ || program_.instructions.size() >= kMaxInstructions;
    if (is_full_) return 0;
    program_.instructions.push_back(instruction);
    return static_cast<std::uint32_t>(program_.instructions.size() - 1);
  }

  // The instruction where `node` begins, given the one that follows it.
  std::uint32_t emit(const Node& node, std::uint32_t next) {
    if (is_full_) return 0;
    switch (node.kind) {
      case Node::Kind::kSet:
        return push({.kind = Kind::kSet, .set = set_number(node.set), .next = next});
      case Node::Kind::kLook:
        return push({.kind = Kind::kLook, .at_end = node.at_end, .set = set_number(node.set), .next = next});
      case Node::Kind::kConcat:
        for (const Node& child : node.children | std::views::reverse) next = emit(child, next);
        return next;
      case Node::Kind::kAlternate: {
        std::uint32_t first = emit(node.children.back(), next);
        for (const Node& child : node.children | std::views::reverse | std::views::drop(1)) {
          first = push({.kind = Kind::kSplit, .next = emit(child, next), .other = first});
        }
        return first;
      }
      case Node::Kind::kRepeat:
        return emit_repeat(node, next);
    }
    return next;
  }

  std::uint32_t emit_repeat(const Node& node, std::uint32_t next) {
    const Node& child = node.children.front();
    std::uint32_t first = next;
    if (node.max == kUnbounded) {
      first = push({.kind = Kind::kSplit});
      const std::uint32_t body = emit(child, first);
      if (!is_full_) set_split(first, body, next, node.is_lazy);
    } else {
      for (std::int32_t i = node.min; i < node.max && !is_full_; ++i) {
        const std::uint32_t body = emit(child, first);
        first = push({.kind = Kind::kSplit});
        if (!is_full_) set_split(first, body, next, node.is_lazy);
      }
    }
    for (std::int32_t i = 0; i < node.min && !is_full_; ++i) first = emit(child, first);
    return first;
  }

  void set_split(std::uint32_t split, std::uint32_t body, std::uint32_t next, bool is_lazy) {
    program_.instructions[split].next = is_lazy ? next : body;
    program_.instructions[split].other = is_lazy ? body : next;
  }

  std::uint32_t set_number(const CodePointSet& set) {
    const auto [entry, is_new] = numbers_.emplace(set.ranges(),
                                                  static_cast<std::uint32_t>(program_.sets.size()));
    if (is_new) program_.sets.push_back(set);
    return entry->second;
  }

  Program program_;
  std::map<CodePointRanges, std::uint32_t> numbers_;
  bool is_full_ = false;
};

}  // namespace

Result<Program> compile_program(const Node& root) { return Compiler().compile(root); }

}  // namespace kvasir::text::regex
