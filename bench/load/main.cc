// Plays a workload against a server with an OpenAI API and writes down when each piece of each answer came.
// One thread; its processor time is part of the report, because client and server share the machine.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>

#include "base/json_writer.h"
#include "streamed_request.h"
#include "workload.h"

namespace kvasir::load {
namespace {

struct Options {
  std::uint16_t port = 0;
  std::string model;
  std::string workload;
  std::string out;
  int users = 0;
  int retries = 0;
  double time_scale = 1.0;
};

std::string line_of(std::size_t index, int num_retries, const RequestOutcome& outcome) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("index", index).member("planned_ms", outcome.planned_ms);
  json.member("sent_ms", outcome.sent_ms).member("status_ms", outcome.status_ms);
  json.member("end_ms", outcome.end_ms).member("status", outcome.status);
  json.member("tokens", outcome.num_tokens).member("cached_tokens", outcome.num_cached_tokens);
  json.member("retries", num_retries);
  if (outcome.retry_after_s) json.member("retry_after_s", *outcome.retry_after_s);
  if (!outcome.error.empty()) json.member("error", outcome.error);
  json.key("token_ms").begin_array();
  for (const double ms : outcome.token_ms) json.raw(fmt::format("{:.2f}", ms));
  json.end_array().end_object();
  return text;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + t.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Either so many users, each of whom sends when the last answer has ended, or each request at its time.
class Load {
 public:
  Load(const Options& options, std::vector<PlannedRequest> requests, std::ofstream out)
      : options_(options),
        target_{{boost::asio::ip::address_v4::loopback(), options.port}, options.model},
        requests_(std::move(requests)),
        out_(std::move(out)) {}

  void run() {
    start_ = Clock::now();
    const std::size_t num_users = std::min(requests_.size(), static_cast<std::size_t>(options_.users));
    for (std::size_t user = 0; user < num_users; ++user) send_next();
    if (options_.users == 0) schedule_next();
    io_.run();
  }

  int num_failed() const { return num_failed_; }

 private:
  double now_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

  void send(std::size_t index, double planned_ms, int num_retries = 0) {
    const auto done = [this, index, planned_ms, num_retries](const RequestOutcome& outcome) {
      if (outcome.retry_after_s && num_retries < options_.retries) {
        return send_later(index, planned_ms, num_retries + 1, std::chrono::seconds(*outcome.retry_after_s));
      }
      out_ << line_of(index, num_retries, outcome) << '\n';
      num_failed_ += outcome.error.empty() ? 0 : 1;
      if (options_.users > 0) send_next();
    };
    std::make_shared<StreamedRequest>(io_, target_, requests_[index], start_, planned_ms, done)->send();
  }

  // Tries a refused request again, as SDKs do; its time counts from the first try.
  void send_later(std::size_t index, double planned_ms, int num_retries, std::chrono::seconds wait) {
    const auto timer = std::make_shared<boost::asio::steady_timer>(io_, wait);
    timer->async_wait([this, index, planned_ms, num_retries, timer](const boost::system::error_code&) {
      send(index, planned_ms, num_retries);
    });
  }

  void send_next() {
    if (next_ < requests_.size()) send(next_++, now_ms());
  }

  // Late is late: the time counts from when it should have been sent.
  void schedule_next() {
    if (next_ == requests_.size()) return;
    const double at_ms = requests_[next_].at_ms * options_.time_scale;
    timer_.expires_at(start_ + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double, std::milli>(at_ms)));
    timer_.async_wait([this, at_ms](const boost::system::error_code&) {
      send(next_++, at_ms);
      schedule_next();
    });
  }

  const Options& options_;
  const Target target_;
  const std::vector<PlannedRequest> requests_;
  std::ofstream out_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_{io_};
  Clock::time_point start_;
  std::size_t next_ = 0;
  int num_failed_ = 0;
};

int play(const Options& options) {
  auto requests = read_workload(options.workload);
  if (!requests) {
    fmt::print(stderr, "kvasir_load: {}\n", requests.error().message);
    return 3;
  }
  std::ofstream out(options.out);
  if (!out) {
    fmt::print(stderr, "kvasir_load: {}: cannot be written\n", options.out);
    return 5;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);  // a connection for each request that is under way
  const std::size_t num_requests = requests->size();
  const double cpu_before = cpu_seconds();
  const auto start = Clock::now();
  Load load(options, *std::move(requests), std::move(out));
  load.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::string report;
  JsonWriter json(report);
  json.begin_object().member("requests", num_requests).member("failed", load.num_failed());
  json.member("seconds", seconds).member("client_cpu_seconds", cpu_seconds() - cpu_before).end_object();
  fmt::print("{}\n", report);
  return 0;
}

}  // namespace
}  // namespace kvasir::load

int main(int argc, char** argv) {
  kvasir::load::Options options;
  CLI::App app(
      "Plays a workload against a server on this machine; compare.py makes workloads and reports");
  app.add_option("--port", options.port, "Of the server, on 127.0.0.1")->required();
  app.add_option("--model", options.model, "Name of the model, as the server has it")->required();
  app.add_option("--workload", options.workload, "Requests, a JSON object a line")->required();
  app.add_option("--out", options.out, "What came, a JSON object a line, in the order of the ends")
      ->required();
  app.add_option("--users", options.users,
                 "Send so many at once, each when the last has ended (0: at their times)");
  app.add_option("--retries", options.retries,
                 "Try again so often, after the answer's Retry-After, when it has one")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--time-scale", options.time_scale, "Times are multiplied by it")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return kvasir::load::play(options);
}
