// A panel: a run of blocks of some groups of rows, decoded once into bytes, 6 to 24 KB that the L1 cache
// holds, by which all tokens are multiplied, kPanelTokens at a time. Included after matmul_blocks-inl.h and
// an ISA's panel.h.
//
// Compared with a tile, which decodes for 16 tokens, what is read of the activations serves several vectors
// of rows: a tile is bound by its loads. The operations on a sum and their order are the tile's, so the
// results are equal.

inline constexpr int kVectorsPerGroup = kPackedRows / kLanes;

// Of kVectors vectors of rows: those of the first group, then those of the next.
template <class Unit, int kVectors>
struct Panel {
  alignas(64) PanelQuad<Unit::kBits, kVectors> codes[kPanelBlocks<Unit::kBits>][kPackedQuads];
  ScalesOf<Unit> scales[kPanelBlocks<Unit::kBits>][kVectors];
};

// Blocks [begin, end) of the panel's groups.
template <class Unit, int kVectors, class Units>
void fill_panel(const Units& units, std::int64_t units_per_group, std::int64_t begin, std::int64_t end,
                Panel<Unit, kVectors>& panel) {
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t first_unit = v / kVectorsPerGroup * units_per_group;
    const int lane = v % kVectorsPerGroup * kLanes;
    for (std::int64_t b = begin; b < end; ++b) {
      const Unit& unit = units[first_unit + b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      if (lane == 0) prefetch_block(unit, block);
      CodeLanes codes[kPackedQuads];
      decode(unit, block, lane, codes);
#pragma GCC unroll 8
      for (int j = 0; j < kPackedQuads; ++j) {
        store_panel_codes<Unit::kBits, Unit::kZeroShift>(panel.codes[b - begin][j].of[v], codes[j]);
      }
      panel.scales[b - begin][v] = load_scales(unit, block, lane);
    }
  }
}

template <class Unit, int kVectors>
using PanelBlock = PanelQuad<Unit::kBits, kVectors>[kPackedQuads];

// The sums of kPanelTokens tokens while a panel does not have all of k.
template <int kVectors>
struct PanelSums {
  FloatLanes of[kPanelTokens][kVectors];
};

// kPanelTokens tokens from `column` of a tile.
struct PanelColumns {
  const ConstActivationTile& tile;
  int column;
};
