#include "trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <utility>

namespace kvasir::schedule {
namespace {

constexpr double kLogSpread = 0.7;

// Milliseconds of "2023-11-16 18:17:03.9799600", the day as one of its month: traces last for hours.
double milliseconds_of(const std::string& text) {
  int day = 0, hour = 0, minute = 0;
  double second = 0.0;
  if (std::sscanf(text.c_str(), "%*d-%*d-%d %d:%d:%lf", &day, &hour, &minute, &second) != 4) return -1.0;
  return 1000.0 * (second + 60.0 * (minute + 60.0 * (hour + 24.0 * day)));
}

void choose_tenants(std::vector<TraceRequest>& requests, const TraceShape& shape, std::mt19937_64& random) {
  std::discrete_distribution<std::int32_t> tenant(shape.tenant_shares.begin(), shape.tenant_shares.end());
  for (TraceRequest& request : requests) request.tenant = tenant(random);
}

// As often as needed, stretched to the rate.
Result<std::vector<TraceRequest>> repeated(std::vector<TraceRequest> rows, const TraceShape& shape) {
  std::erase_if(rows, [&](const TraceRequest& row) {
    return row.num_prompt_tokens <= 0 || row.num_answer_tokens <= 0 ||
           std::int64_t{row.num_prompt_tokens} + row.num_answer_tokens > shape.context_tokens;
  });
  if (rows.size() < 2 || rows.front().at_ms >= rows.back().at_ms) {
    return make_error(ErrorKind::kBadFile, "the trace has fewer than two rows that fit, one after the other");
  }
  const double first_ms = rows.front().at_ms, span_ms = rows.back().at_ms - first_ms;
  const double stretch = 1000.0 * static_cast<double>(rows.size()) / shape.per_second / span_ms;
  std::vector<TraceRequest> requests;
  requests.reserve(static_cast<std::size_t>(shape.num_requests));
  for (std::size_t i = 0; std::ssize(requests) < shape.num_requests; ++i) {
    TraceRequest request = rows[i % rows.size()];
    const auto round = static_cast<double>(i / rows.size());
    request.at_ms = (request.at_ms - first_ms + round * span_ms) * stretch;
    requests.push_back(request);
  }
  std::mt19937_64 random(shape.seed);
  choose_tenants(requests, shape, random);
  return requests;
}

}  // namespace

Result<std::vector<TraceRequest>> read_azure(const TraceShape& shape) {
  std::vector<TraceRequest> rows;
  std::string line;
  std::getline(std::cin, line);  // the names of the columns
  for (std::int64_t number = 2; std::getline(std::cin, line); ++number) {
    const std::size_t comma = line.find(',');
    TraceRequest row{.at_ms = milliseconds_of(line.substr(0, comma))};
    if (comma == std::string::npos || row.at_ms < 0.0 ||
        std::sscanf(line.c_str() + comma, ",%d,%d", &row.num_prompt_tokens, &row.num_answer_tokens) != 2) {
      return make_error(ErrorKind::kBadFile, fmt::format("row {}: not TIMESTAMP,tokens,tokens", number));
    }
    rows.push_back(row);
  }
  return repeated(std::move(rows), shape);
}

Result<std::vector<TraceRequest>> read_mooncake(const TraceShape& shape) {
  std::vector<TraceRequest> rows;
  simdjson::dom::parser parser;
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    simdjson::dom::element row;
    std::int64_t at_ms = 0, num_prompt_tokens = 0, num_answer_tokens = 0;
    if (parser.parse(line).get(row) || row["timestamp"].get(at_ms) ||
        row["input_length"].get(num_prompt_tokens) || row["output_length"].get(num_answer_tokens)) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("row {}: no timestamp, input_length and output_length", number));
    }
    const auto tokens = [](std::int64_t n) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(n, 0, 1 << 30));
    };
    rows.push_back({.at_ms = static_cast<double>(at_ms),
                    .num_prompt_tokens = tokens(num_prompt_tokens),
                    .num_answer_tokens = tokens(num_answer_tokens)});
  }
  return repeated(std::move(rows), shape);
}

std::vector<TraceRequest> draw(const TraceShape& shape) {
  std::mt19937_64 random(shape.seed);
  std::exponential_distribution<double> gap_ms(shape.per_second / 1000.0);
  std::lognormal_distribution<double> prompt(std::log(300.0) - kLogSpread * kLogSpread / 2, kLogSpread);
  std::lognormal_distribution<double> answer(std::log(100.0) - kLogSpread * kLogSpread / 2, kLogSpread);
  const auto tokens = [&](std::lognormal_distribution<double>& length) {
    return std::clamp(static_cast<std::int32_t>(length(random)), 1, shape.context_tokens / 2);
  };
  std::vector<TraceRequest> requests(static_cast<std::size_t>(shape.num_requests));
  double at_ms = 0.0;
  for (TraceRequest& request : requests) {
    at_ms += gap_ms(random);
    request = {.at_ms = at_ms, .num_prompt_tokens = tokens(prompt), .num_answer_tokens = tokens(answer)};
  }
  choose_tenants(requests, shape, random);
  return requests;
}

}  // namespace kvasir::schedule
