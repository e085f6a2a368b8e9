// The cost of guided answers beside unguided ones of the same lengths.
//
//   kvasir_guided_bench MODEL [--batch N] [--rounds N] [--threads N] [--max-tokens N] [--temperature T] [--greedy]
//
// MODEL is a name of the store or a file. A round asks for answers of forms, then for as many free answers of exactly
// these lengths, before and behind: times are processor time of the whole process for each token of an answer, prompts
// of about thirty tokens included. Prints the medians over the rounds: guided is this much faster (above 1) than free,
// and free than itself. One thread by default, since workers that wait for each other take processor time too.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/engine.h"
#include "store/model_store.h"
#include "text/tokenizer.h"

namespace {

using namespace kvasir;

struct Form {
  std::string_view asked;
  std::string_view schema;
};

// As programs ask for them: members that are required, short texts, numbers, choices, lists.
constexpr auto kForms = std::to_array<Form>({
    {"Ann Lee is 34 years old and lives in Oslo, Norway. She is a nurse. As JSON:",
     R"({"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer","minimum":0,"maximum":130},"city":{"type":"string","maxLength":40},"country":{"type":"string","maxLength":40},"profession":{"type":"string","maxLength":40}},"required":["name","age","city","country","profession"],"additionalProperties":false})"},
    {"Order 4711: two lamps at 19.50 each and one table at 120, to be sent by express. As JSON:",
     R"({"type":"object","properties":{"order_number":{"type":"integer","minimum":0},"items":{"type":"array","items":{"type":"object","properties":{"product":{"type":"string","maxLength":30},"quantity":{"type":"integer","minimum":1,"maximum":99},"unit_price":{"type":"number","minimum":0}},"required":["product","quantity","unit_price"],"additionalProperties":false},"minItems":1,"maxItems":3},"shipping":{"enum":["standard","express","pickup"]}},"required":["order_number","items","shipping"],"additionalProperties":false})"},
    {"The review says: great screen, weak battery, would buy again. As JSON:",
     R"({"type":"object","properties":{"sentiment":{"enum":["positive","neutral","negative"]},"rating":{"type":"integer","minimum":1,"maximum":5},"pros":{"type":"array","items":{"type":"string","maxLength":24},"maxItems":3},"cons":{"type":"array","items":{"type":"string","maxLength":24},"maxItems":3},"would_buy_again":{"type":"boolean"}},"required":["sentiment","rating","pros","cons","would_buy_again"],"additionalProperties":false})"},
    {"Meeting of the design team on Friday at ten, room 5, about the new logo. As JSON:",
     R"({"type":"object","properties":{"title":{"type":"string","maxLength":40},"weekday":{"enum":["Monday","Tuesday","Wednesday","Thursday","Friday"]},"start_time":{"type":"string","pattern":"^[0-2][0-9]:[0-5][0-9]$"},"location":{"type":"object","properties":{"building":{"type":"string","maxLength":20},"room":{"type":"integer"}},"required":["building","room"],"additionalProperties":false},"attendees":{"type":"array","items":{"type":"string","maxLength":20},"minItems":1,"maxItems":4}},"required":["title","weekday","start_time","location","attendees"],"additionalProperties":false})"},
    {"Call the weather service for Paris in Celsius, for the next three days. As JSON:",
     R"({"type":"object","properties":{"function":{"const":"get_weather_forecast"},"arguments":{"type":"object","properties":{"location":{"type":"string","maxLength":40},"temperature_unit":{"enum":["celsius","fahrenheit"]},"number_of_days":{"type":"integer","minimum":1,"maximum":14},"include_hourly_forecast":{"type":"boolean"}},"required":["location","temperature_unit","number_of_days","include_hourly_forecast"],"additionalProperties":false}},"required":["function","arguments"],"additionalProperties":false})"},
});

struct Arguments {
  std::string model;
  int batch = 1;
  int rounds = 11;
  int threads = 1;
  int max_tokens = 160;
  float temperature = 1.0f;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--greedy") {
      arguments.temperature = 0.0f;
    } else if (argument.starts_with("--") && i + 1 < argc) {
      const char* value = argv[++i];
      if (argument == "--batch") arguments.batch = std::max(1, std::atoi(value));
      if (argument == "--rounds") arguments.rounds = std::max(1, std::atoi(value));
      if (argument == "--threads") arguments.threads = std::max(1, std::atoi(value));
      if (argument == "--max-tokens") arguments.max_tokens = std::max(1, std::atoi(value));
      if (argument == "--temperature") arguments.temperature = static_cast<float>(std::atof(value));
    } else {
      arguments.model = argument;
    }
  }
  return arguments;
}

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The requests' answers together.
struct Answered {
  double seconds = 0.0;
  std::int64_t num_tokens = 0;
  std::int64_t num_forced = 0;
  std::vector<std::int32_t> lengths;  // by request
};

