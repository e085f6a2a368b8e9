#include "server/http/form_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::http {
namespace {

constexpr std::size_t kMaxPartHeaderBytes = 8 << 10;
constexpr std::size_t kMaxBoundaryBytes = 70;  // RFC 2046, 5.1.1
constexpr std::string_view kLineEnd = "\r\n";

std::unexpected<ApiError> malformed_form(std::string_view what) {
  return bad_request(fmt::format("malformed multipart/form-data: {}", what), {}, "bad_form");
}

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::ranges::equal(text.substr(0, word.size()), word, {}, lower_letter, lower_letter);
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The value of `; name=value` or `; name="value"` in a header; nothing when it is not there or malformed.
std::optional<std::string> parameter_of(std::string_view header, std::string_view name) {
  std::size_t at = std::min(header.find(';'), header.size());
  while (at < header.size()) {
    const std::size_t equals = header.find('=', at);
    if (equals == header.npos) return std::nullopt;
    const std::string_view key = without_spaces(header.substr(at + 1, equals - at - 1));
    std::string value;
    at = equals + 1;
    if (at < header.size() && header[at] == '"') {
      for (++at; at < header.size() && header[at] != '"'; ++at) {
        if (header[at] == '\\' && at + 1 < header.size()) ++at;
        value += header[at];
      }
      if (at == header.size()) return std::nullopt;  // no closing quote
      at = std::min(header.find(';', at), header.size());
    } else {
      const std::size_t end = std::min(header.find(';', at), header.size());
      value = without_spaces(header.substr(at, end - at));
      at = end;
    }
    if (key.size() == name.size() && starts_with_word(key, name)) return value;
  }
  return std::nullopt;
}

ApiResult<std::string> boundary_of(const Request& request) {
  const std::string* const type = request.header("Content-Type");
  if (type == nullptr || !starts_with_word(*type, "multipart/form-data")) {
    return bad_request(
        fmt::format("Content-Type must be multipart/form-data, got {}",
                    type == nullptr ? "none" : printable(std::string_view(*type).substr(0, 128))),
        {}, "bad_form");
  }
  std::optional<std::string> boundary = parameter_of(*type, "boundary");
  if (!boundary || boundary->empty()) return malformed_form("the content type names no boundary");
  if (boundary->size() > kMaxBoundaryBytes) {
    return malformed_form(fmt::format("a boundary of {} bytes, the limit is {}", boundary->size(), kMaxBoundaryBytes));
  }
  return *std::move(boundary);
}

struct PartHead {
  std::string name, file_name;
};

// From the lines before a part's content.
ApiResult<PartHead> read_part_head(std::string_view headers) {
  while (!headers.empty()) {
    const std::size_t end = std::min(headers.find(kLineEnd), headers.size());
    const std::string_view line = headers.substr(0, end);
    headers.remove_prefix(std::min(headers.size(), end + kLineEnd.size()));
    constexpr std::string_view kDisposition = "content-disposition:";
    if (!starts_with_word(line, kDisposition)) continue;
    const std::string_view value = without_spaces(line.substr(kDisposition.size()));
    if (!starts_with_word(value, "form-data")) return malformed_form("a part that is no form-data");
    const std::optional<std::string> name = parameter_of(value, "name");
    if (!name || name->empty()) return malformed_form("a part without a name");
    return PartHead{.name = *name, .file_name = parameter_of(value, "filename").value_or("")};
  }
  return malformed_form("a part without Content-Disposition");
}

}  // namespace

ApiResult<FormReader> FormReader::open(const Request& head) {
  KVASIR_TRY(const std::string boundary, boundary_of(head));
  return FormReader(boundary);
}

ApiStatus FormReader::read(std::string_view bytes, FormParts& parts) {
  input_ += bytes;
  std::string_view rest = input_;
  for (;;) {
    KVASIR_TRY(const bool has_read, step(rest, parts));
    if (!has_read) break;
  }
  input_.erase(0, input_.size() - rest.size());
  return {};
}

ApiStatus FormReader::finish() const {
  if (state_ == State::kEnd) return {};
  if (state_ == State::kBegin) return malformed_form("it does not begin with its boundary");
  return malformed_form("it ends before its last boundary");
}

ApiResult<bool> FormReader::step(std::string_view& rest, FormParts& parts) {
  switch (state_) {
    case State::kBegin:
      return read_begin(rest);
    case State::kBoundary:
      return read_boundary(rest);
    case State::kHeaders:
      return read_headers(rest, parts);
    case State::kFirstContent:
      return read_first_content(rest);
    case State::kContent:
      return read_content(rest, parts);
    case State::kEnd:
      break;
  }
  rest = {};
  return false;
}

ApiResult<bool> FormReader::read_begin(std::string_view& rest) {
  const std::string_view mark = bare_mark();
  if (!rest.starts_with(mark.substr(0, rest.size()))) {
    return malformed_form("it does not begin with its boundary");
  }
  if (rest.size() < mark.size()) return false;
  rest.remove_prefix(mark.size());
  state_ = State::kBoundary;
  return true;
}

// Behind a boundary: the end of its line, or of the form.
ApiResult<bool> FormReader::read_boundary(std::string_view& rest) {
  if (rest.size() < kLineEnd.size()) return false;
  const bool is_last = rest.starts_with("--");
  if (!is_last && !rest.starts_with(kLineEnd)) return malformed_form("a boundary that does not end its line");
  if (!is_last && ++num_parts_ > kMaxParts) return malformed_form(fmt::format("more than {} parts", kMaxParts));
  rest.remove_prefix(kLineEnd.size());
  state_ = is_last ? State::kEnd : State::kHeaders;
  return true;
}

ApiResult<bool> FormReader::read_headers(std::string_view& rest, FormParts& parts) {
  const std::size_t end = rest.substr(0, kMaxPartHeaderBytes).find("\r\n\r\n");
  if (end == rest.npos && rest.size() < kMaxPartHeaderBytes) return false;
  if (end == rest.npos) {
    return malformed_form(fmt::format("a part whose headers do not end within {} bytes", kMaxPartHeaderBytes));
  }
  KVASIR_TRY(PartHead head, read_part_head(rest.substr(0, end)));
  KVASIR_CHECKED(parts.begin_part(std::move(head.name), std::move(head.file_name)));
  rest.remove_prefix(end + 2 * kLineEnd.size());
  state_ = State::kFirstContent;
  return true;
}

// A part may have no content: its boundary's line end is that of the empty line before.
ApiResult<bool> FormReader::read_first_content(std::string_view& rest) {
  const std::string_view mark = bare_mark();
  if (rest.size() < mark.size() && mark.starts_with(rest)) return false;
  const bool is_empty = rest.starts_with(mark);
  if (is_empty) rest.remove_prefix(mark.size());
  state_ = is_empty ? State::kBoundary : State::kContent;
  return true;
}

// Passes on what can be no part of a boundary.
ApiResult<bool> FormReader::read_content(std::string_view& rest, FormParts& parts) {
  const std::size_t end = rest.find(mark_);
  const bool has_end = end != rest.npos;
  const std::size_t num_held = has_end ? 0 : std::min(rest.size(), mark_.size() - 1);
  const std::size_t num_passed = has_end ? end : rest.size() - num_held;
  if (num_passed > 0) KVASIR_CHECKED(parts.content(rest.substr(0, num_passed)));
  rest.remove_prefix(has_end ? end + mark_.size() : num_passed);
  if (has_end) state_ = State::kBoundary;
  return has_end;
}

}  // namespace kvasir::server::http
