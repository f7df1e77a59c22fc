// A round's pass over the samples: scores, weights, and the changes of all histograms.
//
// `advance` takes classic stumps; `losses.cu` has its counterparts for other votes. A classic stump
// multiplies the weights of the samples that it gets wrong, and only the change of each integer
// weight is added to the histograms, which is exact. `advance` computes the changes; `add` adds
// them.

#include "common.cuh"

// Where a cut lies inside a bin: mark the bin's samples on the left with the round's number.
KERNEL mark(const int* order, int64 begin, int64 end, int64 round, uint32* marks) {
  FOR_GRID(k, begin, end) marks[sample_of(order[k])] = uint32(round);
}

// The vectors of a run of classic stumps, one element for each sample, and their sums.
struct Samples {
  double* signed_weights;  // weights, each with the sign of its label
  double* scores;
  const int64* first_weights;  // the first round's integers; null if all are `equal_weight`
  int64 equal_weight;
  int64* change;  // what is added to the histograms, times 2, plus 1 for a positive label
  Sums* sums;     // `advance` adds the sums over its samples to it
};

// What is done to the samples.
struct Effect {
  int64 left, right, missing;  // the signs of the regions
  double vote;
  double grown, kept;  // what the weights of wrong and of right samples are multiplied by
  int64 anew;          // whether the histograms get the whole new integers instead of the changes
};

// Compute the next weight, score and change of some samples.
KERNEL advance(const CutCodes part, const Parting parting, const Effect effect,
               const Samples samples) {
  Sums mine = NO_SUMS;
#pragma unroll 1  // unrolled, the loop needs more registers than there are
  FOR_GRID(i, part.first_sample, part.first_sample + part.n_samples) {
    int region = region_of(part, parting, i);
    int64 sign = region == FIRST_REGION ? effect.left
                 : region == SECOND_REGION ? effect.right : effect.missing;
    bool predicted = sign > 0;
    double before = samples.signed_weights[i], weight = fabs(before);
    bool positive = before > 0.0, wrong = predicted != positive;
    double after = weight * (wrong ? effect.grown : effect.kept);
    after = after > FLOOR ? after : FLOOR;
    double score = predicted ? samples.scores[i] + effect.vote : samples.scores[i] - effect.vote;
    int64 units = units_of(after), by = units - (effect.anew ? 0 : units_of(weight));
    samples.signed_weights[i] = positive ? after : -after;
    samples.scores[i] = score;
    samples.change[i] = by * 2 + positive;
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

// What is added up: a layer for each output, or two with Newton votes, each with its histograms.
struct Layers {
  const int64* change;  // (n_layers, n_padded) for all samples, then zeros up to a whole tile
  int64* histograms;    // (n_layers, n_features, 2, 256): by label and code
  int64 n_padded, n_features;
};

// Add the changes of `n` samples from `first` on to the histograms.
//
// A block adds up its samples in a table in shared memory. Each lane of a tile belongs to one
// feature and has a column of the table to itself. The column's number selects the bank of shared
// memory, so two lanes of a warp never use the same bank, nor the same word, whatever the codes
// are. All lanes of a wide group hold the same samples, so the whole warp skips a change of zero.
//
// The compiler turns a 64-bit addition in shared memory into a loop of compare-and-swap (seen in
// the machine code for compute capability 9.0). So a sum is two words of 32 bits: what `atomicAdd`
// returns tells whether the lower word carried, and the carry is added to the upper word with the
// upper half of the change. Changes are added times 2, without the label; the sums fit even so.
//
// COLUMN_BITS  the table has 2**COLUMN_BITS columns, at least as many as the widest group has
//              features: one for each lane if shared memory allows
// codes        tiles from the sample `first` on
// groups       (n_groups + 1); the last one's first_block is the number of blocks for a layer
// layers       what is added up, each by as many blocks
template <int COLUMN_BITS>
__device__ void add(const uint8* codes, const Group* groups, int64 n_groups, const Layers layers,
                    int64 first, int64 n) {
  int64 n_blocks_each = groups[n_groups].first_block, layer = blockIdx.x / n_blocks_each;
  int64 block_here = blockIdx.x - layer * n_blocks_each;
  const int64* change = layers.change + layer * layers.n_padded;
  int64* histograms = layers.histograms + layer * layers.n_features * SLOTS;
  constexpr int N_WORDS = SLOTS << COLUMN_BITS;
  uint32* low = reinterpret_cast<uint32*>(shared);
  uint32* high = low + N_WORDS;
  int64 g = 0;  // find the last group that begins at this block or before
  for (int64 end = n_groups; end - g > 1;) {
    int64 middle = (g + end) / 2;
    if (groups[middle].first_block <= block_here) g = middle;
    else end = middle;
  }
  Group group = groups[g];
  FOR_BLOCK(i, 0, N_WORDS) low[i] = high[i] = 0;
  __syncthreads();

  // This block's tiles: an equal share of the group's.
  int width_bits = int(group.width_bits), copy_bits = LANE_BITS - width_bits;
  int64 n_tiles = n / RUN >> copy_bits, n_blocks = groups[g + 1].first_block - group.first_block;
  int64 block = block_here - group.first_block;
  int64 begin = n_tiles * block / n_blocks, end = n_tiles * (block + 1) / n_blocks;
  const uint4* tiles = reinterpret_cast<const uint4*>(codes + group.first_byte);
  FOR_BLOCK(i, begin * LANES, end * LANES) {
    int lane = i % LANES;
    int64 run = (i / LANES << copy_bits) + (lane >> width_bits);
    uint32* column = low + (lane & ((1 << COLUMN_BITS) - 1));
    const uint4 bytes = tiles[i];
    const uint32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    const longlong2* changes = reinterpret_cast<const longlong2*>(change + first + run * RUN);
#pragma unroll
    for (int word = 0; word < 4; word++) {
      longlong2 one = changes[2 * word], two = changes[2 * word + 1];
      const int64 by[4] = {one.x, one.y, two.x, two.y};
#pragma unroll
      for (int k = 0; k < 4; k++) {
        uint32 lower = uint32(by[k]) & ~1u, upper = uint32(by[k] >> 32);
        if ((lower | upper) == 0) continue;
        // One shift each brings label and code to their places in the index.
        constexpr uint32 CODE = 255u << COLUMN_BITS;
        uint32 label = (uint32(by[k]) & 1u) << (8 + COLUMN_BITS);
        uint32 code = 8 * k < COLUMN_BITS ? words[word] << (COLUMN_BITS - 8 * k)
                                          : words[word] >> (8 * k - COLUMN_BITS);
        uint32* at = column + ((code & CODE) | label);
        uint32 before = atomicAdd(at, lower);
        atomicAdd(at + N_WORDS, upper + (before + lower < lower));
      }
    }
  }
  __syncthreads();

  FOR_BLOCK(i, 0, N_WORDS) {
    int64 feature = i & ((1 << width_bits) - 1);
    uint64 sum = uint64(high[i]) << 32 | low[i];
    if (sum && feature < group.n_features)
      add_to(&histograms[(group.first_feature + feature) * SLOTS + (i >> COLUMN_BITS)],
             int64(sum) >> 1);
  }
}

#define ADD(columns, COLUMN_BITS)                                                            \
  KERNEL_OF_FULL_BLOCKS add_##columns(const uint8* codes, const Group* groups,               \
                                      int64 n_groups, const Layers layers, int64 first,      \
                                      int64 n) {                                             \
    add<COLUMN_BITS>(codes, groups, n_groups, layers, first, n);                             \
  }

ADD(32, 5)
ADD(16, 4)
ADD(8, 3)
