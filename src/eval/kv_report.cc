#include "eval/kv_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace kvasir::eval {
namespace {

constexpr double kWidth = 640, kHeight = 320, kMargin = 50;
constexpr const char* kColours[] = {"#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#7d4e99", "#00798c",
                                    "#a05a2c", "#555555", "#e377c2", "#17becf", "#8c8c00", "#3d348b"};
constexpr std::string_view kHead = R"(<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>KV policies</title><style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}.bad{color:#b00020}
text{font:12px system-ui,sans-serif;fill:#444}
</style></head><body>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Digits behind the point by which labels that lie `step` apart differ.
int digits_apart(double step) { return std::clamp(static_cast<int>(std::ceil(1 - std::log10(step))), 0, 12); }

struct Point {
  double x, y;
};

// y from its least to its greatest value; x is a share.
class Chart {
 public:
  enum class Scale : std::uint8_t { kLinear, kDoublings };  // of both; doublings: of shares from 2^-15 to 1
  Chart(std::string x_title, std::string y_title, Scale scale = Scale::kLinear)
      : x_title_(std::move(x_title)), y_title_(std::move(y_title)), scale_(scale) {}

  void add(const std::string& name, Point point) {
    series_[name].push_back({on_scale(point.x), scale_ == Scale::kLinear ? point.y : on_scale(point.y)});
  }

  std::string svg() const {
    double low = 1e30, high = -1e30;
    for (const auto& [name, points] : series_) {
      for (const Point& point : points) {
        low = std::min(low, point.y);
        high = std::max(high, point.y);
      }
    }
    if (high - low < 1e-6) high = low + 1e-3;
    const auto x = [](double share) { return kMargin + share * (kWidth - 2 * kMargin); };
    const auto y = [&](double value) {
      return kHeight - kMargin - (value - low) / (high - low) * (kHeight - 2 * kMargin);
    };
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">", kWidth + 160, kHeight);
    const int digits = digits_apart((high - low) / 5);
    for (int i = 0; i <= 5; ++i) {
      const double value = low + (high - low) * i / 5;
      out += fmt::format(
          "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#eee\"/>"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.3g}%</text>",
          kMargin, kWidth - kMargin, y(value), y(value), kMargin - 6, y(value) + 4,
          scale_ == Scale::kLinear ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.3g}", of_scale(value)),
          x(i / 5.0), kHeight - kMargin + 18,
          100 * of_scale(i / 5.0));
    }
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"{}\" y=\"20\">{}</text>",
        kWidth / 2, kHeight - 10, x_title_, kMargin, y_title_);
    std::size_t index = 0;
    for (const auto& [name, points] : series_) {
      const char* colour = kColours[index % std::size(kColours)];
      std::vector<Point> sorted = points;
      std::ranges::sort(sorted, {}, &Point::x);
      std::string path;
      for (const Point& point : sorted) {
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", x(point.x), y(point.y));
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x(point.x),
                           y(point.y), colour);
      }
      out += fmt::format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>"
          "<text x=\"{}\" y=\"{}\" style=\"fill:{}\">{}</text>",
          path, colour, kWidth - kMargin + 16, kMargin + 16 * static_cast<double>(index), colour,
          escaped(name));
      ++index;
    }
    return out + "</svg>\n";
  }

 private:
  static constexpr double kDoublings = 15;
  double on_scale(double share) const {
    if (scale_ == Scale::kLinear) return share;
    return std::clamp(1.0 + std::log2(std::max(share, 1e-9)) / kDoublings, 0.0, 1.0);
  }
  double of_scale(double place) const {
    return scale_ == Scale::kLinear ? place : std::exp2((place - 1.0) * kDoublings);
  }

  const std::string x_title_, y_title_;
  const Scale scale_;
  std::map<std::string, std::vector<Point>> series_;
};

