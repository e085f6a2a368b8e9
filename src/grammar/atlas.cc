#include "grammar/atlas.h"

#include "grammar/vocabulary.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kEntryBytes = 96;  // of a map's node and bucket

}  // namespace

// Half of the room is for what was asked for since the other half was filled.
void Atlas::make_room() {
  if (young_.size_bytes < max_bytes_ / 2) return;
  old_ = std::move(young_);
  young_ = {};
}

void Atlas::add(const Key& key, std::shared_ptr<const Walk> walk) {
  make_room();
  const std::size_t size_bytes = walk->size_bytes() + kEntryBytes;
  if (young_.walks.emplace(key, std::move(walk)).second) young_.size_bytes += size_bytes;
}

void Atlas::add(const Key& key, std::shared_ptr<const DenseMask> mask) {
  make_room();
  const std::size_t size_bytes = mask->size_bytes() + kEntryBytes;
  if (young_.masks.emplace(key, std::move(mask)).second) young_.size_bytes += size_bytes;
}

std::shared_ptr<const Walk> Atlas::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = young_.walks.find(key); found != young_.walks.end()) return found->second;
  const auto found = old_.walks.find(key);
  if (found == old_.walks.end()) return nullptr;
  std::shared_ptr<const Walk> walk = found->second;
  add(key, walk);
  return walk;
}

void Atlas::insert(const Key& key, std::shared_ptr<const Walk> walk) {
  const std::lock_guard lock(mutex_);
  add(key, std::move(walk));
}

std::size_t Atlas::size_bytes() {
  const std::lock_guard lock(mutex_);
  return young_.size_bytes + old_.size_bytes;
}

std::shared_ptr<const DenseMask> Atlas::tokens_of(const Vocabulary& vocabulary, CharacterClasses classes,
                                                  std::uint32_t num_characters) {
  const Key key = {.remainders = 0, .first = classes, .second = num_characters};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = young_.masks.find(key); found != young_.masks.end()) return found->second;
    if (const auto found = old_.masks.find(key); found != old_.masks.end()) {
      std::shared_ptr<const DenseMask> mask = found->second;
      add(key, mask);
      return mask;
    }
  }
  TokenMask mask(vocabulary.num_tokens());
  vocabulary.add_tokens_of(classes, num_characters, mask);
  auto result = std::make_shared<const DenseMask>(std::move(mask));
  const std::lock_guard lock(mutex_);
  add(key, result);
  return result;
}

}  // namespace kvasir::grammar
