#include "io/kv_calibration.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/json_writer.h"
#include "base/printable.h"

namespace kvasir::io {
namespace {

constexpr const char* kKey = "kv_format_costs";

std::unexpected<Error> bad_file(const std::string& path, std::string_view what) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: {}; kvasir calibrate-kv writes it anew", printable_line(path), what));
}

}  // namespace

std::string kv_calibration_path(const std::string& model_path) { return model_path + ".kv.json"; }

Result<std::optional<KvCalibration>> read_kv_calibration(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object costs;
  if (parser.load(path)[kKey].get_object().get(costs) != simdjson::SUCCESS) {
    return bad_file(path, fmt::format("no JSON with an object {}", kKey));
  }
  KvCalibration calibration;
  for (const auto [name, json] : costs) {
    double cost = 0.0;
    if (json.get_double().get(cost) != simdjson::SUCCESS || !std::isfinite(cost) || cost < 0.0) {
      return bad_file(
          path, fmt::format("the cost of {} is no number of at least 0", printable_line(std::string(name))));
    }
    calibration.costs.emplace(name, cost);
  }
  return calibration;
}

Status write_kv_calibration(const std::string& path, const KvCalibration& calibration) {
  std::string text;
  JsonWriter json(text, JsonWriter::Style::kPretty);
  json.begin_object().key(kKey).begin_object();
  for (const auto& [name, cost] : calibration.costs) json.member(name, cost);
  json.end_object().end_object();
  text += '\n';
  const std::string staged = path + ".part";
  std::FILE* file = std::fopen(staged.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed && std::rename(staged.c_str(), path.c_str()) == 0) return {};
  const std::string reason = std::strerror(errno);
  std::remove(staged.c_str());
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: {}", printable_line(path), reason));
}

}  // namespace kvasir::io
