#include "server/api/batches/batch_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <ctime>
#include <exception>
#include <utility>

#include "server/api/files/stored_file.h"
#include "server/api/json_input.h"
#include "server/api/model_dispatch.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr std::int64_t kMaxBatchLines = 50'000;
constexpr std::size_t kMaxShownErrors = 20;
constexpr std::size_t kMaxBatchesAtOnce = 8;
constexpr std::int32_t kMaxLinesATurn = 256;  // that only are recorded, before others have their turn

std::int64_t now_s() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::chrono::seconds retry_after(const http::Response& response) {
  int seconds = 2;
  for (const http::Header& header : response.headers) {
    if (header.name != "Retry-After") continue;
    std::from_chars(header.value.data(), header.value.data() + header.value.size(), seconds);
  }
  return std::chrono::seconds(std::clamp(seconds, 1, 60));
}

FileFacts output_facts(const Batch& batch, bool is_success, std::int64_t num_bytes) {
  return {.id = is_success ? batch.output_file_id() : batch.error_file_id(),
          .name = fmt::format("{}_{}.jsonl", batch.id, is_success ? "output" : "error"),
          .purpose = kBatchOutputPurpose,
          .bytes = num_bytes,
          .created_s = now_s()};
}

// Appends a line to a file of the batch, which its first line makes, and stores what the batch has become.
Status record_line(stored::ObjectStore& store, const Batch& batch, bool is_success, const std::string& custom_id,
                   const std::string& line) {
  const FileFacts facts = output_facts(batch, is_success, 0);
  KVASIR_TRY(const auto found, store.find(stored::Kind::kFile, batch.tenant.key_id, facts.id));
  if (!found) {
    stored::Object file = file_object(facts, batch.tenant.key_id);
    file.is_pinned = true;
    KVASIR_CHECKED(store.add(file, {}));
  }
  KVASIR_CHECKED(store.append(facts.id, {.name = custom_id, .bytes = line}));
  const auto updated = store.update(batch.id, batch_json(batch), true);
  if (!updated) return std::unexpected(updated.error());
  return {};
}

// The batch has ended: its files are as any other, unless another batch needs its input.
void store_end(stored::ObjectStore& store, const Batch& batch, bool needs_input) {
  for (const bool is_success : {true, false}) {
    if (!(is_success ? batch.has_output : batch.has_errors)) continue;
    const std::string id = is_success ? batch.output_file_id() : batch.error_file_id();
    const auto num_bytes = store.content_bytes(id);
    static_cast<void>(store.update(id, file_json(output_facts(batch, is_success, num_bytes.value_or(0))), false));
  }
  if (!needs_input) static_cast<void>(store.pin(batch.input_file_id, false));
  static_cast<void>(store.update(batch.id, batch_json(batch), false));
}

}  // namespace

void BatchRunner::post(std::function<void()> task) {
  boost::asio::post(executor_, [this, task = std::move(task)] {
    try {
      task();
    } catch (const std::exception& error) {
      // Out of memory: the next tick tries again.
      context_.refusals.note(fmt::format("a batch could not go on: {}", error.what()),
                             observe::RefusalLog::Clock::now());
    }
  });
}

void BatchRunner::add(Batch batch) {
  auto run = std::make_shared<Run>(Run{.batch = std::move(batch)});
  if (run->batch.status == "cancelling") run->ending = "cancelled";
  post([this, run] {
    runs_.push_back(run);
    pump();
  });
}

void BatchRunner::cancel(const std::string& id, std::int64_t cancelled_at_s) {
  post([this, id, cancelled_at_s] {
    const auto found = std::ranges::find(runs_, id, [](const RunPtr& run) { return run->batch.id; });
    if (found == runs_.end()) return;
    const RunPtr run = *found;
    run->batch.status = "cancelling";
    run->batch.times["cancelling_at"] = cancelled_at_s;
    end_early(run, "cancelled");
    pump();
  });
}

