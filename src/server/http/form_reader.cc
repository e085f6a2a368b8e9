#include "server/http/form_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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

// Name and file name, from the lines before a part's content.
ApiResult<FormPart> read_part_headers(std::string_view headers) {
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
    return FormPart{.name = *name, .file_name = parameter_of(value, "filename").value_or(""), .content = {}};
  }
  return malformed_form("a part without Content-Disposition");
}

}  // namespace

ApiResult<std::vector<FormPart>> parse_form(const Request& request) {
  KVASIR_TRY(const std::string boundary, boundary_of(request));
  const std::string mark = "--" + boundary, next_mark = "\r\n" + mark;
  std::string_view rest = request.body;
  if (!rest.starts_with(mark)) return malformed_form("it does not begin with its boundary");
  rest.remove_prefix(mark.size());
  std::vector<FormPart> parts;
  while (!rest.starts_with("--")) {
    if (!rest.starts_with(kLineEnd)) return malformed_form("a boundary that does not end its line");
    if (parts.size() == kMaxFormParts) return malformed_form(fmt::format("more than {} parts", kMaxFormParts));
    rest.remove_prefix(kLineEnd.size());
    const std::size_t headers_end = rest.substr(0, kMaxPartHeaderBytes).find("\r\n\r\n");
    if (headers_end == rest.npos) {
      return malformed_form(fmt::format("a part whose headers do not end within {} bytes", kMaxPartHeaderBytes));
    }
    KVASIR_TRY(FormPart part, read_part_headers(rest.substr(0, headers_end)));
    rest.remove_prefix(headers_end + 2 * kLineEnd.size());
    // A part without content: its boundary's line end is that of the empty line before.
    const bool is_empty = rest.starts_with(mark);
    const std::size_t end = is_empty ? 0 : rest.find(next_mark);
    if (end == rest.npos) return malformed_form("it ends within a part");
    part.content = rest.substr(0, end);
    rest.remove_prefix(end + (is_empty ? mark.size() : next_mark.size()));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace kvasir::server::http
