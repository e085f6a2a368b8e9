// Faults of a kernel, as the host executor reports them.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

namespace kvasir::simt {

enum class Bug : std::uint8_t {
  kDivergentBarrier,     // threads of a block wait at different barriers, or only some of them wait
  kDivergentCollective,  // lanes of a warp are at different collectives
  kEarlyExit,            // a thread has ended, and others wait for it
  kRace,                 // two threads touch a byte, one of them writes, and nothing orders them
  kMisaligned,           // an access at no multiple of its size
  kUninitialised,        // memory is read that nobody has written
  kOutOfBounds,          // outside of every buffer, or of its part of shared memory
  kReadOnly,             // a write to an input
  kAsyncTooEarly,        // data of an asynchronous copy is used before the wait for it
  kLaunchLimit,          // a grid, a block or its shared memory is larger than a device takes
};

const char* name_of(Bug bug);

// Where in the source a kernel calls the door. A line alone would not tell two calls on it apart.
struct Site {
  const char* file = "";
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  Site() = default;
  Site(const std::source_location& at) : file(at.file_name()), line(at.line()), column(at.column()) {}
  friend bool operator==(const Site&, const Site&) = default;
};

struct Report {
  Bug bug;
  std::string text;  // one line: name, place, block, thread, what was met
};

}  // namespace kvasir::simt
