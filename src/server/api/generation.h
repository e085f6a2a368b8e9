// One answer in the making: the engine's requests behind it, and the writer it goes to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "kvasir/engine.h"
#include "server/api/answer_format.h"
#include "server/api/api_context.h"
#include "server/api/best_of.h"
#include "server/api/search_end.h"
#include "server/api_error.h"
#include "server/http/response_writer.h"
#include "server/observe/metrics.h"

namespace kvasir::server::api {

// The head of a stream goes out with its first output, or after a second of prefill with a ping: until then
// an error still gets a status of its own. A client that leaves cancels all requests of the answer, and one
// request that fails ends the whole answer.
//
// Thread safety: the engine's sinks only post; everything else runs on the writer's executor.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    Engine& engine;  // these outlive the generation
    observe::ModelTimes& times;
    observe::RefusalLog& refusals;
    auth::RateLimiter& rate_limiter;
    std::string model_name;
    std::shared_ptr<http::ResponseWriter> writer;
    std::unique_ptr<AnswerFormat> format;
    std::int32_t choices_per_prompt = 1;  // that are drawn
    std::int32_t kept_per_prompt = 1;     // of them, as answers
    std::optional<search::AnswerForm> vote = {};  // by which they are chosen
    bool is_search = false;       // the client has a search of its own words, which may end early
    bool has_beams = false;
    SearchLimits search_limits = {};
    std::int32_t max_search_tokens = 0;  // of each candidate, where the limits leave it less than it asked for
    bool stream = false;
    bool has_kv_budget = false;     // the client set one, and is told in a header where it is not kept
    bool keep_stop_token = false;   // the token that ended a choice counts among its logprobs
    std::size_t max_in_flight = 0;  // requests in the engine at once, the next when one ends; 0: all
    RequestMemory::Share memory;    // of what is collected before it is sent
    std::shared_ptr<const void> model = writer->kept();  // which stays loaded until the engine has let go
  };

  // Submits one request a prompt and answers the request, now or later, in the form that `asked` wants.
  static void start(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                    const GenerationRequest& asked, std::unique_ptr<AnswerFormat> format,
                    std::vector<Request> requests);
  // The same for requests that generate nothing, in one piece. There may be more than the engine's queue
  // holds: as many are in it at once as it has room for, a few at most.
  static void start_scoring(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                            std::unique_ptr<AnswerFormat> format, std::vector<Request> requests);

  explicit Generation(Parts parts) : parts_(std::move(parts)) {}

 private:
  using Clock = http::ResponseWriter::Clock;

  // Counts the requests against the limits of the request's tenant first, and what they will be answered
  // against the memory there is for requests.
  static void begin(const ApiContext& context, Parts parts, std::vector<Request> requests);
  void submit(std::vector<Request> requests);
  void prepare_adapter();
  void on_adapter(Result<AdapterHold> hold);
  void prepare_guide();
  void on_guide(Result<CompiledGuide> compiled);
  void begin_submitting();
  void submit_waiting();
  void on_output(std::size_t prompt, RequestOutput output);
  void observe(std::size_t choice, const RequestOutput& output);
  void observe_first_token(const RequestOutput& output, Clock::time_point now);
  void observe_flush();
  void collect(std::size_t choice, RequestOutput output);
  void end_search();
  void end_aborted(std::size_t prompt, const RequestOutput& output);
  void send_events(std::span<const http::Event> events);
  void ping();
  void begin_stream();
  void warn_of_budget();
  void finish();
  void append_end(http::Events& events);
  void note_end();
  void fail(const ApiError& error);
  // The same, as the engine says it.
  void fail_with(Error error);
  void give_back();
  void cancel_all();
  Usage total_usage() const;
  RequestCost total_cost() const;
  void record();

  Parts parts_;
  std::vector<Request> requests_;  // of one adapter and under one guide, or none
  std::stop_source preparation_stop_;  // of their adapter and their guide
  std::size_t num_submitted_ = 0, num_in_flight_ = 0;
  std::shared_ptr<void> more_;      // while some are not submitted
  std::vector<RequestId> ids_;      // of those submitted
  std::vector<Usage> usages_;       // one a prompt, so far
  std::vector<RequestCost> costs_;  // likewise
  Clock::time_point submitted_at_;
  std::size_t num_unfinished_ = 0;
  bool is_over_ = false;
  bool is_aborted_ = false;  // over, but the engine still has to say what it took
  bool stream_begun_ = false;

  BestOf best_of_;
  std::optional<SearchEnd> search_end_;  // where some of the candidates may not be needed
  std::vector<std::optional<FinishReason>> finish_reasons_;   // of each choice, once it has ended
  std::vector<ChoiceResult> choices_;                         // of an answer in one piece
  std::vector<std::optional<Clock::time_point>> last_token_;  // of each choice
  std::optional<Clock::time_point> first_token_;
};

}  // namespace kvasir::server::api
