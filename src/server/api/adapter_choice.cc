#include "server/api/adapter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "server/api/field.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxLoraId = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxLoraScale = 1000.0;

std::unexpected<ApiError> unknown_adapter(std::int64_t id, std::size_t count) {
  const std::string listed = count == 0 ? "none" : fmt::format("{}", count);
  return bad_request(fmt::format("lora: there is no adapter {}, /lora-adapters lists {}", id, listed), "lora");
}

}  // namespace

ApiResult<std::vector<LoraScale>> lora_scales_of(const FieldInput& field) {
  std::vector<LoraScale> list;
  if (!field.json.is_object() && asks_for_nothing(field.json)) return list;
  KVASIR_TRY(const JsonArray items, array_of(field));
  for (const JsonElement json : items) {
    const FieldInput item = field.at(list.size(), json);
    KVASIR_TRY(const JsonObject object, object_of(item));
    KVASIR_TRY(FieldInput id, required_member(item, object, "id"));
    KVASIR_TRY(FieldInput scale, required_member(item, object, "scale"));
    id.range = {0, kMaxLoraId};
    scale.range = {-kMaxLoraScale, kMaxLoraScale};
    LoraScale& made = list.emplace_back();
    KVASIR_TRY(made.id, integer_of(id));
    KVASIR_TRY(const double number, number_of(scale));
    made.scale = static_cast<float>(number);
  }
  return list;
}

ApiResult<ChosenAdapter> adapter_by_list(const ApiContext& context, std::span<const LoraScale> list) {
  const AdapterNames names = context.engine.adapters();
  std::optional<LoraScale> chosen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const LoraScale& item = list[i];
    if (item.id >= std::ssize(*names)) return unknown_adapter(item.id, names->size());
    if (std::ranges::find(list.first(i), item.id, &LoraScale::id) != list.begin() + static_cast<std::ptrdiff_t>(i)) {
      return bad_request(fmt::format("lora: adapter {} stands there twice", item.id), "lora");
    }
    if (item.scale == 0.0f) continue;
    if (chosen) {
      return bad_request(fmt::format("lora: adapters {} and {} at once are not supported: one may have a scale other than 0",
                                     chosen->id, item.id),
                         "lora", "unsupported_parameter");
    }
    chosen = item;
  }
  if (!chosen) return ChosenAdapter();
  return ChosenAdapter{.name = (*names)[static_cast<std::size_t>(chosen->id)], .scale = chosen->scale};
}

ChosenAdapter adapter_by_model(const ApiContext& context, std::string_view model) {
  if (std::string named = adapter_of(context, model); !named.empty()) return {.name = std::move(named)};
  ChosenAdapter usual = context.default_adapter->get();
  const AdapterNames names = context.engine.adapters();
  if (std::ranges::find(*names, usual.name) == names->end()) return {};  // it was unloaded since
  return usual;
}

ApiStatus choose_adapter(const ApiContext& context, const GenerationRequest& request, Request& wanted) {
  if (request.lora.empty()) {
    choose_adapter(context, request.model, wanted);
    return {};
  }
  KVASIR_TRY(ChosenAdapter chosen, adapter_by_list(context, request.lora));
  const std::string named = adapter_of(context, request.model);
  if (!named.empty() && !chosen.name.empty() && named != chosen.name) {
    return bad_request(fmt::format("lora: it is about \"{}\", and the model is \"{}\": one adapter answers a request",
                                   printable(chosen.name), printable(named)),
                       "lora", "unsupported_parameter");
  }
  wanted.adapter = std::move(chosen.name);
  wanted.adapter_scale = chosen.scale;
  return {};
}

void choose_adapter(const ApiContext& context, std::string_view model, Request& wanted) {
  ChosenAdapter chosen = adapter_by_model(context, model);
  wanted.adapter = std::move(chosen.name);
  wanted.adapter_scale = chosen.scale;
}

ApiError adapter_failed(const std::string& name, const Error& error) {
  const bool is_passing = error.kind == ErrorKind::kMachine || error.kind == ErrorKind::kUnavailable;
  return {is_passing ? 503 : 400, fmt::format("the adapter \"{}\" could not be loaded: {}", printable(name), error.message),
          "model", is_passing ? "overloaded" : "model_not_loaded"};
}

}  // namespace kvasir::server::api
