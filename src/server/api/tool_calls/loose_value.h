// Values that are written almost as JSON: by Gemma's templates, or as Python's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/json_text.h"

namespace kvasir::server::api {

// Turns what stands between a call's brackets into a JSON object: key:value, .. or key=value, .. Strings are
// between quotes, or `quote` on both sides. Keys need none.
class LooseValue {
 public:
  // The call's bracket is '{' or '('; it has come already.
  LooseValue(char bracket, std::string_view quote) : quote_(quote), open_{bracket} {}

  // kDone at the bracket that closes the call.
  TextStep step(char byte, std::string& json);

 private:
  enum class State : std::uint8_t {
    kKeyOrEnd,
    kKey,
    kColon,
    kValueOrEnd,
    kQuote,  // the quote's mark is coming
    kString,
    kEscape,
    kBare,
    kAfter,
  };

  TextStep step_between(char byte, std::string& json);
  TextStep step_quote(char byte, std::string& json);
  TextStep begin_string(std::string& json);
  TextStep begin_value(char byte, std::string& json);
  TextStep step_key(char byte, std::string& json);
  TextStep step_string(char byte, std::string& json);
  TextStep step_escape(char byte, std::string& json);
  TextStep step_bare(char byte, std::string& json);
  TextStep close(char bracket, std::string& json);
  void end_string(std::string& json);
  bool is_python() const { return quote_.empty(); }
  bool is_in_list() const { return open_.back() == '[' || open_.back() == 't'; }

  const std::string_view quote_;
  std::vector<char> open_;  // '{', '[', '(' of a call, 't' of a tuple
  State state_ = State::kKeyOrEnd;
  bool has_output_ = false;  // the object's own bracket
  bool is_first_ = true;     // of what its bracket holds
  bool is_key_ = false;
  std::string end_quote_;  // of the string that is open
  std::string token_;      // a key, a bare value, an escape or a part of a mark
};

}  // namespace kvasir::server::api
