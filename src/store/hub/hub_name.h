// The name of a model on the hub: hf:OWNER/NAME[@REVISION][:FILE].
#pragma once

#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::store {

struct HubName {
  std::string owner;
  std::string name;
  std::string revision;  // a branch, tag or commit; empty: the branch "main"
  std::string file;      // a path in the repository, or a quantization such as Q8_0; empty: not said

  // "OWNER/NAME", as the hub's paths have it.
  std::string id() const { return owner + "/" + name; }
  // "hf:OWNER/NAME", for messages.
  std::string repository() const { return "hf:" + id(); }
  // As it is written on a command line.
  std::string text() const;
  const std::string& revision_or_main() const;

  // Whether the text begins with "hf:".
  static bool matches(std::string_view text) { return text.starts_with("hf:"); }
  // Error (kUsage): the part that is missing or has a character that no such name has.
  static Result<HubName> parse(std::string_view text);
};

// Whether a path that a server or a person names stays inside the folder that it is relative to: no empty
// part, no ".", no "..", no control character, no "\".
bool is_inside_path(std::string_view path);

// 40 lower-case hex digits.
bool is_commit(std::string_view text);

}  // namespace kvasir::store
