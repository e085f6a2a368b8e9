#include "server/api/files/download.h"

#include <algorithm>
#include <utility>

#include "server/api/files/stored_file.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

// A part that is read, and one that waits in the connection's buffers.
constexpr std::int64_t kDownloadBytes = 4 * kFilePartBytes;

}  // namespace

Download::Download(ApiContext& context, Writer writer, std::string id)
    : context_(context),
      writer_(std::move(writer)),
      id_(std::move(id)),
      memory_(context.memory, writer_->request().tenant.name) {}

void Download::start() {
  if (const ApiStatus has_room = memory_.resize(kDownloadBytes); !has_room) {
    return writer_->respond(error_response(has_room.error(), writer_->request()));
  }
  const auto self = shared_from_this();
  ask_store(
      context_, writer_, [self](stored::ObjectStore& store) { return self->open(store); },
      [self](Opening opening) { self->begin(std::move(opening)); });
}

ApiResult<Download::Opening> Download::open(stored::ObjectStore& store) const {
  KVASIR_TRY(const stored::Object file, find_file(store, owner_of(*writer_), id_));
  const auto num_bytes = store.content_bytes(file.id);
  if (!num_bytes) return std::unexpected(to_store_error(num_bytes.error()));
  KVASIR_TRY(Piece first, read(store));
  return Opening{.num_bytes = *num_bytes, .first = std::move(first)};
}

ApiResult<Download::Piece> Download::read(stored::ObjectStore& store) const {
  auto piece = store.read(id_, next_part_, kFilePartBytes);
  if (!piece) return std::unexpected(to_store_error(std::move(piece).error()));
  return *std::move(piece);
}

void Download::begin(Opening opening) {
  num_left_bytes_ = opening.num_bytes;
  if (!writer_->begin_body({.content_type = "application/octet-stream"}, num_left_bytes_)) {
    const ApiError error = {400, "the bytes of a file come over HTTP alone", {}, "unsupported"};
    return writer_->respond(error_response(error, writer_->request()));
  }
  send(std::move(opening.first));
}

// A file that grows meanwhile ends where it ended when it was asked for.
void Download::send(Piece piece) {
  next_part_ = piece.next;
  piece.bytes.resize(std::min(piece.bytes.size(), static_cast<std::size_t>(num_left_bytes_)));
  num_left_bytes_ -= std::ssize(piece.bytes);
  const bool is_gone = piece.bytes.empty() && num_left_bytes_ > 0;  // deleted
  writer_->write_body(std::move(piece.bytes));
  if (is_gone) return writer_->fail_stream();
  if (num_left_bytes_ == 0) return writer_->end_stream();
  writer_->when_sent([self = shared_from_this()] { self->read_next(); });
}

void Download::read_next() {
  const auto self = shared_from_this();
  ask_store(
      context_, writer_, [self](stored::ObjectStore& store) { return self->read(store); },
      [self](Piece piece) { self->send(std::move(piece)); }, [self] { self->writer_->fail_stream(); });
}

}  // namespace kvasir::server::api
