// Tokens that a model writes itself, where it is to be measured on what it will write.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// `num_tokens` of texts at temperature 1, one behind the other, each of at most `text_tokens`. Every second text is a chat, where the model has a template.
// Seeded: the same model gives the same tokens on one machine. Blocks; `progress` is told the share that is written.
// Errors: as Engine::submit and encode_chat, kCancelled.
Result<std::vector<TokenId>> write_own_text(Engine& engine, std::int64_t num_tokens, std::int32_t text_tokens,
                                            const KeepGoing& keep_going, const std::function<void(double)>& progress);

}  // namespace kvasir::eval
