#include "io/testing/gguf_case.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "base/check.h"

namespace kvasir::io {
namespace {

constexpr std::size_t kAlignment = 32;

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append_string(std::string& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  out += text;
}

// "-" stands for the empty string, which a line of words cannot hold.
std::string word(std::istringstream& line) {
  std::string text;
  CHECK(line >> text);
  return text == "-" ? std::string() : text;
}

std::uint64_t number(std::istringstream& line) {
  const std::string text = word(line);
  return text.starts_with('-') ? static_cast<std::uint64_t>(std::stoll(text)) : std::stoull(text);
}

std::uint32_t value_type(const std::string& name) {
  static const std::map<std::string, std::uint32_t> kTypes = {{"u8", 0},     {"u16", 2},   {"u32", 4},
                                                              {"i32", 5},    {"f32", 6},   {"bool", 7},
                                                              {"string", 8}, {"array", 9}, {"u64", 10}};
  const auto known = kTypes.find(name);
  return known != kTypes.end() ? known->second : static_cast<std::uint32_t>(std::stoul(name));
}

void append_value(std::string& out, std::uint32_t type, std::istringstream& line) {
  switch (type) {
    case 0:
    case 7:
      return append(out, static_cast<std::uint8_t>(number(line)));
    case 2:
      return append(out, static_cast<std::uint16_t>(number(line)));
    case 6:
      return append(out, std::stof(word(line)));
    case 8:
      return append_string(out, word(line));
    case 10:
      return append(out, number(line));
    default:
      return append(out, static_cast<std::uint32_t>(number(line)));
  }
}

void append_entry(std::string& out, bool is_array, std::istringstream& line) {
  append_string(out, word(line));
  const std::uint32_t type = value_type(word(line));
  if (!is_array) {
    append(out, type);
    return append_value(out, type, line);
  }
  append<std::uint32_t>(out, 9);
  append(out, type);
  append(out, number(line));
  while (line >> std::ws && !line.eof()) append_value(out, type, line);
}

void append_tensor(std::string& out, std::istringstream& line) {
  append_string(out, word(line));
  const std::uint64_t type = number(line);
  std::vector<std::uint64_t> dimensions;
  std::istringstream shape(word(line));
  for (std::string size; std::getline(shape, size, 'x');) dimensions.push_back(std::stoull(size));
  append(out, static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t size : dimensions) append(out, size);
  append(out, static_cast<std::uint32_t>(type));
  append(out, number(line));
}

}  // namespace

std::vector<GgufCase> read_gguf_cases(const std::string& path) {
  std::ifstream file(path);
  CHECK(file.is_open());
  std::vector<GgufCase> cases;
  bool open = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("//")) continue;
    if (line.starts_with("# ")) {
      CHECK(!open);
      cases.push_back({line.substr(2), {}, {}});
      open = true;
    } else if (line == "opens" || line.starts_with("error ")) {
      CHECK(open);
      if (line != "opens") cases.back().expected_error = line.substr(6);
      open = false;
    } else {
      CHECK(open);
      cases.back().lines.push_back(line);
    }
  }
  CHECK(!open);
  return cases;
}

std::string write_gguf(const std::vector<std::string>& lines) {
  std::string magic = "GGUF";
  std::string entries;
  std::string tensors;
  std::map<std::string, std::uint64_t> fields = {
      {"version", 3}, {"num_tensors", 0}, {"num_entries", 0}, {"data", 0}};
  std::map<std::string, std::uint64_t> overrides;
  for (const std::string& text : lines) {
    std::istringstream line(text);
    const std::string verb = word(line);
    if (verb == "kv" || verb == "array") {
      append_entry(entries, verb == "array", line);
      ++fields["num_entries"];
    } else if (verb == "tensor") {
      append_tensor(tensors, line);
      ++fields["num_tensors"];
    } else if (verb == "magic") {
      magic = word(line);
    } else {
      CHECK(verb == "cut" || fields.contains(verb));
      overrides[verb] = number(line);
    }
  }
  for (const auto& [name, value] : overrides) fields[name] = value;
  std::string out = magic;
  append(out, static_cast<std::uint32_t>(fields["version"]));
  append(out, fields["num_tensors"]);
  append(out, fields["num_entries"]);
  out += entries + tensors;
  out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment + fields["data"]);
  if (overrides.contains("cut")) out.resize(overrides["cut"]);
  return out;
}

}  // namespace kvasir::io
