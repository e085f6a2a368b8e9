#include "cli/model_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "io/model_fingerprint.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

// The second and further files of a split model, and what goes beside another model.
bool is_part(const std::string& stem) {
  const std::size_t of = stem.rfind("-of-");
  const bool is_split = of != stem.npos && of >= 5 && stem.find_first_not_of("0123456789", of + 4) == stem.npos;
  return (is_split && stem.substr(of - 5, 5) != "00001") || stem.starts_with("mmproj");
}

Result<std::vector<std::string>> models_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const bool is_file = path.extension() == ".gguf" && !is_part(path.stem().string());
    if (is_file || fs::exists(path / "config.json")) found.push_back(path.string());
  }
  if (error) {
    return make_error(ErrorKind::kNotFound, fmt::format("--model-dir {}: {}", printable_line(folder), error.message()),
                      "model-dir");
  }
  std::ranges::sort(found);
  return found;
}

// Splits "[MODEL=]NAME" into the place it is for, and the name.
Result<std::pair<ModelPlace*, std::string>> name_for(std::vector<ModelPlace>& places, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string model = equals == text.npos ? places.front().model : text.substr(0, equals);
  const std::string name = equals == text.npos ? text : text.substr(equals + 1);
  const auto place = std::ranges::find_if(
      places, [&](const ModelPlace& at) { return at.model == model || default_name(at.model) == model; });
  if (place == places.end()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("--served-model-name: {} is none of the models", printable_line(model)),
                      "served-model-name");
  }
  if (name.empty()) {
    return make_error(ErrorKind::kUsage, "--served-model-name: a name is missing", "served-model-name");
  }
  return std::pair{&*place, name};
}

Status check_names(const std::vector<ModelPlace>& places) {
  std::vector<std::string> names;
  for (const ModelPlace& place : places) {
    names.push_back(place.name);
    names.insert(names.end(), place.names.begin(), place.names.end());
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return make_error(ErrorKind::kUsage,
                    fmt::format("two models would be called {} (--served-model-name MODEL=NAME tells them apart)",
                                printable_line(*twice)),
                    "served-model-name");
}

}  // namespace

std::string default_name(const std::string& model) {
  if (model.ends_with(".gguf")) return fs::path(model).stem().string();
  const bool is_folder = model.find('/') != model.npos && !model.starts_with("hf:") && fs::is_directory(model);
  return is_folder ? fs::path(model).lexically_normal().filename().string() : model;
}

Result<std::vector<ModelPlace>> list_models(const ModelSetOptions& options) {
  std::vector<ModelPlace> places;
  for (const std::string& model : options.models) places.push_back({.model = model, .name = default_name(model)});
  if (!options.model_dir.empty()) {
    KVASIR_TRY(const std::vector<std::string> found, models_in(options.model_dir));
    for (const std::string& model : found) {
      places.push_back({.model = model, .name = default_name(model), .is_optional = true});
    }
  }
  if (places.empty()) {
    return make_error(ErrorKind::kUsage, options.model_dir.empty()
                                             ? "MODEL is required: a catalogue name, a .gguf file or a folder (see kvasir serve --help)"
                                             : fmt::format("--model-dir {}: there is no model in it",
                                                           printable_line(options.model_dir)),
                      "model");
  }
  std::vector<const ModelPlace*> renamed;
  for (const std::string& text : options.served_names) {
    KVASIR_TRY(const auto named, name_for(places, text));
    const bool is_first = std::ranges::find(renamed, named.first) == renamed.end();
    if (is_first) {
      named.first->name = named.second;
      renamed.push_back(named.first);
    } else {
      named.first->names.push_back(named.second);
    }
  }
  KVASIR_CHECKED(check_names(places));
  return places;
}

std::int64_t loaded_file_bytes(const std::vector<ModelPlace>& places, std::int32_t max_loaded) {
  std::vector<std::int64_t> bytes;
  for (const ModelPlace& place : places) {
    const auto path = store::resolve_model(place.model);
    bytes.push_back(path ? io::weight_file_bytes(*path) : 0);
  }
  std::ranges::sort(bytes, std::greater());
  if (max_loaded > 0 && std::ssize(bytes) > max_loaded) bytes.resize(static_cast<std::size_t>(max_loaded));
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

server::api::ServedModel served_on_demand(const ModelPlace& place, const ShadowOptions& shadows, Logger& logger,
                                          std::unique_ptr<WeightsWatch> first_watch) {
  const auto watch = std::make_shared<std::unique_ptr<WeightsWatch>>(std::move(first_watch));
  const auto load = [place, shadows, watch, &logger](const std::atomic<bool>& is_cancelled) -> Result<std::unique_ptr<Engine>> {
    EngineConfig config = place.config;
    KVASIR_TRY(config.model_path, store::resolve_model(place.model));
    config.model_name = printable_line(place.model);
    if (!config.packed_cache_directory) config.packed_cache_directory = store::packed_cache_of(config.model_path);
    config.kv_journal = nullptr;  // of the first model
    logger.info("{}: loading", printable_line(place.name));
    const auto begin = std::chrono::steady_clock::now();
    auto engine = Engine::load(config, [&](const std::string&, double) { return !is_cancelled; });
    if (!engine) {
      logger.warning("{}: {}", printable_line(place.name), engine.error().message);
      return engine;
    }
    *watch = std::make_unique<WeightsWatch>(config.model_path);
    logger.info("{}: loaded in {:.1f} s", printable_line(place.name),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return with_shadows(std::move(*engine), shadows, config, logger);
  };
  const auto unloaded = [place_name = place.name, watch, &logger] {
    watch->reset();
    logger.info("{}: unloaded", printable_line(place_name));
  };
  return {.name = place.name,
          .names = place.names,
          .path = place.model,
          .engine = std::make_shared<OnDemandEngine>(place.described),
          .load = load,
          .unloaded = unloaded};
}

}  // namespace kvasir::cli