std::string text_table(std::span<const KvSummary> summaries) {
  std::string out =
      "<table><tr><th>policy</th><th>budget</th><th>bytes</th><th>peak</th><th>ratio</th><th>95% "
      "interval</th>"
      "<th>worst window</th><th>KL</th><th>top-1</th></tr>\n";
  for (const KvSummary& s : summaries) {
    out += fmt::format(
        "<tr><td>{}</td><td>{:.1f}%</td><td>{:.1f}%</td><td>{:.1f}%</td><td>{:.4f}</td><td>{:.4f} to "
        "{:.4f}</td>"
        "<td>{:.4f}</td><td>{:.2e}</td><td>{:.2f}%</td></tr>\n",
        escaped(s.policy), 100 * s.budget, 100 * s.bytes_share, 100 * s.bytes_share_peak, s.ratio,
        s.ratio_low, s.ratio_high, s.worst_ratio, s.kl, 100 * s.top1);
  }
  return out + "</table>\n";
}

// Rows of policy and budget, a column per depth: "+" found, "-" lost, nothing where the full cache has none.
std::string needle_table(std::span<const KvRow> rows, const KvSummary& like) {
  std::map<std::pair<std::string, double>, std::map<std::int32_t, char>> grid;
  for (const KvRow& row : rows) {
    if (row.suite != like.suite || row.ctx_tokens != like.ctx_tokens) continue;
    grid[{row.policy, -row.budget}][row.item] = row.full_found == 0 ? ' ' : row.found != 0 ? '+' : '-';
  }
  std::string out = "<table><tr><th>policy</th><th>budget</th><th>found by depth, 0 to 100%</th></tr>\n";
  for (const auto& [key, depths] : grid) {
    std::string cells;
    for (const auto& [depth, mark] : depths) cells += mark;
    out += fmt::format("<tr><td>{}</td><td>{:.1f}%</td><td><pre style=\"margin:0\">{}</pre></td></tr>\n",
                       escaped(key.first), -100 * key.second, cells);
  }
  return out + "</table>\n";
}

std::string forecast_section(std::span<const ForecastPoint> forecasts) {
  Chart chart("attention forecast for a cell, per query", "attention that it got", Chart::Scale::kDoublings);
  std::string rows;
  for (const ForecastPoint& point : forecasts) {
    chart.add(point.name, {point.forecast, point.realised});
    rows += fmt::format("<tr><td>{}</td><td>{:.4f}%</td><td>{:.4f}%</td><td>{}</td></tr>\n",
                        escaped(point.name), 100 * point.forecast, 100 * point.realised, point.num_cells);
  }
  return "<h2>forecast and realised attention</h2>\n" + chart.svg() +
         "<table><tr><th>policy</th><th>forecast</th><th>realised</th><th>cells</th></tr>\n" + rows +
         "</table>\n";
}

}  // namespace

std::string kv_report(std::string_view model, std::span<const KvRow> rows,
                      std::span<const KvSummary> summaries, std::span<const KvClaim> claims,
                      std::span<const ForecastPoint> forecasts) {
  std::string out(kHead);
  out += fmt::format("<h1>KV policies on {}</h1>\n", escaped(model));
  for (const KvClaim& claim : claims) {
    out += fmt::format("<div{}>{} {}</div>\n", claim.holds ? "" : " class=\"bad\"",
                       claim.holds ? "holds:" : "FAILS:", escaped(claim.text));
  }
  for (auto begin = summaries.begin(); begin != summaries.end();) {
    const auto end = std::find_if(begin, summaries.end(), [&](const KvSummary& s) {
      return s.suite != begin->suite || s.ctx_tokens != begin->ctx_tokens;
    });
    const std::span<const KvSummary> part(begin, end);
    const bool is_text = begin->is_text();
    out += fmt::format("<h2>{} at {} tokens</h2>\n", escaped(begin->suite), begin->ctx_tokens);
    Chart chart("bytes of KV, of f16",
                is_text ? "perplexity, of the full cache's" : "needles found, of the full cache's");
    for (const KvSummary& s : part) {
      const double found = s.full_found == 0 ? 1.0 : static_cast<double>(s.still_found) / s.full_found;
      chart.add(s.policy, {std::min(1.0, s.bytes_share), is_text ? s.ratio : found});
    }
    out += chart.svg() + (is_text ? text_table(part) : needle_table(rows, *begin));
    begin = end;
  }
  if (!forecasts.empty()) out += forecast_section(forecasts);
  return out + "</body></html>\n";
}

}  // namespace kvasir::eval
