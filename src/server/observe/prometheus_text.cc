#include "server/observe/prometheus_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/printable.h"

namespace kvasir::server::observe {

std::string prometheus_label(std::string_view name, std::string_view value) {
  std::string label = fmt::format("{}=\"", name);
  for (const char c : printable_line(value)) {
    if (c == '"' || c == '\\') label += '\\';
    label += c;
  }
  return label + '"';
}

void PrometheusText::begin(std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out_), "# HELP {0}{1} {3}\n# TYPE {0}{1} {2}\n", prefix_, name, type,
                 help);
}

void PrometheusText::value(std::string_view name, std::string_view labels, double value) {
  const std::string braced = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  fmt::format_to(std::back_inserter(out_), "{}{}{} {}\n", prefix_, name, braced, value);
}

void PrometheusText::histogram(std::string_view name, std::string_view labels, std::span<const double> bounds,
                               std::span<const std::int64_t> counts, double sum) {
  auto out = std::back_inserter(out_);
  std::int64_t count = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    count += counts[bucket];
    const std::string bound = bucket < bounds.size() ? fmt::format("{}", bounds[bucket]) : "+Inf";
    fmt::format_to(out, "{}{}_bucket{{{},le=\"{}\"}} {}\n", prefix_, name, labels, bound, count);
  }
  fmt::format_to(out, "{}{}_sum{{{}}} {}\n", prefix_, name, labels, sum);
  fmt::format_to(out, "{}{}_count{{{}}} {}\n", prefix_, name, labels, count);
}

void PrometheusText::histogram(std::string_view name, std::string_view labels, const Histogram& histogram) {
  std::array<std::int64_t, Histogram::kMaxBuckets + 1> counts;
  const std::size_t num_counts = histogram.bounds().size() + 1;
  for (std::size_t bucket = 0; bucket < num_counts; ++bucket) counts[bucket] = histogram.count_in(bucket);
  this->histogram(name, labels, histogram.bounds(), std::span(counts).first(num_counts),
                  histogram.sum_seconds());
}

}  // namespace kvasir::server::observe
