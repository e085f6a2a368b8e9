#include "cli/gate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"

namespace kvasir::cli {
namespace {

std::string check_line(const eval::GateCheck& check) {
  std::string line = fmt::format("  {:<22} ", check.name);
  if (!check.counts()) {
    return line + fmt::format("does not count: {} of {} items are fit to compare, {} are needed\n", check.num_items, check.num_asked,
                              std::max(check.least, 1));
  }
  line += fmt::format("{:<7.4f} {} {:<7.4f} {}  of {} items", check.value, check.less_is_better ? "at most " : "at least",
                      check.limit, check.holds() ? "holds" : "FAILS", check.num_items);
  if (check.num_asked != check.num_items) line += fmt::format(" among {}", check.num_asked);
  if (check.interval) line += fmt::format(" (95%: {:.3f} to {:.3f})", check.interval->low, check.interval->high);
  return line + "\n";
}

void write_check(JsonWriter& json, const eval::GateCheck& check) {
  json.begin_object().member("name", check.name);
  if (!std::isnan(check.value)) json.member("value", check.value);
  json.member("limit", check.limit).member("less_is_better", check.less_is_better);
  if (check.counts()) json.member("holds", check.holds());
  json.member("counts", check.counts()).member("items", check.num_items).member("asked", check.num_asked);
  if (check.interval) json.member("low", check.interval->low).member("high", check.interval->high);
  json.end_object();
}

}  // namespace

std::string gate_text(const eval::GateReport& report, const GateSubject& subject) {
  std::string out = fmt::format("{} with {} against {}\n", subject.model, subject.change, subject.reference);
  for (const eval::GateLayer& layer : report.layers) {
    const eval::GateVerdict verdict = layer.verdict();
    out += fmt::format("{:<10} {:<7} score {:.3f}", layer.name, eval::name_of(verdict), layer.score());
    if (!layer.reason.empty()) out += fmt::format(": {}", layer.reason);
    if (layer.reason.empty() && verdict == eval::GateVerdict::kUnknown) {
      out += layer.num_items < layer.least ? fmt::format(": {} items count, {} are needed", layer.num_items, layer.least)
                                           : ": no kind has enough items";
    }
    out += "\n";
    for (const eval::GateCheck& check : layer.checks) out += check_line(check);
  }
  return out + fmt::format("{}, score {:.3f}\n", report.passed() ? "passed" : "NOT PASSED", report.score());
}

std::string gate_document(const eval::GateReport& report, const GateSubject& subject) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("passed", report.passed()).member("score", report.score());
  json.member("model", subject.model).member("reference", subject.reference).member("change", subject.change);
  json.key("layers").begin_array();
  for (const eval::GateLayer& layer : report.layers) {
    json.begin_object().member("name", layer.name).member("passed", layer.verdict() == eval::GateVerdict::kPassed);
    json.member("verdict", eval::name_of(layer.verdict()));
    if (!layer.reason.empty()) json.member("reason", layer.reason);
    json.member("score", layer.score()).member("weight", layer.weight).member("items", layer.num_items);
    json.key("checks").begin_array();
    for (const eval::GateCheck& check : layer.checks) write_check(json, check);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace kvasir::cli
