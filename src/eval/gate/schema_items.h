// What the structured layer asks: schemas from a file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "eval/gate/structured_layer.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// Of JSON lines {"name", "schema", "tests"} as `kvasir schema test` has them: `num_schemas`, at even distances among
// those that are supported and short. Errors: kBadFile with the line, as Engine::encode_chat.
Result<std::vector<SchemaItem>> make_schema_items(const Engine& engine, std::string_view lines, std::int32_t num_schemas,
                                                  std::int32_t max_answer_tokens);

}  // namespace kvasir::eval
