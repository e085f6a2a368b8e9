#include "learn/shadow_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "base/printable.h"
#include "base/text_file.h"
#include "kv/policy/block_forecast.h"

namespace kvasir::learn {
namespace {

constexpr std::string_view kMagic = "kvasir-shadows-1\n";
constexpr std::uint32_t kMostOfAKind = 1u << 20;  // of anything that is counted
static_assert(std::endian::native == std::endian::little);

class ShadowWriter {
 public:
  void count(std::size_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void floats(std::span<const float> values) { out_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes()); }
  void text(std::string_view value) {
    count(value.size());
    out_ += value;
  }
  std::string& out() { return out_; }

 private:
  std::string out_{kMagic};
};

class ShadowReader {
 public:
  explicit ShadowReader(std::string_view in) : in_(in) {}
  bool count(std::uint32_t& value) {
    if (in_.size() < sizeof value) return false;
    std::memcpy(&value, in_.data(), sizeof value);
    in_.remove_prefix(sizeof value);
    return value <= kMostOfAKind;
  }
  bool floats(std::size_t size, std::vector<float>& values) {
    if (in_.size() / sizeof(float) < size) return false;
    values.resize(size);
    std::memcpy(values.data(), in_.data(), size * sizeof(float));
    in_.remove_prefix(size * sizeof(float));
    return true;
  }
  bool text(std::string& value) {
    std::uint32_t size = 0;
    if (!count(size) || in_.size() < size) return false;
    value = in_.substr(0, size);
    in_.remove_prefix(size);
    return true;
  }
  bool act(ShadowAct& act) {
    std::uint32_t group = 0, num_blocks = 0, num_cells = 0, has_shares = 0;
    if (!count(group) || !count(num_blocks) || !count(num_cells) || !count(has_shares) || num_cells == 0) return false;
    const std::size_t size = std::size_t{num_blocks} * num_cells;
    std::vector<float> scores, statistics;
    if (!floats(size, scores) || !floats(size, statistics) || !floats(size, act.later)) return false;
    if (has_shares != 0 && !floats(size, act.greatest_share)) return false;
    act.group = static_cast<std::int32_t>(group);
    act.num_blocks = static_cast<std::int32_t>(num_blocks);
    act.scores = {kv::DecayedMass::memory(), static_cast<std::int32_t>(num_cells), std::move(scores), std::move(statistics)};
    return true;
  }
  bool sequence(ShadowSequence& sequence) {
    std::uint32_t num_acts = 0;
    if (!count(num_acts)) return false;
    for (std::uint32_t i = 0; i < num_acts; ++i) {
      if (!act(sequence.emplace_back())) return false;
    }
    return true;
  }
  bool traffic(ShadowTraffic& traffic) {
    std::uint32_t num_kinds = 0;
    if (!count(num_kinds)) return false;
    for (std::uint32_t kind = 0; kind < num_kinds; ++kind) {
      std::vector<ShadowSequence>& of_kind = traffic.emplace_back();
      std::uint32_t num_sequences = 0;
      if (!count(num_sequences)) return false;
      for (std::uint32_t i = 0; i < num_sequences; ++i) {
        if (!sequence(of_kind.emplace_back())) return false;
      }
    }
    return in_.empty();
  }

 private:
  std::string_view in_;
};

void write_act(const ShadowAct& act, ShadowWriter& to) {
  to.count(static_cast<std::size_t>(act.group));
  to.count(static_cast<std::size_t>(act.num_blocks));
  to.count(static_cast<std::size_t>(act.scores.num_cells()));
  to.count(act.greatest_share.empty() ? 0 : 1);
  for (std::int32_t cell = 0; cell < act.scores.num_cells(); ++cell) to.floats(act.scores.scores(cell));
  for (std::int32_t cell = 0; cell < act.scores.num_cells(); ++cell) to.floats(act.scores.statistics(cell));
  to.floats(act.later);
  to.floats(act.greatest_share);
}

}  // namespace

Status write_shadows(const std::string& path, const std::string& model, const ShadowTraffic& traffic) {
  ShadowWriter writer;
  writer.text(model);
  writer.count(traffic.size());
  for (const std::vector<ShadowSequence>& of_kind : traffic) {
    writer.count(of_kind.size());
    for (const ShadowSequence& sequence : of_kind) {
      writer.count(sequence.size());
      for (const ShadowAct& act : sequence) write_act(act, writer);
    }
  }
  return replace_text_file(path, writer.out());
}

Result<ShadowTraffic> read_shadows(const std::string& path, const std::string& model) {
  std::ifstream file(path, std::ios::binary);
  const std::string contents{std::istreambuf_iterator<char>(file), {}};
  const auto bad = [&](std::string_view what) { return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(path), what)); };
  if (!contents.starts_with(kMagic)) return bad("no shadows of kvasir eval kv-learn");
  ShadowReader reader(std::string_view(contents).substr(kMagic.size()));
  std::string of_model;
  ShadowTraffic traffic;
  if (!reader.text(of_model)) return bad("it is not whole");
  if (of_model != model) return bad("shadows of another model than this file's");
  if (!reader.traffic(traffic)) return bad("it is not whole");
  return traffic;
}

}  // namespace kvasir::learn
