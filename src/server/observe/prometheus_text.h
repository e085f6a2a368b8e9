// Writes metrics in the Prometheus text format, version 0.0.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/observe/histogram.h"

namespace kvasir::server::observe {

// One `name="value"` pair. The value is escaped: control characters and bytes that are no UTF-8 become \xNN,
// and what is beyond printable_line()'s length is cut.
std::string prometheus_label(std::string_view name, std::string_view value);

// Appends to `out`; all names get the prefix. Labels are what stands between the braces.
class PrometheusText {
 public:
  PrometheusText(std::string& out, std::string_view prefix) : out_(out), prefix_(prefix) {}

  void begin(std::string_view name, std::string_view type, std::string_view help);
  void value(std::string_view name, std::string_view labels, double value);
  // Buckets, sum and count, behind a begin() of type histogram. Of `counts` there is one more than of bounds.
  void histogram(std::string_view name, std::string_view labels, std::span<const double> bounds,
                 std::span<const std::int64_t> counts, double sum);
  void histogram(std::string_view name, std::string_view labels, const Histogram& histogram);

 private:
  std::string& out_;
  const std::string prefix_;
};

}  // namespace kvasir::server::observe
