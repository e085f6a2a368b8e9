// The memory of the host executor: buffers whose addresses no processor takes, with a history of every byte.
//
// An address is a buffer's number and an offset, with a bit set that no address of a program has. So a kernel that
// goes round the door (simt.h) stops at once, and an access outside of a buffer is found however far it reaches.
// Each byte that may be written remembers who wrote and who read it last. Two accesses of different threads, one of
// them a write, must be ordered by a barrier, or both be before and after a launch.
//
// Not thread-safe: one launch at a time. Memory that cannot be had ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/simt/bug.h"
#include "base/aligned_buffer.h"

namespace kvasir::simt {

// The thread that touches memory, and what it has passed.
struct Accessor {
  std::uint32_t block = 0;        // over all launches; 0 is nobody
  std::uint16_t thread = 0;       // of the block
  std::uint32_t block_epoch = 0;  // barriers of the block so far
  std::uint32_t warp_epoch = 0;   // barriers of the warp so far
};

enum class AccessMode : std::uint8_t { kReadOnly, kReadWrite };

struct Fault {
  Bug bug;
  const char* what;
};

class DeviceMemory {
 public:
  DeviceMemory();

  // The address of a new buffer. Without content it is unwritten. Null for 0 bytes.
  std::byte* add(std::span<const std::byte> content, AccessMode mode);
  std::byte* add_unwritten(std::int64_t bytes);
  // The address of a new buffer of zeros, which costs memory only where it is touched.
  std::byte* add_zeroed(std::int64_t bytes);
  // A buffer that nobody needs any more; null is allowed.
  void remove(const std::byte* address);
  // The host's bytes, between launches.
  void copy_in(std::span<const std::byte> content, std::byte* address);
  // Copies bytes that need not have been written.
  void copy_out(const std::byte* address, std::span<std::byte> out) const;
  bool is_written(const std::byte* address, std::int64_t bytes) const;
  void clear();

  // Accesses of earlier blocks are over; what was written stays.
  void begin_launch(std::uint32_t first_block) { first_block_ = first_block; }
  // Shared memory of a block that begins: nothing of it is written.
  void begin_block(std::int64_t shared_bytes);
  std::byte* shared() const { return address_of(0, 0); }
  bool has_shared(std::int64_t offset, std::int64_t bytes) const {
    return offset >= 0 && offset + bytes <= static_cast<std::int64_t>(buffers_[0].bytes.size());
  }

  std::optional<Fault> read(const Accessor& who, const std::byte* address, std::int64_t bytes, void* out);
  std::optional<Fault> write(const Accessor& who, std::byte* address, std::int64_t bytes, const void* in);
  // Marks bytes that an asynchronous copy will bring, then brings them.
  std::optional<Fault> announce(const Accessor& who, std::byte* address, std::int64_t bytes);
  std::optional<Fault> land(const Accessor& who, std::byte* address, std::int64_t bytes, const void* in);

 private:
  enum class Content : std::uint8_t { kUnwritten, kWritten, kAnnounced };
  enum class Readers : std::uint8_t { kOne, kWarp, kBlock, kBlocks };
  struct History {
    Accessor writer, reader;  // the last ones
    Readers readers = Readers::kOne;
    Content content = Content::kUnwritten;
  };
  struct Buffer {
    std::span<std::byte> bytes;
    std::span<History> history;  // of each byte; empty where nobody may write
    bool is_zeroed = false;      // what nobody has written is 0
    AlignedBuffer byte_memory = {}, history_memory = {};
  };
  struct Place {
    Buffer* buffer;
    std::int64_t offset;
  };

  static std::byte* address_of(std::size_t buffer, std::int64_t offset);
  std::optional<Fault> find(const std::byte* address, std::int64_t bytes, Place& place);
  bool is_ordered(const Accessor& before, const Accessor& now) const;
  bool are_ordered(const History& history, const Accessor& now) const;
  static Buffer make_buffer(std::int64_t bytes, bool has_history);
  std::optional<Fault> note_read(const Accessor& who, History& history, bool is_zeroed) const;
  std::optional<Fault> note_write(const Accessor& who, History& history, Content content) const;
  std::optional<Fault> note_writes(const Accessor& who, const Place& place, std::int64_t bytes,
                                   Content content) const;

  std::vector<Buffer> buffers_;  // the first is shared memory
  std::uint32_t first_block_ = 1;
};

}  // namespace kvasir::simt
