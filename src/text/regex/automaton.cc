#include "text/regex/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/code_point.h"
#include "text/regex/program.h"

namespace kvasir::text::regex {
namespace {

constexpr std::size_t kMaxStates = 10'000;
constexpr std::size_t kMaxClasses = 255;
constexpr std::size_t kMaxSteps = 20'000'000;  // while building: a fraction of a second
constexpr std::size_t kNumCodePoints = 0x110000;
constexpr std::uint32_t kDead = 0;
constexpr std::uint32_t kStart = 1;
constexpr std::size_t kFreeBytes = 256;  // beyond a match, before failures are remembered

std::unexpected<Error> too_large(std::string_view what, std::size_t limit) {
  return make_error(ErrorKind::kBadFile, fmt::format("a pattern has more than {} {}", limit, what));
}

}  // namespace

class AutomatonBuilder {
 public:
  explicit AutomatonBuilder(Program program) : program_(std::move(program)) {}

  Result<Automaton> build() {
    KVASIR_CHECKED(divide_into_classes());
    automaton_.num_classes_ = num_classes_ + 1;
    seen_.assign(program_.instructions.size(), 0);
    listed_.assign(program_.instructions.size(), 0);
    state_of({});
    state_of({program_.start});
    for (std::size_t state = 0; state < lists_.size(); ++state) {
      for (std::size_t kind = 0; kind <= num_classes_; ++kind) {
        automaton_.transitions_.push_back(step(state, kind));
      }
      if (lists_.size() > kMaxStates) return too_large("states", kMaxStates);
      if (num_steps_ > kMaxSteps) return too_large("steps to build", kMaxSteps);
    }
    return std::move(automaton_);
  }

 private:
  using Kind = Instruction::Kind;

  // Characters that no set of the pattern tells apart are one class.
  Status divide_into_classes() {
    std::vector<char32_t> cuts = {0};
    for (const CodePointSet& set : program_.sets) {
      for (const auto& [first, last] : set.ranges()) {
        cuts.push_back(first);
        if (last + 1 < kNumCodePoints) cuts.push_back(last + 1);
      }
    }
    std::ranges::sort(cuts);
    const auto repeats = std::ranges::unique(cuts);
    cuts.erase(repeats.begin(), repeats.end());
    if (cuts.size() * program_.sets.size() > kMaxSteps) return too_large("steps to build", kMaxSteps);
    std::map<std::vector<bool>, std::uint8_t> classes;
    std::string class_by_code_point(kNumCodePoints, '\0');
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      std::vector<bool> in_sets;
      for (const CodePointSet& set : program_.sets) in_sets.push_back(set.contains(cuts[i]));
      const auto [entry, is_new] = classes.emplace(std::move(in_sets),
                                                   static_cast<std::uint8_t>(classes.size()));
      if (classes.size() > kMaxClasses) return too_large("classes of characters", kMaxClasses);
      if (is_new) in_sets_.push_back(entry->first);
      const std::size_t end = i + 1 < cuts.size() ? cuts[i + 1] : kNumCodePoints;
      std::fill(class_by_code_point.begin() + cuts[i],
                class_by_code_point.begin() + static_cast<std::ptrdiff_t>(end),
                static_cast<char>(entry->second));
    }
    num_classes_ = classes.size();
    fill_blocks(class_by_code_point);
    return {};
  }

  // Equal blocks of the table are kept once.
  void fill_blocks(std::string_view class_by_code_point) {
    constexpr std::size_t kBlock = std::size_t{1} << Automaton::kBlockBits;
    std::map<std::string_view, std::uint16_t> numbers;
    for (std::size_t at = 0; at < kNumCodePoints; at += kBlock) {
      const std::string_view block = class_by_code_point.substr(at, kBlock);
      const auto [entry, is_new] = numbers.emplace(block, static_cast<std::uint16_t>(numbers.size()));
      if (is_new) automaton_.blocks_.insert(automaton_.blocks_.end(), block.begin(), block.end());
      automaton_.block_of_.push_back(entry->second);
    }
  }

  std::uint32_t state_of(std::vector<std::uint32_t> places) {
    const auto [entry, is_new] = states_.emplace(std::move(places),
                                                 static_cast<std::uint32_t>(lists_.size()));
    if (is_new) lists_.push_back(&entry->first);
    return entry->second;
  }

