#include "server/api/ollama/pull_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/api/ollama/json_lines.h"

namespace kvasir::server::api {
namespace {

std::string line_of(std::string_view status) {
  std::string line;
  JsonWriter(line).begin_object().member("status", status).end_object();
  return line;
}

// Ollama's programs show a bar for what is pulled by its digest. The name stands for that of the whole model.
std::string line_of(const std::string& model, const ModelLibrary::Progress& progress) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("status", fmt::format("{} {}", progress.step, printable(model)));
  if (progress.bytes_total > 0) {
    json.member("digest", model).member("total", progress.bytes_total);
    json.member("completed", std::min(progress.bytes_done, progress.bytes_total));
  }
  json.end_object();
  return line;
}

}  // namespace

PullAnswer::PullAnswer(Writer writer, std::string model, bool is_stream)
    : writer_(std::move(writer)), model_(std::move(model)), is_stream_(is_stream) {}

void PullAnswer::watch_client() {
  writer_->on_abort([self = weak_from_this()] {
    if (const auto answer = self.lock()) answer->has_left_ = true;
  });
}

bool PullAnswer::step(const ModelLibrary::Progress& progress) {
  if (is_stream_ && !has_left_) write_line(line_of(model_, progress));
  return !has_left_;
}

void PullAnswer::end(ApiStatus status) {
  if (!is_stream_ || (!status && !has_begun_)) {
    writer_->post([writer = writer_, status = std::move(status)] {
      if (!status) return respond_unless(status, *writer);
      writer->respond({.body = line_of("success")});
    });
    return;
  }
  std::string last = line_of("success");
  if (!status) {
    last.clear();
    JsonWriter(last).begin_object().member("error", status.error().message).end_object();
  }
  write_line(std::move(last));
  writer_->post([writer = writer_] { writer->end_stream(); });
}

void PullAnswer::write_line(std::string line) {
  const bool is_first = !std::exchange(has_begun_, true);
  writer_->post([writer = writer_, is_first, line = std::move(line)]() mutable {
    if (is_first) {
      writer->encode_events(kJsonLines);
      writer->begin_stream();
    }
    http::Event event;
    event.data = std::move(line);
    writer->write({&event, 1});
  });
}

}  // namespace kvasir::server::api
