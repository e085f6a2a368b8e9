// Responses, files and batches that the server keeps, in one SQLite database: in a folder, or in memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "sqlite/database.h"

namespace kvasir::server::stored {

enum class Kind : std::uint8_t { kResponse, kFile, kBatch };
inline constexpr std::int32_t kNumKinds = 3;

struct Object {
  Kind kind = Kind::kResponse;
  std::string id;
  std::string owner;           // the API key that made it; empty: nobody was asked for one
  std::string parent;          // of a response the id of the one before, of a file its purpose
  std::int64_t created_s = 0;  // Unix time
  std::int64_t expires_s = 0;  // gone from then on; 0: never
  bool is_pinned = false;      // does not leave to make room, as it is being worked on
  std::string json;            // as clients see it
};

// One piece of an object's content: of a response its input items, of a file some of its bytes.
struct Part {
  std::string name;  // of a batch's output: the custom_id of the line
  std::string bytes;
};

// The objects of one kind together. An object's bytes are its JSON, its parts and a fixed amount for its row.
struct Bounds {
  std::int64_t max_bytes = 0;
  std::int64_t max_objects = 0;
};

// Objects beyond the bounds leave: the one of the owner with most that was used longest ago. One
// owner's objects cannot drive out those of an owner that has less.
//
// Thread safety: none; StoreThread gives it a thread.
class ObjectStore {
 public:
  struct Options {
    std::string directory;  // made when it is not there; empty: in memory
    Bounds bounds[kNumKinds];
  };

  // Files are readable by this user alone. Only one process may have the folder. Errors: kMachine (folder,
  // permission, in use), kBadFile (not this server's database, or damaged), one line that names the path.
  static Result<std::unique_ptr<ObjectStore>> open(const Options& options);
  ~ObjectStore();
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // Adds an object with its content. Errors: kUnmet when it is larger than its kind may be together,
  // kUnavailable when what is pinned leaves no room, kMachine.
  Status add(const Object& object, const std::vector<Part>& parts);
  // An object whose content comes in parts, some `expected_bytes` in all. It is pinned, and nobody finds it before
  // show(). One that was not shown is erased when the store closes, or opens again. Errors: as add()'s.
  Status begin_unseen(const Object& object, std::int64_t expected_bytes);
  // Shows it, as it is said here, and ends its pin. Error: kNotFound, kMachine.
  Status show(const Object& object);
  Status erase_unseen(const std::string& id);
  // Appends to the content of an object that is pinned. Errors: as add()'s, kNotFound.
  Status append(const std::string& id, const Part& part);
  // An object of this kind and owner; nothing: there is none. It counts as used.
  Result<std::optional<Object>> find(Kind kind, const std::string& owner, const std::string& id);
  Result<bool> erase(Kind kind, const std::string& owner, const std::string& id);  // false: there was none
  // Replaces what clients see. Only an object that is pinned changes: of two that end one the first wins.
  // False: it was not pinned, or is not there.
  Result<bool> update(const std::string& id, std::string_view json, bool is_pinned);
  // The same for the member "status" alone, and "error" where `error_json` is not empty.
  Result<bool> set_status(const std::string& id, std::string_view status, std::string_view error_json,
                          bool is_pinned);
  Status pin(const std::string& id, bool is_pinned);

  // The content, part by part; at most `max_bytes` from part `first` on, and one part at least.
  struct Piece {
    std::string bytes;
    std::int64_t next = 0;  // the part behind it
    bool is_last = false;
  };
  Result<Piece> read(const std::string& id, std::int64_t first, std::int64_t max_bytes);
  Result<std::int64_t> content_bytes(const std::string& id);
  Result<std::vector<std::string>> part_names(const std::string& id);

  // At most `limit` objects in the order they were added, or the reverse, behind the object `after` (empty:
  // from the first); of one parent unless that is empty.
  struct Listing {
    std::vector<Object> objects;
    bool has_more = false;
    bool knows_after = true;
  };
  Result<Listing> list(Kind kind, const std::string& owner, const std::string& parent, const std::string& after,
                       std::int64_t limit, bool is_descending);
  // All owners' objects that were worked on when the store was open last.
  Result<std::vector<Object>> pinned(Kind kind);

  std::int64_t used_bytes(Kind kind) const;
  std::int64_t num_objects(Kind kind) const;

 private:
  struct Usage {
    std::int64_t bytes = 0;
    std::int64_t objects = 0;
  };
  using Owner = std::pair<Kind, std::string>;

  ObjectStore(sqlite::Database database, const Options& options);
  Status prepare();
  Status load_usage();
  // The values of the column "pinned".
  enum class Pin : std::int64_t { kNone, kPinned, kUnseen };
  Status add_as(const Object& object, const std::vector<Part>& parts, Pin pin);
  Status add_in_transaction(const Object& object, const std::vector<Part>& parts, std::int64_t bytes, Pin pin);
  Status erase_row(std::int64_t row);
  Status drop_expired();
  // Error (kUnmet) for one object of so many bytes.
  Status check_size(Kind kind, std::int64_t bytes) const;
  // Drops objects until so much more fits.
  Status make_room(Kind kind, std::int64_t bytes, std::int64_t objects);
  Result<bool> drop_oldest(Kind kind);
  void count(const Owner& owner, std::int64_t bytes, std::int64_t objects);

  sqlite::Database database_;
  const Options options_;
  std::map<Owner, Usage> usage_;
  Usage total_[kNumKinds];
  std::int64_t clock_ = 0;  // counts uses
  bool is_ready_ = false;   // the database is one of ours, and nobody else's
};

}  // namespace kvasir::server::stored
