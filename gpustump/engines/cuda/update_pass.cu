// A round's pass over the samples: scores, weights, and the changes of all histograms.
//
// `advance` is for classic stumps; `losses.cu` has its counterparts for other votes. A classic
// stump multiplies the weights of the samples that it gets wrong, and only the change of each
// integer weight is added to the histograms, which is exact. `advance` computes the changes; `add`
// adds them, including zeros. A branch that skips zeros took longer where about half of the changes
// are zero, as in most rounds (measured on an H100), and saved time only where nearly all are.

#include "common.cuh"

// If a cut lies inside a bin, mark the bin's samples on the left, or in the interval, with the
// round's number.
KERNEL mark(const Step* given) {
  const Step step = *given;
  FOR_GRID(k, step.begin, step.end) step.marks[sample_of(step.order[k])] = uint32(step.round);
  FOR_GRID(k, step.low_begin, step.low_end)
    step.marks[sample_of(step.order[k])] = uint32(step.round);
}

// The vectors of a run of classic stumps, one element for each sample, and their sums.
struct Samples {
  double* signed_weights;  // weights, each with the sign of its label
  double* scores;
  const int64* first_weights;  // the first round's integers; null if all are `equal_weight`
  int64 equal_weight;
  Sums* sums;     // `advance` adds the sums over its samples to these
  Layers layers;  // a single one
};

// What a step does to the samples.
struct Effect {
  int64 left, right, missing;  // the signs of the regions
  double vote;
  double grown, kept;  // the factors of the weights of wrong and of right samples
  int64 anew;          // whether the histograms get the whole new integers instead of the changes
  int64 rescale_exponent;  // for the search: see `weigh`
};

// Compute the next weight, score and change of some samples.
KERNEL advance(const Step* given, const Effect* what, const Samples samples) {
  const Step step = *given;
  const Effect effect = *what;
  clear(samples.layers, step);
  Sums mine = NO_SUMS;
#pragma unroll 1  // unrolled, the loop needs more registers than there are
  FOR_GRID(i, step.first_sample, step.first_sample + step.n_samples) {
    // Both are loaded before the first one is needed.
    double before = samples.signed_weights[i], score_before = samples.scores[i];
    int region = region_of(step, i);
    int64 sign = region == FIRST_REGION ? effect.left
                 : region == SECOND_REGION ? effect.right : effect.missing;
    bool predicted = sign > 0;
    double weight = fabs(before);
    bool positive = before > 0.0, wrong = predicted != positive;
    double after = weight * (wrong ? effect.grown : effect.kept);
    after = after > FLOOR ? after : FLOOR;
    double score = predicted ? score_before + effect.vote : score_before - effect.vote;
    int64 units = units_of(after), by = units - (effect.anew ? 0 : units_of(weight));
    samples.signed_weights[i] = positive ? after : -after;
    samples.scores[i] = score;
    samples.layers.change[i] = labelled(by, positive);
    int64 first_weight = samples.first_weights ? samples.first_weights[i] : samples.equal_weight;
    bool is_misclassified = (score > 0.0) != positive;
    mine.append({positive ? units : -units, units, is_misclassified ? first_weight : 0, units});
  }
  combine(mine, reinterpret_cast<Sums*>(shared));
  if (threadIdx.x == 0) add_to(samples.sums, mine);
}

// A group of features: where its codes begin, and which blocks work on it.
struct Group {
  int64 first_feature, n_features, width_bits, first_byte, first_block;
};

// A block adds up its samples in a table in shared memory. Each lane of a tile belongs to one
// feature and has a column of the table of its own. The column's number selects the bank of shared
// memory, so two lanes of a warp never use the same bank, nor the same word, whatever the codes
// are.
//
// The compiler turns a 64-bit addition in shared memory into a loop of compare-and-swap, which
// takes three times as long as two additions of 32 bits (measured on an H100). So a sum is two
// words. The value that the first addition returns tells whether the lower word carried, and the
// carry is added to the upper word with the upper half of the change. In a slot the lower words of
// all columns come first, then the upper ones.
template <int COLUMN_BITS>
struct Table {
  static constexpr int COLUMNS = 1 << COLUMN_BITS, N_SUMS = SLOTS << COLUMN_BITS;
  static constexpr int SLOT_SHIFT = COLUMN_BITS + 3;  // a slot has 2**this bytes
  static constexpr uint32 UPPER = 4 * COLUMNS;        // bytes from a lower word to its upper one