  // The transition of a state for a class; the class behind the last one is the text's end.
  std::uint32_t step(std::size_t state, std::size_t kind) {
    ++generation_;
    const bool at_end = kind == num_classes_;
    bool is_matched = false;
    std::vector<std::uint32_t> reached;
    std::vector<std::uint32_t> stack;
    const std::vector<std::uint32_t>& places = *lists_[state];
    for (std::size_t i = 0; i < places.size() && !is_matched; ++i) {
      stack.push_back(places[i]);
      while (!stack.empty() && !is_matched) {
        const std::uint32_t place = stack.back();
        stack.pop_back();
        ++num_steps_;
        if (std::exchange(seen_[place], generation_) == generation_) continue;
        const Instruction& instruction = program_.instructions[place];
        const bool fits = !at_end && instruction.kind != Kind::kMatch && instruction.kind != Kind::kSplit &&
                          in_sets_[kind][instruction.set];
        switch (instruction.kind) {
          case Kind::kMatch:
            is_matched = true;  // what is preferred less does not count any more
            break;
          case Kind::kSplit:
            stack.push_back(instruction.other);
            stack.push_back(instruction.next);
            break;
          case Kind::kLook:
            if (fits || (at_end && instruction.at_end)) stack.push_back(instruction.next);
            break;
          case Kind::kSet:
            if (fits && std::exchange(listed_[instruction.next], generation_) != generation_) {
              reached.push_back(instruction.next);
            }
            break;
        }
      }
    }
    if (lists_.size() > kMaxStates || num_steps_ > kMaxSteps) return kDead;  // build() reports it
    return state_of(std::move(reached)) << 1 | (is_matched ? Automaton::kMatched : 0);
  }

  Program program_;
  Automaton automaton_;
  std::size_t num_classes_ = 0;
  std::vector<std::vector<bool>> in_sets_;  // by class, then by set
  std::map<std::vector<std::uint32_t>, std::uint32_t> states_;
  std::vector<const std::vector<std::uint32_t>*> lists_;  // by state: places, the preferred one first
  std::vector<std::uint32_t> seen_;                       // by place: the step that met it last
  std::vector<std::uint32_t> listed_;
  std::uint32_t generation_ = 0;
  std::size_t num_steps_ = 0;
};

Result<Automaton> Automaton::compile(std::string_view pattern) {
  KVASIR_TRY(const Node root, parse(pattern));
  KVASIR_TRY(Program program, compile_program(root));
  return AutomatonBuilder(std::move(program)).build();
}

std::size_t Automaton::next_character(std::string_view text, std::size_t position) {
  return position + code_point_at(text, position).size_bytes;
}

// The end of the match that begins at `begin`; `begin` when there is none, or an empty one.
bool Automaton::matches_empty() const {
  if (num_classes_ == 0) return false;
  const auto* const first = transitions_.data() + kStart * num_classes_;
  return std::any_of(first, first + num_classes_, [](std::uint32_t transition) { return (transition & kMatched) != 0; });
}

std::size_t Automaton::match_end(Scan& scan, std::size_t begin) const {
  const std::string_view text = scan.text;
  std::vector<std::pair<std::uint32_t, std::size_t>> trail;  // states and places since the last match
  std::size_t last = begin;
  std::uint32_t state = kStart;
  for (std::size_t position = begin;;) {
    if (position > last + kFreeBytes) {
      if (scan.failed.empty()) scan.failed.resize(num_states());
      const std::vector<bool>& failed = scan.failed[state];
      if (!failed.empty() && failed[position]) break;
      trail.emplace_back(state, position);
    }
    const bool at_end = position == text.size();
    const CodePoint next = at_end ? CodePoint{} : code_point_at(text, position);
    const std::size_t kind = at_end ? num_classes_ - 1 : class_of(next.value);
    const std::uint32_t transition = transitions_[state * num_classes_ + kind];
    if ((transition & kMatched) != 0) {
      last = position;
      trail.clear();
    }
    state = transition >> 1;
    if (at_end || state == kDead) break;
    position += next.size_bytes;
  }
  for (const auto& [failed_state, position] : trail) {
    std::vector<bool>& failed = scan.failed[failed_state];
    failed.resize(text.size() + 1);
    failed[position] = true;
  }
  return last;
}

}  // namespace kvasir::text::regex
