// The bytes of a stored file on their way to a client, a part at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/api/endpoint.h"
#include "server/request_memory.h"
#include "server/stored/object_store.h"

namespace kvasir::server::api {

// A part is read when the one before has left, so a file of any size takes the memory of a few parts.
//
// Thread safety: start() is called once, from a task of the writer.
class Download : public std::enable_shared_from_this<Download> {
 public:
  Download(ApiContext& context, Writer writer, std::string id);

  // Answers with the file of the writer's tenant, or with why not.
  void start();

 private:
  struct Opening {
    std::int64_t num_bytes = 0;
    stored::ObjectStore::Piece first;
  };
  using Piece = stored::ObjectStore::Piece;

  ApiResult<Opening> open(stored::ObjectStore& store) const;
  ApiResult<Piece> read(stored::ObjectStore& store) const;
  void begin(Opening opening);
  void send(Piece piece);
  void read_next();

  ApiContext& context_;
  const Writer writer_;
  const std::string id_;
  RequestMemory::Share memory_;
  std::int64_t num_left_bytes_ = 0;
  std::int64_t next_part_ = 0;
};

}  // namespace kvasir::server::api
