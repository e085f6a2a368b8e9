// How a generation ends that loses its reader: with one line in the log, whenever that is.
#include "server/api/generation.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::server::generation_test {
namespace {

// An engine whose outputs the test gives.
class PassiveEngine final : public Engine {
 public:
  const ModelInfo& model_info() const override { return info_; }
  const text::Tokenizer* tokenizer() const override { return nullptr; }
  const text::ChatTemplate* chat_template() const override { return nullptr; }
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override {
    std::vector<RequestId> ids;
    for (Submission& submission : submissions) {
      had_adapter_hold = submission.request.adapter_hold != nullptr;
      sinks.push_back(std::move(submission.sink));
      ids.push_back(RequestId{sinks.size()});
    }
    return ids;
  }
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override {
    return submit(std::move(submissions));
  }
  std::shared_ptr<void> keep_open() override { return {}; }
  void prepare_guide(const Guide&, std::string_view, std::stop_token stop, GuideSink sink) override {
    guide_stop = std::move(stop);
    guide_sink = std::move(sink);
  }
  void prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) override {
    adapter_name = name;
    adapter_stop = std::move(stop);
    adapter_sink = std::move(sink);
  }
  void cancel(RequestId) override { ++num_cancelled; }
  EngineStats stats() const override { return {}; }
  void inspect(EngineSnapshotSink) override {}
  void drain(std::int64_t) override {}

  std::vector<OutputSink> sinks;
  std::stop_token guide_stop;
  GuideSink guide_sink;
  std::string adapter_name;
  std::stop_token adapter_stop;
  AdapterSink adapter_sink;
  bool had_adapter_hold = false;
  int num_cancelled = 0;

 private:
  ModelInfo info_;
};

// A reader who may take nothing any more; the log as TrackedResponseWriter writes it.
class SlowWriter final : public http::ResponseWriter {
 public:
  const http::Request& request() const override { return request_; }
  Clock::time_point received_at() const override { return {}; }
  void note_generation(const observe::GenerationRecord&) override {
    if (std::exchange(is_log_waiting_, false)) ++num_log_lines;
    awaits_generation_ = false;
  }
  void await_generation() override { awaits_generation_ = true; }
  void add_header(http::Header) override {}
  void post(std::function<void()> task) override { task(); }
  void on_abort(std::function<void()> callback) override { on_abort_ = std::move(callback); }
  void respond(http::Response response) override {
    status = response.status;
    end_stream();
  }
  void leave() {
    is_over_ = true;
    std::exchange(on_abort_, nullptr)();
  }
  void begin_stream() override {}
  void write(std::span<const http::Event>) override {
    if (!is_full || std::exchange(is_over_, true)) return;
    std::exchange(on_abort_, nullptr)();
    is_log_waiting_ = awaits_generation_;
    num_log_lines += awaits_generation_ ? 0 : 1;
  }
  void ping() override {}
  void end_stream() override {
    if (!std::exchange(is_over_, true)) ++num_log_lines;
  }
  void fail_stream() override { end_stream(); }
  void when_sent(std::function<void()>) override {}
  void when_quiet(std::chrono::milliseconds, std::function<void()>) override {}

  bool is_full = false;
  int num_log_lines = 0;
  int status = 0;

 private:
  http::Request request_;
  std::function<void()> on_abort_;
  bool is_over_ = false, awaits_generation_ = false, is_log_waiting_ = false;
};

class OnePiece final : public api::AnswerFormat {
 public:
  std::string whole(const std::vector<api::ChoiceResult>&, const Usage&) override { return {}; }
  void append_events(std::int32_t, const RequestOutput&, const Usage&, http::Events& events) override {
    events.push_back({.data = "piece"});
  }
  void append_last_events(const Usage&, http::Events&) override {}
};

RequestOutput piece(std::optional<FinishReason> reason = {}) {
  RequestOutput output;
  output.token_ids = {5};
  output.finish_reason = reason;
  output.request_finished = reason.has_value();
  return output;
}

class StreamOfAnswer : public testing::Test {
 protected:
  void start(std::optional<Guide> guide = std::nullopt, const std::string& adapter = {}) {
    api::GenerationRequest asked;
    asked.stream = true;
    Request request;
    request.prompt_token_ids = {1, 2, 3};
    request.guide = std::move(guide);
    request.adapter = adapter;
    api::Generation::start(context_, writer_, asked, std::make_unique<OnePiece>(), {request});
  }
  void give(RequestOutput output) { engine_.sinks[0](std::move(output)); }

  PassiveEngine engine_;
  Limits limits_;
  KvParams kv_;
  observe::ServerMetrics metrics_;
  observe::RefusalLog refusals_{[](std::string_view) {}};
  auth::RateLimiter rate_limiter_;
  RequestMemory memory_{0};
  IdSource ids_;
  std::atomic<bool> draining_{false};
  api::ApiContext context_{.engine = engine_,
                           .limits = limits_,
                           .kv = kv_,
                           .metrics = metrics_,
                           .refusals = refusals_,
                           .rate_limiter = rate_limiter_,
                           .memory = memory_,
                           .ids = ids_,
                           .model_name = "m",
                           .fingerprint = "",
                           .draining = draining_};
  std::shared_ptr<SlowWriter> writer_ = std::make_shared<SlowWriter>();
};

