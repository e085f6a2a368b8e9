// How answers to a schema are written.
#pragma once

#include <cstdint>

namespace kvasir::grammar {

// Between tokens of JSON; before and behind the value there is nothing.
enum class JsonBlanks : std::uint8_t {
  kFlexible,  // at most two spaces or tabs, or a line break and at most 64
  kCompact,   // none
  kSingle,    // a space behind commas and colons
};

struct SchemaOptions {
  JsonBlanks blanks = JsonBlanks::kFlexible;
  // Objects with `properties` have no other members, unless the schema says which: what `strict` asks for.
  bool closes_objects = false;
};

}  // namespace kvasir::grammar
