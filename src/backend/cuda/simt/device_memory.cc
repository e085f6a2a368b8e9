#include "backend/cuda/simt/device_memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace kvasir::simt {
namespace {

// Bit 55 is that of the other half of the address space: no 48-bit address of a program has it, on x86 or ARM.
constexpr std::uintptr_t kDeviceBit = std::uintptr_t{1} << 55;
constexpr int kOffsetBits = 36;
constexpr std::uintptr_t kMiddle = std::uintptr_t{1} << (kOffsetBits - 1);  // a buffer begins there
constexpr int kWarp = 32;

constexpr std::byte kPoison{0xcd};

}  // namespace

DeviceMemory::DeviceMemory() : buffers_(1) {}

std::byte* DeviceMemory::address_of(std::size_t buffer, std::int64_t offset) {
  return reinterpret_cast<std::byte*>(
      (kDeviceBit | (static_cast<std::uintptr_t>(buffer) << kOffsetBits) | kMiddle) +
      static_cast<std::uintptr_t>(offset));
}

// Zeroed, and so is the history: nobody has written or read.
DeviceMemory::Buffer DeviceMemory::make_buffer(std::int64_t bytes, bool has_history) {
  Buffer buffer;
  const auto take = [](std::int64_t size) {
    auto memory = AlignedBuffer::allocate(size, PageSize::kSmall);
    CHECK(memory.has_value());
    return std::move(*memory);
  };
  buffer.byte_memory = take(bytes);
  buffer.bytes = buffer.byte_memory.bytes();
  if (!has_history) return buffer;
  buffer.history_memory = take(bytes * static_cast<std::int64_t>(sizeof(History)));
  buffer.history = buffer.history_memory.as<History>();
  return buffer;
}

std::byte* DeviceMemory::add(std::span<const std::byte> content, AccessMode mode) {
  if (content.empty()) return nullptr;
  Buffer buffer = make_buffer(std::ssize(content), mode == AccessMode::kReadWrite);
  std::ranges::copy(content, buffer.bytes.begin());
  for (History& each : buffer.history) each.content = Content::kWritten;
  buffers_.push_back(std::move(buffer));
  return address_of(buffers_.size() - 1, 0);
}

std::byte* DeviceMemory::add_unwritten(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  buffers_.push_back(make_buffer(bytes, true));
  std::ranges::fill(buffers_.back().bytes, kPoison);
  return address_of(buffers_.size() - 1, 0);
}

std::byte* DeviceMemory::add_zeroed(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  buffers_.push_back(make_buffer(bytes, true));
  buffers_.back().is_zeroed = true;
  return address_of(buffers_.size() - 1, 0);
}

// Its number is not given again, so that a later access is found.
void DeviceMemory::remove(const std::byte* address) {
  if (address == nullptr) return;
  Place place;
  CHECK(!find(address, 1, place) && place.offset == 0);
  *place.buffer = {};
}

void DeviceMemory::copy_in(std::span<const std::byte> content, std::byte* address) {
  if (content.empty()) return;
  Place place;
  CHECK(!find(address + content.size() - 1, 1, place) && !find(address, 1, place));
  std::ranges::copy(content, place.buffer->bytes.begin() + place.offset);
  if (place.buffer->history.empty()) return;
  for (History& each : place.buffer->history.subspan(static_cast<std::size_t>(place.offset), content.size())) {
    each = {.content = Content::kWritten};
  }
}

void DeviceMemory::clear() { buffers_.resize(1); }

void DeviceMemory::begin_block(std::int64_t shared_bytes) {
  const auto size = static_cast<std::size_t>(shared_bytes);
  Buffer& shared = buffers_[0];
  if (shared.byte_memory.size_bytes() < shared_bytes) shared = make_buffer(shared_bytes, true);
  shared.bytes = shared.byte_memory.bytes().first(size);
  shared.history = shared.history_memory.as<History>().first(size);
  std::ranges::fill(shared.bytes, kPoison);
  std::ranges::fill(shared.history, History{});
}

std::optional<Fault> DeviceMemory::find(const std::byte* address, std::int64_t bytes, Place& place) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if ((number & kDeviceBit) == 0) return Fault{Bug::kOutOfBounds, "an address of no buffer"};
  if (number % static_cast<std::uintptr_t>(bytes) != 0)
    return Fault{Bug::kMisaligned, "no multiple of its size"};
  const std::uintptr_t index = (number ^ kDeviceBit) >> kOffsetBits;
  if (index >= buffers_.size()) return Fault{Bug::kOutOfBounds, "an address of no buffer"};
  Buffer& buffer = buffers_[index];
  const std::int64_t offset = static_cast<std::int64_t>(number & (2 * kMiddle - 1)) -
                              static_cast<std::int64_t>(kMiddle);
  if (offset < 0 || offset + bytes > static_cast<std::int64_t>(buffer.bytes.size())) {
    return Fault{Bug::kOutOfBounds, index == 0 ? "beyond shared memory" : "beyond its buffer"};
  }
  place = {&buffer, offset};
  return {};
}

void DeviceMemory::copy_out(const std::byte* address, std::span<std::byte> out) const {
  if (out.empty()) return;
  Place place;
  auto& self = const_cast<DeviceMemory&>(*this);
  CHECK(!self.find(address + out.size() - 1, 1, place) && !self.find(address, 1, place));
  std::memcpy(out.data(), place.buffer->bytes.data() + place.offset, out.size());
}

