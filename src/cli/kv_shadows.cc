#include "cli/kv_shadows.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/one_of.h"
#include "cli/standard_output.h"
#include "journal/log_reader.h"

namespace kvasir::cli {
namespace {

using journal::LoggedShadows;
using journal::ShadowSlice;

struct ShadowsOptions {
  std::string log;
  std::string slice;
};

constexpr std::array<std::pair<const char*, ShadowSlice>, 4> kSlices = {{{"prompt", ShadowSlice::kPromptLength},
                                                                        {"answer", ShadowSlice::kAnswerLength},
                                                                        {"cached", ShadowSlice::kCachedShare},
                                                                        {"tenant", ShadowSlice::kTenant}}};

ShadowSlice slice_named(const std::string& name) {
  for (const auto& [known, slice] : kSlices) {
    if (name == known) return slice;
  }
  return ShadowSlice::kNone;
}

std::string number(std::optional<double> value, int digits) { return value ? fmt::format("{:.{}f}", *value, digits) : "-"; }

std::string budget_of(const LoggedShadows& row) {
  return row.budget_bytes > 0 ? format_bytes(row.budget_bytes) : fmt::format("{:.1f}%", 100 * row.budget_share);
}

std::string text_of(const std::vector<LoggedShadows>& rows) {
  if (rows.empty()) return "No answer was chosen yet: `serve --kv-shadow 0.01` chooses one in a hundred.\n";
  std::string out = "POLICY          QUALITY      BUDGET     SCORED  UNKNOWN  DOWNGRADED   MEAN KL     WORST  LOG RATIO   TOP 1  SLICE\n";
  for (const LoggedShadows& row : rows) {
    out += fmt::format("{:<14}  {:<11}  {:<9}  {:>6}  {:>7}  {:>10}  {:>8}  {:>8}  {:>9}  {:>5}%  {}\n", printable(row.policy), printable(row.quality),
                       budget_of(row), row.num_scored, row.num_unknown, row.num_downgraded, number(row.kl, 5), number(row.kl_worst, 5),
                       number(row.log_ratio, 5), row.top1 ? number(100 * *row.top1, 1) : "-", printable(row.slice));
  }
  return out;
}

std::string json_of(const std::vector<LoggedShadows>& rows) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array();
  for (const LoggedShadows& row : rows) {
    json.begin_object()
        .member("policy", row.policy)
        .member("quality", row.quality)
        .member("budget", row.budget_share)
        .member("budget_bytes", row.budget_bytes)
        .member("slice", row.slice)
        .member("scored", row.num_scored)
        .member("unknown", row.num_unknown)
        .member("downgraded", row.num_downgraded)
        .member("tokens", row.num_tokens)
        .member("kl_mean", row.kl)
        .member("kl_worst", row.kl_worst)
        .member("log_ratio_mean", row.log_ratio)
        .member("top1", row.top1)
        .end_object();
  }
  json.end_array();
  return out;
}

Result<int> show_shadows(const ShadowsOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(journal::LogReader log, journal::LogReader::open(options.log));
  KVASIR_TRY(const auto rows, log.shadows(slice_named(options.slice)));
  if (globals.json) return print_document(json_of(rows));
  print(text_of(rows));
  return finish_output();
}

}  // namespace

void add_kv_shadows(CLI::App& verb, Context& context) {
  auto options = std::make_shared<ShadowsOptions>();
  CLI::App* below = verb.add_subcommand("shadows", "Show how far served answers were from the exact ones");
  below->add_option("LOG", options->log, "A file that `serve --kv-log` wrote, with --kv-shadow")->required();
  std::vector<std::string> names;
  for (const auto& slice : kSlices) names.emplace_back(slice.first);
  below->add_option("--by", options->slice, "Show slices: by tokens of the prompt or answer, the cached share of the prompt, or tenant")
      ->check(one_of(std::move(names)));
  on_chosen(*below, context, [options, &context] { return show_shadows(*options, context.options); });
}

}  // namespace kvasir::cli
