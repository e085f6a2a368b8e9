// Compiled guides that are kept for those who ask again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "kvasir/guide.h"

namespace kvasir {

// Bounded by bytes. The tenant that keeps most loses the guide that it has not used for longest. A guide that is lost
// lives while requests hold it; those count too.
//
// Thread safety: none.
class GuideCache {
 public:
  explicit GuideCache(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Null: it is not kept. Guides are shared by all tenants.
  CompiledGuide find(std::string_view key, std::string_view tenant);
  // How many bytes were lost for it.
  std::int64_t add(std::string key, std::string_view tenant, CompiledGuide guide);
  // Its CompiledGrammar::renewed(), which takes its place.
  CompiledGuide renew(const CompiledGuide& guide);
  // Whether the guides that requests hold leave room for one more.
  bool has_room();
  // Of all that live. Grammars grow with use.
  std::int64_t bytes();

 private:
  struct Entry {
    std::string key;
    std::string tenant;  // that asked for it last
    CompiledGuide guide;
  };

  static std::int64_t bytes_of(const Entry& entry);
  std::int64_t kept_bytes() const;
  std::int64_t lost_bytes();
  std::int64_t shrink();  // how many bytes were lost

  const std::int64_t max_bytes_;
  std::list<Entry> kept_;  // the last used first
  std::vector<std::weak_ptr<const grammar::CompiledGrammar>> lost_;
};

}  // namespace kvasir