void BatchRunner::fail_where(std::function<bool(const auth::Tenant& tenant)> is_meant, BatchError error) {
  post([this, is_meant = std::move(is_meant), error = std::move(error)] {
    for (const RunPtr& run : std::vector(runs_)) {
      if (is_meant(run->batch.tenant)) fail(run, error);
    }
  });
}

void BatchRunner::resume() {
  store_of(context_).post([this](stored::ObjectStore& store) {
    const auto unfinished = store.pinned(stored::Kind::kBatch);
    if (!unfinished) return;
    for (const stored::Object& object : *unfinished) {
      if (auto batch = batch_of(object, context_.limits)) add(*std::move(batch));
    }
  });
}

void BatchRunner::stop() {
  if (is_stopping_.exchange(true)) return;
  post([this] {
    tick_.cancel();
    for (const RunPtr& run : runs_) {
      for (const auto& [id, writer] : run->asked) writer->abort();
    }
  });
}

void BatchRunner::keep_ticking() {
  if (is_ticking_ || is_stopping_ || runs_.empty()) return;
  is_ticking_ = true;
  tick_.expires_after(kTick);
  tick_.async_wait([this](const boost::system::error_code& error) {
    is_ticking_ = false;
    if (!error) post([this] { pump(); });
  });
}

void BatchRunner::pump() {
  if (is_stopping_) return;
  for (const RunPtr& run : std::vector(runs_)) {
    if (run->ending.empty() && now_s() >= run->batch.expires_s()) end_early(run, "expired");
  }
  std::erase_if(runs_, [](const RunPtr& run) { return run->stage == Stage::kEnded; });
  start_waiting();
  std::size_t num_idle = 0;
  std::int32_t num_recorded = 0;
  while (num_idle < runs_.size() && num_asked_ < context_.max_batch_lines && num_recorded < kMaxLinesATurn) {
    const RunPtr run = runs_[turn_++ % runs_.size()];
    num_idle = ask_next(run) ? 0 : num_idle + 1;
    if (!run->ending.empty()) ++num_recorded;
  }
  if (num_recorded == kMaxLinesATurn) post([this] { pump(); });
  std::erase_if(runs_, [](const RunPtr& run) { return run->stage == Stage::kEnded; });
  keep_ticking();
}

// One batch of each key, so that a key with many does not keep others out.
void BatchRunner::start_waiting() {
  std::set<std::string> owners;
  for (const RunPtr& run : runs_) {
    if (run->stage != Stage::kWaiting) owners.insert(run->batch.tenant.key_id);
  }
  for (const RunPtr& run : runs_) {
    if (run->stage != Stage::kWaiting || owners.size() >= kMaxBatchesAtOnce) continue;
    if (owners.insert(run->batch.tenant.key_id).second) load(run);
  }
}

// The lines that were answered before a restart.
void BatchRunner::load(const RunPtr& run) {
  run->stage = Stage::kLoading;
  store_of(context_).post([this, run, batch = run->batch](stored::ObjectStore& store) {
    const auto output = store.part_names(batch.output_file_id()), errors = store.part_names(batch.error_file_id());
    post([this, run, output = output.value_or(std::vector<std::string>()),
          errors = errors.value_or(std::vector<std::string>())] {
      if (run->stage == Stage::kEnded) return;
      Batch& loaded = run->batch;
      loaded.num_completed = std::ssize(output);
      loaded.num_failed = std::ssize(errors);
      loaded.has_output = !output.empty();
      loaded.has_errors = !errors.empty();
      run->stage = Stage::kRunning;
      if (loaded.status == "validating") {
        run->stage = Stage::kValidating;
      } else {
        run->ids.insert(output.begin(), output.end());
        run->ids.insert(errors.begin(), errors.end());
      }
      run->stage == Stage::kValidating ? read_more(run) : pump();
    });
  });
}