Answered answer(Engine& engine, std::vector<Request> requests) {
  Answered answered;
  answered.lengths.resize(requests.size());
  std::vector<std::promise<Usage>> done(requests.size());
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto sink = [&promise = done[i]](const RequestOutput& output) {
      if (output.error) std::fprintf(stderr, "kvasir_guided_bench: %s\n", output.error->message.c_str());
      if (output.request_finished) promise.set_value(output.usage);
    };
    submissions.push_back({std::move(requests[i]), std::move(sink)});
  }
  const double begin = process_seconds();
  if (const auto ids = engine.submit(std::move(submissions)); !ids) {
    std::fprintf(stderr, "kvasir_guided_bench: %s\n", ids.error().message.c_str());
    std::exit(1);
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    const Usage usage = done[i].get_future().get();
    answered.lengths[i] = usage.completion_tokens;
    answered.num_tokens += usage.completion_tokens;
    answered.num_forced += usage.forced_tokens;
  }
  answered.seconds = process_seconds() - begin;
  return answered;
}

// Forms in turn, from that of the round on.
std::vector<Request> requests_of(const Engine& engine, const Arguments& arguments, int round) {
  std::vector<Request> requests;
  for (int i = 0; i < arguments.batch; ++i) {
    const Form& form = kForms[static_cast<std::size_t>(round + i) % kForms.size()];
    Request& request = requests.emplace_back();
    request.prompt_token_ids = engine.tokenizer()->encode(form.asked);
    request.use_prefix_cache = false;
    request.sampling.temperature = arguments.temperature;
    request.sampling.seed = static_cast<std::uint64_t>(1000 * round + i);
    request.sampling.max_tokens = arguments.max_tokens;
    request.guide = Guide{.text = std::string(form.schema)};
  }
  return requests;
}

// The same without forms, of the lengths that came.
std::vector<Request> free_requests(std::vector<Request> requests, const std::vector<std::int32_t>& lengths) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].guide.reset();
    requests[i].sampling.ignore_eos = true;
    requests[i].sampling.max_tokens = lengths[i];
  }
  return requests;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(const Arguments& arguments) {
  auto path = store::resolve_model(arguments.model);
  EngineConfig config;
  config.model_path = path ? *path : arguments.model;
  config.num_threads = arguments.threads;
  config.max_num_seqs = arguments.batch;
  auto engine = Engine::load(config);
  if (!engine) {
    std::fprintf(stderr, "kvasir_guided_bench: %s\n", engine.error().message.c_str());
    return 3;
  }
  std::vector<double> faster, spread;
  Answered all, all_free;
  for (int round = -1; round < arguments.rounds; ++round) {  // the first warms caches up and does not count
    std::vector<Request> requests = requests_of(**engine, arguments, std::max(0, round));
    const Answered probe = answer(**engine, requests);
    const std::vector<Request> plain = free_requests(requests, probe.lengths);
    const Answered before = answer(**engine, plain);
    const Answered guided = answer(**engine, std::move(requests));
    const Answered behind = answer(**engine, plain);
    if (round < 0) continue;
    faster.push_back((before.seconds + behind.seconds) / 2.0 / guided.seconds);
    spread.push_back(before.seconds / behind.seconds);
    all.seconds += guided.seconds;
    all.num_tokens += guided.num_tokens;
    all.num_forced += guided.num_forced;
    all_free.seconds += (before.seconds + behind.seconds) / 2.0;
    fmt::print("round {:2}: {} tokens, guided {:.1f} ms, free {:.1f} and {:.1f} ms, ratio {:.3f}\n", round,
               guided.num_tokens, 1e3 * guided.seconds, 1e3 * before.seconds, 1e3 * behind.seconds, faster.back());
  }
  const auto tokens = static_cast<double>(all.num_tokens);
  fmt::print("batch {}, {} threads, {} tokens, {:.1f}% forced: guided {:.3f} ms a token, free {:.3f}; sums {:.3f}\n",
             arguments.batch, arguments.threads, all.num_tokens, 100.0 * static_cast<double>(all.num_forced) / tokens,
             1e3 * all.seconds / tokens, 1e3 * all_free.seconds / tokens, all_free.seconds / all.seconds);
  fmt::print("median of {} rounds: guided is {:.3f} times as fast; free against itself {:.3f} to {:.3f}, median {:.3f}\n",
             arguments.rounds, median(faster), *std::ranges::min_element(spread), *std::ranges::max_element(spread),
             median(spread));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.model.empty()) {
    std::fputs("usage: kvasir_guided_bench MODEL [--batch N] [--rounds N] [--threads N] [--max-tokens N] [--temperature T] "
               "[--greedy]\n", stderr);
    return 2;
  }
  return run(arguments);
}
