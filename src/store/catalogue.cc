#include "store/catalogue.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "base/ollama_name.h"
#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kSha256Digits = 64;

// Reads one catalogue; every fault becomes an Error that names the source and the line.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(printable_line(source)) {}

  std::unexpected<Error> bad(const toml::node& node, std::string_view problem) const {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: line {}: {}", source_, node.source().begin.line, problem));
  }

  template <class T>
  Result<T> field(const toml::table& table, std::string_view key, std::string_view kind) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return bad(table, fmt::format("{} is missing", key));
    const auto value = node->value_exact<T>();
    if (!value) return bad(*node, fmt::format("{} must be {}", key, kind));
    return *value;
  }

  Result<std::string> text(const toml::table& table, std::string_view key) const {
    KVASIR_TRY(std::string value, field<std::string>(table, key, "a string"));
    if (value.empty()) return bad(table, fmt::format("{} is empty", key));
    return value;
  }

  Status known_keys(const toml::table& table, const std::set<std::string_view>& known) const {
    for (const auto& [key, node] : table) {
      if (!known.contains(key.str())) return bad(node, fmt::format("unknown key {}", printable(key.str())));
    }
    return {};
  }

  // Calls `read` with each table of the array `key`.
  template <class Read>
  Status each_table(const toml::table& table, std::string_view key, Read read) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr) return bad(*node, fmt::format("{} must be an array of tables", key));
    for (const toml::node& element : *array) {
      const toml::table* element_table = element.as_table();
      if (element_table == nullptr) return bad(element, fmt::format("{} must be an array of tables", key));
      KVASIR_CHECKED(read(*element_table));
    }
    return {};
  }

  Result<Origin> origin(const toml::table& table) const {
    const auto type = text(table, "type");
    if (!type) return std::unexpected(type.error());
    if (*type == "path") {
      KVASIR_CHECKED(known_keys(table, {"type", "path"}));
      KVASIR_TRY(std::string path, text(table, "path"));
      return PathOrigin{std::move(path)};
    }
    if (*type != "pypi") {
      return bad(table, fmt::format("type is \"{}\", known are \"pypi\" and \"path\"", printable(*type)));
    }
    KVASIR_CHECKED(known_keys(table, {"type", "packages", "version", "members"}));
    PypiOrigin pypi;
    KVASIR_TRY(pypi.version, text(table, "version"));
    KVASIR_TRY(pypi.members, text(table, "members"));
    const toml::array* packages = table["packages"].as_array();
    if (packages == nullptr || packages->empty()) return bad(table, "packages must be an array of names");
    for (const toml::node& package : *packages) {
      const auto name = package.value_exact<std::string>();
      // Goes on pip's command line, where a leading dash would be an option.
      if (!name || !is_package_name(*name)) return bad(package, "packages must be an array of names");
      pypi.packages.push_back(*name);
    }
    return pypi;
  }

  Result<CatalogueEntry> entry(const toml::table& table) const {
    KVASIR_CHECKED(known_keys(table, {"name", "description", "license", "file", "sha256", "size_bytes", "files",
                                      "chat_template", "sources"}));
    CatalogueEntry entry;
    KVASIR_TRY(entry.name, text(table, "name"));
    KVASIR_TRY(entry.description, text(table, "description"));
    KVASIR_TRY(entry.license, text(table, "license"));
    KVASIR_TRY(entry.file_name, text(table, "file"));
    if (entry.file_name.front() == '.' || entry.file_name.find('/') != std::string::npos) {
      return bad(table, fmt::format("file must be a plain file name, not {}", printable(entry.file_name)));
    }
    KVASIR_CHECKED(read_files(table, entry));
    KVASIR_TRY(entry.has_chat_template, field<bool>(table, "chat_template", "true or false"));
    KVASIR_CHECKED(each_table(table, "sources", [&](const toml::table& source) -> Status {
      KVASIR_TRY(Origin found, origin(source));
      entry.origins.push_back(std::move(found));
      return {};
    }));
    if (entry.origins.empty()) return bad(table, "sources is missing or empty");
    for (const Origin& origin : entry.origins) {
      const auto* pypi = std::get_if<PypiOrigin>(&origin);
      if (entry.is_folder() && pypi != nullptr && pypi->packages.size() != 1) {
        return bad(table, "the files of a folder are in one package");
      }
    }
    return entry;
  }

  // A folder's files, or the sum and the size of the one file.
  Status read_files(const toml::table& table, CatalogueEntry& entry) const {
    const auto read_file = [&](const toml::table& file) -> Status {
      KVASIR_CHECKED(known_keys(file, {"name", "sha256", "size_bytes"}));
      KVASIR_TRY(CatalogueFile found, file_of(file));
      KVASIR_TRY(found.name, text(file, "name"));
      if (!is_below_folder(found.name)) {
        return bad(file, fmt::format("name must be a path below the folder, not {}", printable(found.name)));
      }
      entry.files.push_back(std::move(found));
      return {};
    };
    KVASIR_CHECKED(each_table(table, "files", read_file));
    if (!entry.is_folder()) {
      KVASIR_TRY(CatalogueFile only, file_of(table));
      entry.sha256 = std::move(only.sha256);
      entry.size_bytes = only.size_bytes;
      return {};
    }
    if (table.contains("sha256") || table.contains("size_bytes")) {
      return bad(table, "sha256 and size_bytes are those of each of the files");
    }
    for (const CatalogueFile& file : entry.files) entry.size_bytes += file.size_bytes;
    entry.sha256 = std::ranges::max(entry.files, {}, &CatalogueFile::size_bytes).sha256;
    return {};
  }

  // The sum and the size of one file.
  Result<CatalogueFile> file_of(const toml::table& table) const {
    CatalogueFile file;
    KVASIR_TRY(file.sha256, text(table, "sha256"));
    if (file.sha256.size() != kSha256Digits ||
        file.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return bad(table, "sha256 must be 64 lower-case hex digits");
    }
    KVASIR_TRY(file.size_bytes, field<std::int64_t>(table, "size_bytes", "a number of bytes"));
    if (file.size_bytes <= 0)
      return bad(table, fmt::format("size_bytes must be positive, not {}", file.size_bytes));
    return file;
  }

 private:
  // Of plain names, which are no glob either.
  static bool is_below_folder(std::string_view path) {
    const auto allowed = [](char c) { return c != '*' && c != '?' && c != '[' && c != '\\' && c >= ' ' && c <= '~'; };
    for (const auto part : std::views::split(path, '/')) {
      const std::string_view name(part.begin(), part.end());
      if (name.empty() || name == "." || name == ".." || !std::ranges::all_of(name, allowed)) return false;
    }
    return true;
  }
  static bool is_package_name(std::string_view name) {
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_' || c == '.';
    };
    return !name.empty() && name.front() != '-' && std::ranges::all_of(name, allowed);
  }

  std::string source_;
};