void BatchRunner::read_more(const RunPtr& run) {
  if (std::exchange(run->is_reading, true)) return;
  store_of(context_).post(
      [this, run, id = run->batch.input_file_id, part = run->next_part](stored::ObjectStore& store) {
        const auto read = store.read(id, part, kFilePartBytes);
        post([this, run, read] {
          run->is_reading = false;
          if (!read) return fail(run, {.code = "file_error", .message = read.error().message});
          run->feed.push(read->bytes);
          run->next_part = read->next;
          if (read->is_last) run->feed.end();
          run->stage == Stage::kValidating ? validate(run) : pump();
        });
      });
}

void BatchRunner::check_line(Run& run, const std::string& line) {
  Batch& batch = run.batch;
  ++batch.num_total;
  std::optional<BatchError> wrong;
  const auto read = parse_batch_line(line, batch.endpoint, context_.limits);
  if (!read) {
    const ApiError& error = read.error();
    wrong = {.code = error.code.empty() ? "invalid_json_line" : error.code, .message = error.message};
  } else if (!run.ids.insert(read->custom_id).second) {
    wrong = {.code = "duplicate_custom_id", .message = "another line has this custom_id"};
  }
  if (!wrong || batch.errors.size() == kMaxShownErrors) return;
  wrong->line = run.feed.number();
  batch.errors.push_back(*std::move(wrong));
}

void BatchRunner::validate(const RunPtr& run) {
  Batch& batch = run->batch;
  while (const auto line = run->feed.next()) check_line(*run, *line);
  if (batch.num_total > kMaxBatchLines) {
    return fail(run, {.code = "too_many_lines",
                      .message = fmt::format("more than {} lines, the limit of a batch", kMaxBatchLines)});
  }
  if (run->ending == "cancelled") return finish(run, run->ending);
  if (!run->feed.has_ended()) return read_more(run);
  if (batch.num_total == 0) return fail(run, {.code = "empty_file", .message = "the file has no line"});
  if (!batch.errors.empty()) return fail(run, batch.errors.front());
  run->ids.clear();
  run->feed = {};
  run->next_part = 0;
  run->stage = Stage::kRunning;
  batch.status = "in_progress";
  batch.times["in_progress_at"] = now_s();
  store_of(context_).post([batch](stored::ObjectStore& store) {
    static_cast<void>(store.update(batch.id, batch_json(batch), true));
  });
  pump();
}

std::optional<BatchLine> BatchRunner::next_line(const RunPtr& run) {
  if (!run->again.empty()) {
    BatchLine line = std::move(run->again.front());
    run->again.pop_front();
    return line;
  }
  while (const auto text = run->feed.next()) {
    auto line = parse_batch_line(*text, run->batch.endpoint, context_.limits);
    if (line && !run->ids.contains(line->custom_id)) return *std::move(line);
  }
  return std::nullopt;
}

bool BatchRunner::ask_next(const RunPtr& run) {
  if (run->stage != Stage::kRunning) return false;
  if (run->ending == "cancelled") {
    if (run->asked.empty()) finish(run, run->ending);
    return false;
  }
  const bool has_expired = run->ending == "expired";
  if (!has_expired && Clock::now() < run->not_before) return false;
  if (auto line = next_line(run)) {
    if (!has_expired) {
      ask(run, *std::move(line));
      return true;
    }
    record(run, line->custom_id, false,
           unasked_line(context_.ids.next("batch_req_"), line->custom_id, "batch_expired",
                        "the batch's completion window ended before this line was answered"));
    return true;
  }
  if (!run->feed.has_ended()) {
    read_more(run);
  } else if (run->asked.empty()) {
    finish(run, has_expired ? run->ending : "completed");
  }
  return false;
}

