#include "cli/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "base/units.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

struct Band {
  double bits_per_weight, most_kl;
};
// By the bits of the whole file.
constexpr Band kBands[] = {{8.0, 0.03}, {6.0, 0.10}, {5.0, 0.35}, {4.0, 1.2}, {3.0, 3.0}, {0.0, 8.0}};

std::string_view method_of(const compress::QuantizePlan& plan) {
  const auto uses = [&](compress::Method method) { return std::ranges::find(plan.tensors, method, &compress::PlannedTensor::method) != plan.tensors.end(); };
  for (const compress::Method method : {compress::Method::kGptq, compress::Method::kImatrix, compress::Method::kRtn}) {
    if (uses(method)) return compress::name_of(method);
  }
  return compress::name_of(compress::Method::kCopy);
}

void write_tensors(JsonWriter& json, const QuantizeReport& report) {
  json.key("tensors").begin_array();
  for (std::size_t i = 0; i < report.plan->tensors.size(); ++i) {
    const compress::PlannedTensor& tensor = report.plan->tensors[i];
    json.begin_object()
        .member("name", tensor.source.name)
        .member("type", kvasir::name_of(tensor.choice.type))
        .member("bytes", tensor.num_bytes())
        .member("method", compress::name_of(tensor.method))
        .member("fallback", tensor.choice.is_fallback());
    if (report.file != nullptr) json.member("error", report.file->errors[i]);
    json.end_object();
  }
  json.end_array();
}

int print_json(const QuantizeReport& report, int exit_code) {
  const compress::QuantizePlan& plan = *report.plan;
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("in", report.in);
  if (report.file != nullptr) json.member("out", report.out);
  json.member("bytes", plan.num_bytes).member("bits_per_weight", plan.bits_per_weight()).member("method", method_of(plan));
  json.member("calibration_tokens", report.calibration_tokens).member("num_fallbacks", plan.num_fallbacks);
  if (report.file != nullptr) {
    json.member("seconds", report.seconds).member("peak_bytes", peak_rss_bytes()).member("sha256", report.file->sha256);
  }
  if (report.predicted_kl) json.member("predicted_kl", *report.predicted_kl);
  if (report.forecast) {
    json.member("predicted_kl", report.forecast->kl)
        .member("predicted_seconds", report.forecast->seconds)
        .member("predicted_peak_bytes", report.forecast->peak_bytes);
  }
  write_tensors(json, report);
  if (report.verify) {
    json.key("verify")
        .begin_object()
        .member("windows", static_cast<std::int64_t>(report.verify->num_windows))
        .member("kl", report.verify->kl)
        .member("kl_worst", report.verify->kl_worst)
        .member("top1", report.verify->top1)
        .member("ratio", report.verify->ratio)
        .end_object();
  }
  json.member("rejected", report.is_rejected).end_object();
  return print_document(std::move(out), exit_code);
}

// A line for each type: how many tensors, and their bytes.
void print_types(const compress::QuantizePlan& plan) {
  struct Sum {
    std::int64_t count = 0, bytes = 0, fallbacks = 0;
  };
  std::map<std::string, Sum> by_type;
  for (const compress::PlannedTensor& tensor : plan.tensors) {
    Sum& sum = by_type[std::string(kvasir::name_of(tensor.choice.type))];
    ++sum.count;
    sum.bytes += tensor.num_bytes();
    sum.fallbacks += tensor.choice.is_fallback() ? 1 : 0;
  }
  for (const auto& [type, sum] : by_type) {
    const std::string note = sum.fallbacks > 0 ? fmt::format("  {} instead of a type that does not fit their rows", sum.fallbacks) : "";
    print(fmt::format("{:<8} {:>5} tensors {:>10}{}\n", type, sum.count, format_bytes(sum.bytes), note));
  }
}

void print_tensors(const compress::QuantizePlan& plan) {
  for (const compress::PlannedTensor& tensor : plan.tensors) {
    const std::string wanted = tensor.choice.is_fallback() ? fmt::format("  (for {})", kvasir::name_of(tensor.choice.wanted)) : "";
    print(fmt::format("{:<36} {:>5} -> {:<7} {:>10}  {}{}\n", printable(tensor.source.name), kvasir::name_of(tensor.source.dtype),
                      kvasir::name_of(tensor.choice.type), format_bytes(tensor.num_bytes()), compress::name_of(tensor.method), wanted));
  }
}

}  // namespace

bool is_expected(const compress::QuantizePlan& plan, const eval::Divergence& divergence) {
  const double bits = plan.bits_per_weight();
  const auto* const band = std::ranges::find_if(kBands, [&](const Band& each) { return bits >= each.bits_per_weight; });
  return std::isfinite(divergence.kl) && divergence.kl <= band->most_kl;
}

int print_quantize_report(const QuantizeReport& report, bool as_json, int exit_code) {
  if (as_json) return print_json(report, exit_code);
  const compress::QuantizePlan& plan = *report.plan;
  const std::string size = fmt::format("{} ({:.2f} bits a weight, {})", format_bytes(plan.num_bytes), plan.bits_per_weight(), method_of(plan));
  if (report.file == nullptr) {
    print_tensors(plan);
    print(fmt::format("{}: {}\n", plan.recipe.name, size));
    if (report.forecast) {
      print(fmt::format("about {:.0f} s, {} of memory, KL about {:.2g}\n", report.forecast->seconds,
                        format_bytes(report.forecast->peak_bytes), report.forecast->kl));
    }
    return finish_output(exit_code);
  }
  print_types(plan);
  print(fmt::format("{}: {}, {:.1f} s\n", printable_line(report.out), size, report.seconds));
  if (report.verify) {
    print(fmt::format("from its source on {} windows of its own text: KL {:.4f} (worst {:.4f}), same top token {:.1f}%, perplexity x{:.4f}\n",
                      report.verify->num_windows, report.verify->kl, report.verify->kl_worst, 100 * report.verify->top1, report.verify->ratio));
  }
  if (report.is_rejected) print("rejected: files of such types are nearer to their source\n");
  return finish_output(exit_code);
}

}  // namespace kvasir::cli
