// Physical memory of this process.
#pragma once

#include <cstdint>

namespace kvasir {

std::int64_t rss_bytes();       // resident now, mapped file pages included
std::int64_t peak_rss_bytes();  // the most there was
std::int64_t heap_bytes();      // allocated now; the same in each run, unlike resident pages
void trim_heap();             // gives free pages back to the system; takes milliseconds

// Gives the calling thread an arena of the allocator. It would get one at its first allocation, but where addresses are
// used up by then (ulimit -v) it gets none, and fails while the arenas of other threads have room.
void claim_arena();

}  // namespace kvasir
