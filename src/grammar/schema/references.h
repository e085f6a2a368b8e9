// Where the references of a schema lead.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "grammar/schema/json_value.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Drafts of JSON Schema, as far as they differ here.
enum class SchemaDraft : std::uint8_t {
  kUpTo7,  // what stands beside a $ref does not count
  kLater,
};

// References within one document: "#", pointers, anchors, and the ids of its parts.
//
// Thread safety: immutable.
class References {
 public:
  explicit References(const JsonValue& root);

  SchemaDraft draft() const { return draft_; }
  // A part of the document has an id of its own, so that references within it lead elsewhere.
  bool has_inner_ids() const { return has_inner_ids_; }
  // kUsage: it leads out of the document, or to nothing. kUnmet: a $dynamicRef or $recursiveRef whose place depends
  // on the way to it. The message does not name the reference's place.
  Result<const JsonValue*> resolve(const JsonValue& reference) const;

 private:
  void collect(const JsonValue& value, const std::string& base);

  const JsonValue& root_;
  bool has_inner_ids_ = false;
  SchemaDraft draft_ = SchemaDraft::kLater;
  std::map<std::string, const JsonValue*> by_id_;  // ids, and ids with anchors
  std::map<std::string, int> num_dynamic_anchors_;  // by name
  int num_recursive_anchors_ = 0;
};

}  // namespace kvasir::grammar