// The library throws; this is where that ends.
Result<toml::table> parse_toml(std::string_view text, std::string_view source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: line {}: {}", printable_line(source), error.source().begin.line,
                                  printable(error.description(), 200)));
  }
}

}  // namespace

std::string_view type_of(const Origin& origin) {
  return std::holds_alternative<PypiOrigin>(origin) ? "pypi" : "path";
}

Result<Catalogue> Catalogue::parse(std::string_view toml, std::string_view source) {
  const Reader reader(source);
  KVASIR_TRY(const toml::table root, parse_toml(toml, source));
  KVASIR_CHECKED(reader.known_keys(root, {"default", "model"}));
  Catalogue catalogue;
  KVASIR_CHECKED(reader.each_table(root, "model", [&](const toml::table& table) -> Status {
    KVASIR_TRY(CatalogueEntry entry, reader.entry(table));
    if (catalogue.find(entry.name) != nullptr) {
      return reader.bad(table, fmt::format("the model {} appears twice", printable(entry.name)));
    }
    catalogue.entries_.push_back(std::move(entry));
    return {};
  }));
  if (root.contains("default")) {
    KVASIR_TRY(catalogue.default_name_, reader.text(root, "default"));
  }
  return catalogue;
}

const CatalogueEntry* Catalogue::find(std::string_view name) const {
  name = without_ollama_library(name);
  const auto it = std::ranges::find(entries_, name, &CatalogueEntry::name);
  if (it != entries_.end()) return &*it;
  std::string_view family = name;
  if (family.ends_with(":latest")) family.remove_suffix(std::string_view(":latest").size());
  const CatalogueEntry* only = nullptr;
  for (const CatalogueEntry& entry : entries_) {
    const bool is_of_family = entry.name.size() > family.size() && entry.name.starts_with(family) &&
                              entry.name[family.size()] == ':';
    if (!is_of_family) continue;
    if (only != nullptr) return nullptr;
    only = &entry;
  }
  return only;
}

Status Catalogue::merge(Catalogue other, std::string_view source) {
  for (CatalogueEntry& entry : other.entries_) {
    const auto ours = std::ranges::find(entries_, entry.name, &CatalogueEntry::name);
    if (ours == entries_.end()) {
      entries_.push_back(std::move(entry));
    } else {
      *ours = std::move(entry);
    }
  }
  if (!other.default_name_.empty()) default_name_ = std::move(other.default_name_);
  if (!default_name_.empty() && find(default_name_) == nullptr) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: default is \"{}\", which no model is called",
                                                       printable_line(source), printable(default_name_)));
  }
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const auto other_entry = std::find_if(std::next(entry), entries_.end(), [&](const CatalogueEntry& later) {
      return later.file_name == entry->file_name;
    });
    if (other_entry == entries_.end()) continue;
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("{}: the models {} and {} would share the file {}", printable_line(source),
                    printable(entry->name), printable(other_entry->name), printable(entry->file_name)));
  }
  return {};
}

}  // namespace kvasir::store