  // The word of the i-th sum's lower half.
  static __device__ uint32 lower_at(int64 i) {
    return uint32((i >> COLUMN_BITS) * 2 * COLUMNS + (i & (COLUMNS - 1)));
  }

  // Where the slot of a label and a code begins, in bytes. The code is byte number `byte` of
  // `word`, the label the highest bit of `upper`.
  static __device__ __forceinline__ uint32 slot_at(uint32 word, int byte, uint32 upper) {
    if (SLOT_SHIFT == 8)  // one permutation of bytes moves code and label to their places
      return bytes_of(word, upper, 0x0f00 | byte << 4) & 0x1ff00u;
    uint32 code = 8 * byte < SLOT_SHIFT ? word << (SLOT_SHIFT - 8 * byte)
                                        : word >> (8 * byte - SLOT_SHIFT);
    return (code & (255u << SLOT_SHIFT)) | upper >> 31 << (SLOT_SHIFT + 8);
  }

  // Add the changes of four samples of one feature, whose codes are the bytes of `word`. Each
  // second addition waits for the first one, so four samples are added in parallel.
  static __device__ __forceinline__ void add_four(uint32 word, const longlong2& one,
                                                  const longlong2& two, uint32 column) {
    const uint64 by[4] = {uint64(one.x), uint64(one.y), uint64(two.x), uint64(two.y)};
    uint32 at[4], before[4];
#pragma unroll
    for (int k = 0; k < 4; k++) at[k] = column + slot_at(word, k, uint32(by[k] >> 32));
#pragma unroll
    for (int k = 0; k < 4; k++) before[k] = fetch_and_add(at[k], uint32(by[k]));
#pragma unroll
    for (int k = 0; k < 4; k++) add_only(at[k] + UPPER, uint32((by[k] + before[k]) >> 32));
  }

  // Add the changes of a run of samples of one feature.
  static __device__ __forceinline__ void add_run(const uint4& codes, const longlong2* changes,
                                                 uint32 column) {
    add_four(codes.x, changes[0], changes[1], column);
    add_four(codes.y, changes[2], changes[3], column);
    add_four(codes.z, changes[4], changes[5], column);
    add_four(codes.w, changes[6], changes[7], column);
  }

  // Add tiles of any group; each thread takes a lane.
  static __device__ void add_tiles(const uint4* tiles, const int64* change, int width_bits,
                                   int64 begin, int64 end) {
    int copy_bits = LANE_BITS - width_bits;
    uint32 table = address_of_shared();
    FOR_BLOCK(i, begin * LANES, end * LANES) {
      int lane = i % LANES;
      int64 run = (i / LANES << copy_bits) + (lane >> width_bits);
      const longlong2* own = reinterpret_cast<const longlong2*>(change + run * RUN);
      const uint4 codes = tiles[i];
      longlong2 changes[8];  // all are loaded before the first one is added
#pragma unroll
      for (int k = 0; k < 8; k++) changes[k] = own[k];
      add_run(codes, changes, table + (lane & (COLUMNS - 1)) * 4);
    }
    end_of_additions();
  }
};

// Add tiles of a group as wide as a tile; each warp takes a tile. While a tile is added, the codes
// and changes of the next tiles are copied to shared memory, after the table. Otherwise the warps
// would wait for memory most of the time.
struct Staged {
  static constexpr int DEPTH = 4, CHANGES = RUN / 2;  // words of 16 bytes
  static constexpr uint32 BYTES = (LANES + CHANGES) * 16, BEGIN = SLOTS * LANES * 8;

