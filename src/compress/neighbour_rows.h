// A folder's queries and keys in the order of GGUF files.
#pragma once

#include <memory>

#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::compress {

// RoPE turns pairs (i, i + d/2) of a head in a folder, and neighbours in GGUF files of the same architecture. Gives `source`
// with the rows of attn_q and attn_k, and the numbers of their biases, as other readers of GGUF expect them, and without
// its key rope.style. `source` is borrowed. Null where it turns neighbours already, or has norms of queries, which stand in
// the folder's order. Error (kBadFile): heads that do not divide the rows.
Result<std::unique_ptr<io::WeightSource>> with_neighbour_rows(const io::WeightSource& source);

}  // namespace kvasir::compress
