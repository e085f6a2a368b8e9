// A panel: a run of blocks of some groups of rows, decoded once into bytes, 6 to 24 KB that the L1 cache
// holds, by which all tokens are multiplied, kPanelTokens at a time. Included after blocks-inl.h and
// an ISA's panel.h.
//
// Compared with a tile, which decodes for 16 tokens, what is read of the activations serves several vectors
// of rows: a tile is bound by its loads. The operations on a sum and their order are the tile's, so the
// results are equal.

inline constexpr int kVectorsPerGroup = kPackedRows / kLanes;

// A panel has kVectors vectors of rows: those of the first group, then those of the next.
template <class Unit, int kVectors>
struct Panel {
  alignas(64) PanelGroupOf4<Unit::kBits, kVectors> codes[kPanelBlocks<Unit::kBits>][kGroupsOf4PerBlock];
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
      CodeLanes codes[kGroupsOf4PerBlock];
      decode(unit, block, lane, codes);
      // An ISA that multiplies by several groups of 4 at once may lay them otherwise.
      if constexpr (requires { store_panel_block(codes, v, panel.codes[0]); }) {
        store_panel_block(codes, v, panel.codes[b - begin]);
      } else {
#pragma GCC unroll 8
        for (int j = 0; j < kGroupsOf4PerBlock; ++j) {
          store_panel_codes<Unit::kBits, Unit::kZeroShift>(panel.codes[b - begin][j].of[v], codes[j]);
        }
      }
      panel.scales[b - begin][v] = load_scales(unit, block, lane);
    }
  }
}

// A panel's weights before they are decoded. They are asked for in parts, while the panel before is
// multiplied by: all at once they would keep the core from waiting for anything else.
template <class Unit, int kGroups>
struct PanelWeights {
  decltype(units_at<Unit>(std::declval<const MatmulArgs&>(), 0)) units;  // of the first group
  std::int64_t units_per_group;
  std::int64_t begin_block, end_block;

  KVASIR_FORCE_INLINE void prefetch(std::int64_t part, std::int64_t num_parts) const {
    const std::int64_t num_blocks = end_block - begin_block, num_all = kGroups * num_blocks;
    for (std::int64_t i = num_all * part / num_parts; i < num_all * (part + 1) / num_parts; ++i) {
      const std::int64_t b = begin_block + i % num_blocks;
      prefetch_block<Unit, 0>(units[i / num_blocks * units_per_group + b / Unit::kBlocks],
                              static_cast<int>(b % Unit::kBlocks));
    }
  }
};

template <class Unit, int kVectors>
using PanelBlock = PanelGroupOf4<Unit::kBits, kVectors>[kGroupsOf4PerBlock];

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