bool DeviceMemory::is_written(const std::byte* address, std::int64_t bytes) const {
  Place place;
  CHECK(!const_cast<DeviceMemory&>(*this).find(address, 1, place));
  for (std::int64_t i = place.offset; i < place.offset + bytes && !place.buffer->history.empty(); ++i) {
    if (place.buffer->history[static_cast<std::size_t>(i)].content != Content::kWritten) return false;
  }
  return true;
}

bool DeviceMemory::is_ordered(const Accessor& before, const Accessor& now) const {
  if (before.block < first_block_) return true;
  if (before.block != now.block) return false;
  if (before.thread == now.thread || before.block_epoch < now.block_epoch) return true;
  return before.thread / kWarp == now.thread / kWarp && before.warp_epoch < now.warp_epoch;
}

// All readers of a byte, of which `reader` is the last.
bool DeviceMemory::are_ordered(const History& history, const Accessor& now) const {
  const Accessor& before = history.reader;
  if (history.readers == Readers::kOne || before.block < first_block_) return is_ordered(before, now);
  if (history.readers == Readers::kBlocks || before.block != now.block) return false;
  if (before.block_epoch < now.block_epoch) return true;
  return history.readers == Readers::kWarp && before.thread / kWarp == now.thread / kWarp &&
         before.warp_epoch < now.warp_epoch;
}

std::optional<Fault> DeviceMemory::note_read(const Accessor& who, History& history, bool is_zeroed) const {
  if (history.content == Content::kAnnounced) return Fault{Bug::kAsyncTooEarly, "read before the wait"};
  if (history.content == Content::kUnwritten && !is_zeroed) return Fault{Bug::kUninitialised, "nobody has written it"};
  if (!is_ordered(history.writer, who)) return Fault{Bug::kRace, "read beside another thread's write"};
  const Accessor& before = history.reader;
  if (are_ordered(history, who)) {
    history.readers = Readers::kOne;
  } else if (before.block != who.block) {
    history.readers = Readers::kBlocks;
  } else {
    const Readers both = before.thread / kWarp == who.thread / kWarp ? Readers::kWarp : Readers::kBlock;
    history.readers = std::max(history.readers, both);
  }
  history.reader = who;
  return {};
}

std::optional<Fault> DeviceMemory::note_write(const Accessor& who, History& history, Content content) const {
  if (history.content == Content::kAnnounced && content != Content::kWritten) {
    return Fault{Bug::kRace, "two asynchronous copies to one place"};
  }
  if (!is_ordered(history.writer, who)) return Fault{Bug::kRace, "written beside another thread's write"};
  if (!are_ordered(history, who)) return Fault{Bug::kRace, "written beside another thread's read"};
  history.writer = who;
  history.content = content;
  return {};
}

std::optional<Fault> DeviceMemory::note_writes(const Accessor& who, const Place& place, std::int64_t bytes,
                                               Content content) const {
  if (place.buffer->history.empty()) return Fault{Bug::kReadOnly, "the buffer is an input"};
  for (std::int64_t i = place.offset; i < place.offset + bytes; ++i) {
    if (auto fault = note_write(who, place.buffer->history[static_cast<std::size_t>(i)], content))
      return fault;
  }
  return {};
}

std::optional<Fault> DeviceMemory::read(const Accessor& who, const std::byte* address, std::int64_t bytes,
                                        void* out) {
  Place place;
  if (auto fault = find(address, bytes, place)) return fault;
  if (!place.buffer->history.empty()) {
    for (std::int64_t i = place.offset; i < place.offset + bytes; ++i) {
      History& history = place.buffer->history[static_cast<std::size_t>(i)];
      if (auto fault = note_read(who, history, place.buffer->is_zeroed)) return fault;
    }
  }
  std::memcpy(out, place.buffer->bytes.data() + place.offset, static_cast<std::size_t>(bytes));
  return {};
}

std::optional<Fault> DeviceMemory::write(const Accessor& who, std::byte* address, std::int64_t bytes,
                                         const void* in) {
  Place place;
  if (auto fault = find(address, bytes, place)) return fault;
  for (std::int64_t i = place.offset; i < place.offset + bytes && !place.buffer->history.empty(); ++i) {
    if (place.buffer->history[static_cast<std::size_t>(i)].content == Content::kAnnounced) {
      return Fault{Bug::kAsyncTooEarly, "written before the wait"};
    }
  }
  if (auto fault = note_writes(who, place, bytes, Content::kWritten)) return fault;
  std::memcpy(place.buffer->bytes.data() + place.offset, in, static_cast<std::size_t>(bytes));
  return {};
}

std::optional<Fault> DeviceMemory::announce(const Accessor& who, std::byte* address, std::int64_t bytes) {
  Place place;
  if (auto fault = find(address, bytes, place)) return fault;
  return note_writes(who, place, bytes, Content::kAnnounced);
}

std::optional<Fault> DeviceMemory::land(const Accessor& who, std::byte* address, std::int64_t bytes,
                                        const void* in) {
  Place place;
  if (auto fault = find(address, bytes, place)) return fault;
  if (auto fault = note_writes(who, place, bytes, Content::kWritten)) return fault;
  std::memcpy(place.buffer->bytes.data() + place.offset, in, static_cast<std::size_t>(bytes));
  return {};
}

}  // namespace kvasir::simt
