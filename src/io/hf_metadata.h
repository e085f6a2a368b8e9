// A folder's config.json in GGUF's terms.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/hf_config.h"
#include "io/hf_mapping.h"
#include "io/metadata.h"
#include "kvasir/result.h"

namespace kvasir::io {

using MetadataValues = std::map<std::string, MetadataValue, std::less<>>;

struct HfMetadata {
  MetadataValues values;
  // Tensors that GGUF files have and folders do not: a name, and one row.
  std::vector<std::pair<std::string, std::vector<float>>> vectors;
};

// Errors: kBadFile naming the key: a wrong type, an activation or RoPE that is not known, or a key that would change
// numbers and that the mapping does not know.
Result<HfMetadata> map_config(const HfConfig& config, const HfMapping& mapping);
// The same for whoever only describes the folder: as much as can be mapped. `faults` gets every error.
HfMetadata describe_config(const HfConfig& config, const HfMapping& mapping, std::vector<Error>& faults);

// The part of it about layers of two kinds, where those that see everything have other heads, or the last ones a wider
// MLP. Writes over what all layers have in common. Errors: as map_config, also where layers of one kind differ.
struct HfLayerSizes {
  std::vector<bool> is_local;  // by layer: it has a window
  std::int64_t head_dim = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t intermediate_size = 0;
};
// Returns the size of heads that see everything.
Result<std::int64_t> map_layer_kinds(const HfConfig& config, const HfMapping& mapping, const HfLayerSizes& sizes,
                                     HfMetadata& metadata);

// The part of it about RoPE. `sizes` are the model's. Errors: as map_config.
struct HfRopeSizes {
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  std::int64_t local_head_dim = 0;  // of window layers where they have another; 0: the same
};
Status map_rope(const HfConfig& config, const HfMapping& mapping, const HfRopeSizes& sizes, HfMetadata& metadata);

}  // namespace kvasir::io
