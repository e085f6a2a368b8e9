// Places of a grammar as numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/compile/append_only.h"
#include "grammar/compile/config.h"
#include "grammar/regex/id_table.h"
#include "grammar/compile/stored_mask.h"

namespace kvasir::grammar {

// Equal configs have equal numbers.
//
// Thread safety: intern(), config() and keep_mask() by one thread at a time; record() from any thread.
class ConfigStore {
 public:
  // What readers see of a config.
  struct Record {
    std::atomic<const StoredMask*> mask = nullptr;  // null: not kept
    bool is_accepting = false;  // the grammar's text may end here
    bool must_end = false;      // .. and nothing may follow
    bool is_ambiguous = false;  // more places than a text may have; nothing may follow
    bool at_text_start = false;
    bool is_recording = false;  // a text that is recorded may have begun
    bool may_be_taken = false;  // .. and which ones were recorded before may rule out how it goes on
  };

  // Requires: places that ascend, each once. `is_new` tells whether record() has to be set.
  ConfigId intern(const Config& config, bool& is_new);
  void read(ConfigId id, Config& config) const;
  Record& record(ConfigId id) const { return records_[id]; }
  void keep_mask(ConfigId id, StoredMask mask);
  std::uint32_t size() const { return records_.size(); }
  // Without the masks.
  std::size_t size_bytes() const {
    return configs_.size() * (sizeof(Stored) + sizeof(Record)) + places_.size() * sizeof(Place) + found_.size_bytes();
  }

 private:
  struct Stored {
    std::uint32_t first_place = 0;  // in places_
    std::uint32_t num_places = 0;
    RowId boundary = kNoRow;
    RowId recorded = kNoRow;
    bool at_text_start = false;
  };
  std::span<const Place> places(const Stored& stored) const {
    return std::span(places_).subspan(stored.first_place, stored.num_places);
  }

  std::vector<Stored> configs_;
  std::vector<Place> places_;
  IdTable found_;
  AppendOnly<Record> records_;
  std::vector<std::unique_ptr<const StoredMask>> masks_;
};

}  // namespace kvasir::grammar
