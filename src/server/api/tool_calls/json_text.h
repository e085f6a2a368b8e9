// JSON that comes byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server::api {

// Appends a byte of a text as it stands between the quotes of a JSON string.
void append_json_byte(char byte, std::string& json);

enum class TextStep : std::uint8_t {
  kMore,
  kDone,        // the byte was its last
  kDoneBefore,  // the byte comes behind it
  kBad,         // it cannot go on so
};

// The text of a JSON string, from behind its first quote.
class JsonStringReader {
 public:
  TextStep step(char byte, std::string& text);

 private:
  TextStep step_escape(char byte, std::string& text);
  TextStep step_unicode(char byte, std::string& text);

  std::int32_t num_escape_bytes_ = 0;  // since a backslash, it included
  std::uint32_t unit_ = 0;
  std::uint32_t high_surrogate_ = 0;
};

// Copies one JSON value without its blanks and checks it. An escape comes out in one piece, a surrogate pair
// too. A control character in a string, which small models write, becomes its escape.
class JsonCopier {
 public:
  TextStep step(char byte, std::string& json);

 private:
  enum class State : std::uint8_t {
    kValue,
    kValueOrEnd,
    kKeyOrEnd,
    kKey,
    kColon,
    kAfter,
    kString,
    kEscape,
    kNumber,
    kLiteral,
  };

  TextStep begin_value(char byte, std::string& json);
  TextStep step_string(char byte, std::string& json);
  TextStep step_escape(char byte, std::string& json);
  TextStep step_scalar(char byte, std::string& json);
  TextStep step_after(char byte, std::string& json);
  TextStep open(char bracket, std::string& json);
  TextStep close(char bracket, std::string& json);
  TextStep end_value();

  State state_ = State::kValue;
  std::vector<char> open_;  // brackets
  bool is_key_ = false;
  std::string token_;     // of an escape or a scalar, until it is whole
  bool is_pair_ = false;  // the escape is the second of a surrogate pair
};

// Whether the text is a JSON number.
bool is_json_number(std::string_view text);

}  // namespace kvasir::server::api
