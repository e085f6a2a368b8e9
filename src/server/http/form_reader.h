// Forms that clients upload (RFC 7578), read piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/http/message.h"

namespace kvasir::server::http {

// Takes a form's parts as they come. An error ends the reading.
class FormParts {
 public:
  virtual ~FormParts() = default;
  // `file_name` is empty where the part is no file.
  virtual ApiStatus begin_part(std::string name, std::string file_name) = 0;
  virtual ApiStatus content(std::string_view bytes) = 0;  // some more of the part that has begun
};

// Strict: lines end with CRLF, nothing stands before the first boundary, each part has a name, the last boundary is
// there. It holds a part's headers or a piece of the content, never more than it was given last and 8 KiB.
//
// Thread safety: none.
class FormReader {
 public:
  static constexpr std::int32_t kMaxParts = 32;

  // Of a request whose body is a form. Errors (400): another content type, no usable boundary.
  static ApiResult<FormReader> open(const Request& head);

  // Reads what has come. Errors: what is malformed and more than kMaxParts (400), those of `parts`.
  ApiStatus read(std::string_view bytes, FormParts& parts);
  // Error (400): the form is not complete.
  ApiStatus finish() const;

 private:
  enum class State : std::uint8_t { kBegin, kBoundary, kHeaders, kFirstContent, kContent, kEnd };

  explicit FormReader(const std::string& boundary) : mark_("\r\n--" + boundary) {}
  // Each reads from the beginning of `rest`, removes what is read, and is false when it needs more.
  ApiResult<bool> step(std::string_view& rest, FormParts& parts);
  ApiResult<bool> read_begin(std::string_view& rest);
  ApiResult<bool> read_boundary(std::string_view& rest);
  ApiResult<bool> read_headers(std::string_view& rest, FormParts& parts);
  ApiResult<bool> read_first_content(std::string_view& rest);
  ApiResult<bool> read_content(std::string_view& rest, FormParts& parts);
  // A boundary without the line end before it.
  std::string_view bare_mark() const { return std::string_view(mark_).substr(2); }

  std::string mark_;  // ends a part
  std::string input_;
  State state_ = State::kBegin;
  std::int32_t num_parts_ = 0;
};

}  // namespace kvasir::server::http
