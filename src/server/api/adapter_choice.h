// Which adapter answers a request: its model's name says it, its `lora`, or what an operator has set.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kvasir/request.h"
#include "server/api/api_context.h"
#include "server/api/chosen_adapter.h"
#include "server/api/generation_request.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// The error of a request whose adapter did not come back: as of a load that fails.
ApiError adapter_failed(const std::string& name, const Error& error);

// A list of objects with id and scale. What asks for nothing is an empty list. Errors (400): the member that is no such
// thing.
ApiResult<std::vector<LoraScale>> lora_scales_of(const FieldInput& field);

// The one adapter that runs by a list: those that it does not name have scale 0. Errors (400): ids that no adapter has or
// that come twice, several adapters at once.
ApiResult<ChosenAdapter> adapter_by_list(const ApiContext& context, std::span<const LoraScale> list);

// The adapter that runs where the request is for a model of that name and has no list.
ChosenAdapter adapter_by_model(const ApiContext& context, std::string_view model);

// Puts the request's adapter into the engine's. Errors (400): adapter_by_list()'s, a list and a model's name that differ.
ApiStatus choose_adapter(const ApiContext& context, const GenerationRequest& request, Request& wanted);
// The same without a list.
void choose_adapter(const ApiContext& context, std::string_view model, Request& wanted);

}  // namespace kvasir::server::api
