// The statistics of a model's keys that lie beside its file, applied to its cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kv/cells/key_bases.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/result.h"
#include "model/model.h"

namespace kvasir {

// How the keys of a layer group turn; nothing where its layers turn in several ways. Valid as long as the model.
std::optional<kv::KeyTurning> key_turning(const model::Model& model, std::int32_t group);

// Gives the groups without a window their bases for sequences of so many tokens; without a file none has one, and the format
// k2pv2 is not used. Error (kBadFile): the file is another model's or does not fit this one.
Status apply_key_components(const std::string& model_path, const model::Model& model, std::int32_t max_tokens, kv::KvCacheConfig& kv);

// Replaces what lies beside the model's file; `heads`: of the groups without a window, in their order. None: nothing lies there
// afterwards. Errors: kMachine; kBadFile (the model's).
Status keep_key_components(const std::string& model_path, std::int32_t head_dim, std::span<const kv::KeyStatistics> heads);

}  // namespace kvasir
