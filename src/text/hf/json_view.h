// A value in a JSON document that knows its place, for error messages.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::text::hf {

// Errors are kBadFile and name the file and the JSON pointer. Absent and null are the same.
//
// Thread safety: as the document. Invariant: the document outlives the view.
class JsonView {
 public:
  // `place` names the file.
  JsonView(simdjson::dom::element value, std::string place) : value_(value), place_(std::move(place)) {}

  simdjson::dom::element value() const { return value_; }
  const std::string& place() const { return place_; }
  bool is_string() const { return value_.is_string(); }
  bool is_array() const { return value_.is_array(); }
  bool is_object() const { return value_.is_object(); }

  std::optional<JsonView> find(std::string_view key) const;
  Result<JsonView> at(std::string_view key) const;

  Result<std::string> string() const;
  Result<bool> boolean() const;
  Result<std::int64_t> integer() const;
  Result<std::vector<JsonView>> elements() const;

  Result<std::string> string_at(std::string_view key) const;
  // Where the member is absent, `otherwise`.
  Result<std::string> string_at(std::string_view key, std::string_view otherwise) const;
  Result<bool> boolean_at(std::string_view key, bool otherwise) const;
  Result<std::int64_t> integer_at(std::string_view key, std::int64_t otherwise) const;

  std::unexpected<Error> fail(std::string_view what) const;

 private:
  simdjson::dom::element value_;
  std::string place_;
};

// The error of a part of a file, with the place in front.
std::unexpected<Error> fail_at(const JsonView& view, const Error& error);

}  // namespace kvasir::text::hf