class ReaderThatIsCutOff : public StreamOfAnswer {
 protected:
  ReaderThatIsCutOff() {
    start();
    give(piece());
    writer_->is_full = true;
  }
};

TEST_F(ReaderThatIsCutOff, IsLoggedWhenTheEngineHasLetGo) {
  give(piece());
  EXPECT_EQ(engine_.num_cancelled, 1);
  EXPECT_EQ(writer_->num_log_lines, 0);
  give(piece(FinishReason::kCancelled));
  EXPECT_EQ(writer_->num_log_lines, 1);
}

TEST_F(ReaderThatIsCutOff, IsLoggedWhenTheLastPieceIsTooMuch) {
  give(piece(FinishReason::kLength));
  EXPECT_EQ(writer_->num_log_lines, 1);
}

TEST_F(ReaderThatIsCutOff, IsLoggedWhenTheErrorIsTooMuch) {
  RequestOutput failure = piece(FinishReason::kError);
  failure.error = Error{ErrorKind::kBadFile, "x", ""};
  give(std::move(failure));
  EXPECT_EQ(writer_->num_log_lines, 1);
}

class AnswerOfAdapter : public StreamOfAnswer {
 protected:
  AnswerOfAdapter() { start(std::nullopt, "style"); }
};

TEST_F(AnswerOfAdapter, WaitsForItOutsideOfTheEngine) {
  EXPECT_EQ(engine_.adapter_name, "style");
  EXPECT_TRUE(engine_.sinks.empty());
  const auto weights = std::make_shared<int>(1);
  engine_.adapter_sink(AdapterHold(weights));
  ASSERT_EQ(engine_.sinks.size(), 1u);
  EXPECT_TRUE(engine_.had_adapter_hold);
  engine_.adapter_sink = nullptr;
  EXPECT_EQ(weights.use_count(), 1) << "the engine has it now, and nobody else";
  give(piece(FinishReason::kStop));
  EXPECT_EQ(writer_->num_log_lines, 1);
}

TEST_F(AnswerOfAdapter, IsRefusedAsTheLoadWas) {
  engine_.adapter_sink(make_error(ErrorKind::kBadFile, "/adapters/style: there is no such adapter"));
  EXPECT_TRUE(engine_.sinks.empty());
  EXPECT_EQ(writer_->status, 400);
}

TEST_F(AnswerOfAdapter, MayComeAgainWhereNoRoomIsNow) {
  engine_.adapter_sink(make_error(ErrorKind::kUnavailable, "others have it all"));
  EXPECT_EQ(writer_->status, 503);
}

TEST_F(AnswerOfAdapter, IsNotReadForAReaderThatHasLeft) {
  writer_->leave();
  EXPECT_TRUE(engine_.adapter_stop.stop_requested());
  engine_.adapter_sink(make_error(ErrorKind::kCancelled, "the client has left"));
  EXPECT_TRUE(engine_.sinks.empty());
}

TEST_F(StreamOfAnswer, WaitsForItsAdapterAndThenForItsGuide) {
  start(Guide{.text = "{}", .field = "response_format"}, "style");
  EXPECT_FALSE(engine_.guide_sink);
  engine_.adapter_sink(AdapterHold());
  ASSERT_TRUE(engine_.guide_sink);
  EXPECT_TRUE(engine_.sinks.empty());
  engine_.guide_sink(CompiledGuide());
  EXPECT_EQ(engine_.sinks.size(), 1u);
}

class AnswerUnderGuide : public StreamOfAnswer {
 protected:
  AnswerUnderGuide() { start(Guide{.text = "{}", .field = "response_format"}); }
};

TEST_F(AnswerUnderGuide, WaitsForItOutsideOfTheEngine) {
  EXPECT_TRUE(engine_.sinks.empty());
  engine_.guide_sink(CompiledGuide());
  ASSERT_EQ(engine_.sinks.size(), 1u);
  give(piece(FinishReason::kStop));
  EXPECT_EQ(writer_->num_log_lines, 1);
}

TEST_F(AnswerUnderGuide, IsRefusedBeforeItsHead) {
  engine_.guide_sink(make_error(ErrorKind::kUnmet, "response_format: /not", "response_format"));
  EXPECT_EQ(writer_->status, 400);
  EXPECT_TRUE(engine_.sinks.empty());
}

TEST_F(AnswerUnderGuide, IsNotCompiledForAClientThatHasLeft) {
  writer_->leave();
  EXPECT_TRUE(engine_.guide_stop.stop_requested());
  engine_.guide_sink(CompiledGuide());  // it was too late to stop it
  EXPECT_TRUE(engine_.sinks.empty());
}

}  // namespace
}  // namespace kvasir::server::generation_test