void BatchRunner::ask(const RunPtr& run, BatchLine line) {
  // The memory of a line is planned as that of a body is.
  const auto memory = std::make_shared<RequestMemory::Share>(context_.memory, run->batch.tenant.name);
  if (const ApiStatus fits = memory->resize(body_memory_bytes(line.body)); !fits) {
    if (fits.error().status != 503) return record_refusal(run, line, fits.error());
    run->again.push_back(std::move(line));
    run->not_before = Clock::now() + kTick;
    return;
  }
  ++num_asked_;
  http::Request request{.method = "POST",
                        .path = run->batch.endpoint,
                        .headers = {{"Content-Type", "application/json"}},
                        .body = line.body,
                        .tenant = run->batch.tenant};
  auto writer = std::make_shared<BackgroundWriter>(
      executor_, std::move(request),
      [this, run, line, memory](const http::Response* response) { on_answered(run, line, response); }, &context_.metrics);
  run->asked[line.custom_id] = writer;
  writer->post([this, writer, endpoint = batch_endpoint(run->batch.endpoint)] {
    if (!writer->is_over()) answer_with_model(context_, *endpoint, writer, {});
  });
}

void BatchRunner::record_refusal(const RunPtr& run, const BatchLine& line, const ApiError& error) {
  record(run, line.custom_id, false,
         answered_line(context_.ids.next("batch_req_"), line.custom_id, error.status, context_.ids.next("req_"),
                       error_json(error, ErrorShape::kOpenAi)));
}

void BatchRunner::on_answered(const RunPtr& run, const BatchLine& line, const http::Response* response) {
  --num_asked_;
  run->asked.erase(line.custom_id);
  const bool is_refused = response != nullptr && (response->status == 429 || response->status == 503);
  if (run->stage == Stage::kEnded) return;
  if (response == nullptr || is_refused) {
    run->again.push_back(line);
    if (is_refused) run->not_before = Clock::now() + retry_after(*response);
  } else {
    const bool is_success = response->status < 400;
    record(run, line.custom_id, is_success,
           answered_line(context_.ids.next("batch_req_"), line.custom_id, response->status,
                         context_.ids.next("req_"), response->body));
  }
  post([this] { pump(); });
}

void BatchRunner::record(const RunPtr& run, const std::string& custom_id, bool is_success, std::string line) {
  Batch& batch = run->batch;
  ++(is_success ? batch.num_completed : batch.num_failed);
  (is_success ? batch.has_output : batch.has_errors) = true;
  store_of(context_).post([this, run, batch, is_success, custom_id, line = std::move(line)](stored::ObjectStore& store) {
    const Status recorded = record_line(store, batch, is_success, custom_id, line);
    if (recorded) return;
    post([this, run, message = recorded.error().message] {
      fail(run, {.code = "store_error", .message = "an answer could not be stored: " + message});
    });
  });
}

// Lines under way end, and the batch with the last of them.
void BatchRunner::end_early(const RunPtr& run, std::string ending) {
  if (!run->ending.empty() || run->stage == Stage::kEnded) return;
  run->ending = std::move(ending);
  for (const auto& [id, writer] : run->asked) writer->abort();
  if (run->stage == Stage::kWaiting && run->ending == "cancelled") finish(run, run->ending);
}

void BatchRunner::fail(const RunPtr& run, BatchError error) {
  if (run->stage == Stage::kEnded) return;
  if (run->batch.errors.empty()) run->batch.errors.push_back(std::move(error));
  finish(run, "failed");
  for (const auto& [id, writer] : run->asked) writer->abort();
}

void BatchRunner::finish(const RunPtr& run, std::string status) {
  if (run->stage == Stage::kEnded) return;
  run->stage = Stage::kEnded;
  Batch& batch = run->batch;
  if (status == "completed") batch.times["finalizing_at"] = now_s();
  batch.times[status + "_at"] = now_s();
  batch.status = std::move(status);
  const bool needs_input = std::ranges::any_of(runs_, [&](const RunPtr& other) {
    return other->stage != Stage::kEnded && other->batch.input_file_id == batch.input_file_id;
  });
  store_of(context_).post([batch, needs_input](stored::ObjectStore& store) { store_end(store, batch, needs_input); });
  post([this] { pump(); });
}

}  // namespace kvasir::server::api