  static __device__ void add_tiles(const uint4* tiles, const int64* change, int64 begin,
                                   int64 end) {
    int warp_size = blockDim.x < 32 ? blockDim.x : 32, n_warps = blockDim.x / warp_size;
    int warp = threadIdx.x / 32, first_lane = threadIdx.x % 32;
    uint32 table = address_of_shared(), stage = BEGIN + warp * DEPTH * BYTES;
    const uint4* codes = tiles + (begin + warp) * LANES;  // those of the next tile to be fetched
    const uint4* changes = reinterpret_cast<const uint4*>(change) + (begin + warp) * CHANGES;
    int64 n_left = (end - begin - warp + n_warps - 1) / n_warps, n_to_fetch = n_left;
    auto fetch = [&](uint32 to) {
      if (n_to_fetch-- > 0) {
        for (int w = first_lane; w < LANES; w += warp_size) copy_16(to + w * 16, codes + w);
        for (int w = first_lane; w < CHANGES; w += warp_size)
          copy_16(to + (LANES + w) * 16, changes + w);
      }
      codes += n_warps * LANES;
      changes += n_warps * CHANGES;
      next_copies();
    };
    for (int place = 0; place < DEPTH - 1; place++) fetch(stage + place * BYTES);
    uint32 here = stage, before = stage + (DEPTH - 1) * BYTES;
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      wait_for_copies<DEPTH - 2>();
      __syncwarp();
      fetch(before);  // to where the last tile was
      const uint4* words = reinterpret_cast<const uint4*>(shared + here);
      const longlong2* staged = reinterpret_cast<const longlong2*>(words + LANES);
      for (int lane = first_lane; lane < LANES; lane += warp_size)
        Table<LANE_BITS>::add_run(words[lane], staged, table + lane * 4);
      before = here;
      here = here + BYTES < stage + DEPTH * BYTES ? here + BYTES : stage;
    }
    wait_for_copies<0>();
    end_of_additions();
  }
};

// Add the changes of `n` samples from `first` on to the histograms.
//
// COLUMN_BITS  the table has 2**COLUMN_BITS columns, at least as many as the widest group has
//              features: one for each lane if shared memory allows
// IS_STAGED    shared memory has room for `Staged`, too
// codes        tiles from the sample `first` on
// groups       (n_groups + 1); the last one's first_block is the number of blocks for a layer
// layers       what is added up; each layer has as many blocks
template <int COLUMN_BITS, bool IS_STAGED>
__device__ void add(const uint8* codes, const Group* groups, int64 n_groups, const Layers& layers,
                    int64 first, int64 n) {
  using Own = Table<COLUMN_BITS>;
  uint32* words = reinterpret_cast<uint32*>(shared);
  int64 n_blocks_each = groups[n_groups].first_block, layer = blockIdx.x / n_blocks_each;
  int64 block = blockIdx.x - layer * n_blocks_each;
  const int64* change = layers.change + layer * layers.n_padded + first;
  int64* histograms = layers.histograms + layer * layers.n_features * SLOTS;
  int64 g = 0;  // find the last group that begins at this block or before
  for (int64 end = n_groups; end - g > 1;) {
    int64 middle = (g + end) / 2;
    if (groups[middle].first_block <= block) g = middle;
    else end = middle;
  }
  Group group = groups[g];
  FOR_BLOCK(i, 0, 2 * Own::N_SUMS) words[i] = 0;
  __syncthreads();

  // This block's tiles: an equal share of the group's.
  int width_bits = int(group.width_bits), copy_bits = LANE_BITS - width_bits;
  int64 n_tiles = n / RUN >> copy_bits, n_blocks = groups[g + 1].first_block - group.first_block;
  block -= group.first_block;
  int64 begin = n_tiles * block / n_blocks, end = n_tiles * (block + 1) / n_blocks;
  const uint4* tiles = reinterpret_cast<const uint4*>(codes + group.first_byte);
  if (IS_STAGED && copy_bits == 0) Staged::add_tiles(tiles, change, begin, end);
  else Own::add_tiles(tiles, change, width_bits, begin, end);
  __syncthreads();

  FOR_BLOCK(i, 0, Own::N_SUMS) {
    int64 feature = i & ((1 << width_bits) - 1);
    uint32 at = Own::lower_at(i);
    uint64 sum = uint64(words[at + Own::COLUMNS]) << 32 | words[at];
    if (sum && feature < group.n_features)
      add_to(&histograms[(group.first_feature + feature) * SLOTS + (i >> COLUMN_BITS)],
             without_label(sum));
  }
}

#define ADD(name, COLUMN_BITS, IS_STAGED)                                                     \
  KERNEL_OF_FULL_BLOCKS add_##name(const uint8* codes, const Group* groups, int64 n_groups,   \
                                   const Layers layers, int64 first, int64 n) {               \
    add<COLUMN_BITS, IS_STAGED>(codes, groups, n_groups, layers, first, n);                   \
  }

ADD(staged, 5, true)
ADD(32, 5, false)
ADD(16, 4, false)
