#include "server/api/background_writer.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "base/memory_reserve.h"
#include "base/reserved_work.h"
#include "server/api_error.h"

namespace kvasir::server::api {
namespace {

constexpr std::chrono::seconds kFollowerPing{15};

}  // namespace

void BackgroundWriter::post(std::function<void()> task) {
  const ReservedWork reserved;
  boost::asio::post(executor_, [self = shared_from_this(), task = std::move(task)] { self->attempt(task); });
}

// A task that throws, in practice for want of memory, ends this answer alone.
void BackgroundWriter::attempt(const std::function<void()>& task) {
  try {
    const MemoryReserve::Spared spared;
    return task();
  } catch (const std::bad_alloc&) {
    fail({503, "out of memory: the request could not be processed", {}, "overloaded"});
  } catch (const std::exception&) {
    fail({500, "the request could not be processed", {}, "internal_error"});
  }
}

void BackgroundWriter::fail(const ApiError& error) {
  if (const auto callback = std::exchange(abort_, nullptr)) callback();
  respond(error_response(error, request_));
}

void BackgroundWriter::give_up(const ApiError& error) {
  post([this, error] { fail(error); });
}

void BackgroundWriter::abort() {
  post([this] {
    const auto callback = std::exchange(abort_, nullptr);
    end(nullptr);
    if (callback) callback();
  });
}

void BackgroundWriter::note_generation(const observe::GenerationRecord& record) {
  if (metrics_ == nullptr) return;
  observe::AccessRecord access;
  access.tenant = request_.tenant.name;
  access.method = request_.method;
  access.path = access.route = request_.path;
  access.status = 200;
  access.generation = record;
  metrics_->count_cost(access);
}

void BackgroundWriter::on_abort(std::function<void()> callback) {
  if (answered_) abort_ = std::move(callback);
}

void BackgroundWriter::end(const http::Response* response) {
  abort_ = nullptr;
  keep(nullptr);
  if (const auto answered = std::exchange(answered_, nullptr)) answered(response);
  if (client_ == nullptr) return;
  const auto client = std::exchange(client_, nullptr);
  if (response != nullptr && !has_client_stream_) {
    client->post([client, copy = *response] { client->respond(copy); });
  } else {
    client->post([client] { client->fail_stream(); });
  }
}

void BackgroundWriter::respond(http::Response response) {
  if (answered_) end(&response);
}

void BackgroundWriter::begin_stream() {
  if (!answered_) return;
  if (client_ != nullptr) {
    has_client_stream_ = true;
    return client_->post([client = client_] {
      client->begin_stream();
      client->when_quiet(kFollowerPing, [client] { client->ping(); });
    });
  }
  const auto abort = std::exchange(abort_, nullptr);
  respond(error_response({400, "stream: there is no stream in a file of requests", "stream"}, request_));
  if (abort) abort();
}

void BackgroundWriter::write(std::span<const http::Event> events) {
  if (client_ == nullptr) return;
  client_->post([client = client_, copy = std::vector(events.begin(), events.end())] { client->write(copy); });
}

void BackgroundWriter::end_stream(bool has_failed) {
  if (!answered_) return;
  if (const auto client = std::exchange(client_, nullptr)) {
    client->post([client, has_failed] { has_failed ? client->fail_stream() : client->end_stream(); });
  }
  end(nullptr);
}

}  // namespace kvasir::server::api
