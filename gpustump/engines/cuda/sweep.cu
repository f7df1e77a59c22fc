// A round's pass over the samples: votes, weights, scores, and the change in every histogram.
//
// As on the CPU, a stump multiplies the weights of the samples that it gets wrong, and only their
// change is added to the histograms, exactly. `advance` works out the changes; `add` adds them.

#include "common.cuh"

constexpr double FLOOR = 0x1p-900;  // weights.FLOOR

// The cut parts a bin: note which of its samples are on the left, by the round's number.
KERNEL mark(const int* order, int64 begin, int64 end, int64 round, uint32* marks) {
  FOR_GRID(k, begin, end) marks[sample_of(order[k])] = uint32(round);
}

struct Sums {
  int64 total, mass, mistaken, least;
  __device__ void append(const Sums& other) {
    total += other.total;
    mass += other.mass;
    mistaken += other.mistaken;
    if (other.least < least) least = other.least;
  }
};

// The next weight, score and change of `n` samples from `first` on.
//
// codes     tiles of the stump's group of 2**width_bits features, from the sample `first` on
// votes     a stump's votes, if cut_bin is -1; otherwise they follow from the codes: `polarity` up
//           to the cut's bin, and in it for the marked samples if it is parted. Bin 256: all.
// grow, keep what wrong and right samples' weights are multiplied by
// anew      `change` is the whole new integer, rather than by how much it grew
// masses    the first round's integers; null if all are `equal_mass`
// change    what is added to the histograms, times 2, plus 1 for a positive label
// sums      total, mass, mistaken, least: grow by those of the new integers
KERNEL advance(const uint8* codes, int64 width_bits, int64 feature, const int8* votes, int64 cut_bin,
               int64 is_parted, int64 polarity, int64 missing, const uint32* marks, int64 round,
               double vote, double grow, double keep, int64 anew, int64 first, int64 n,
               double* signed_weights, double* scores, const int64* masses, int64 equal_mass,
               int64* change, int64* sums) {
  Sums mine = {0, 0, 0, TOP};
#pragma unroll 1  // unrolled, it takes more registers than there are
  FOR_GRID(i, first, first + n) {
    bool left = true, says = polarity > 0;
    if (cut_bin < 0) {
      says = votes[i] > 0;
    } else if (cut_bin <= MISSING) {
      int code = codes[code_at(i - first, int(width_bits), feature)];
      left = code < cut_bin || (code == cut_bin && (!is_parted || marks[i] == uint32(round)));
      says = code == MISSING ? missing > 0 : left == (polarity > 0);
    }
    double before = signed_weights[i], weight = fabs(before);
    bool positive = before > 0.0, wrong = says != positive;
    double after = weight * (wrong ? grow : keep);
    after = after > FLOOR ? after : FLOOR;
    double score = says ? scores[i] + vote : scores[i] - vote;
    int64 units = units_of(after), by = units - (anew ? 0 : units_of(weight));
    signed_weights[i] = positive ? after : -after;
    scores[i] = score;
    change[i] = by * 2 + positive;
    int64 first_mass = masses ? masses[i] : equal_mass;
    mine.append({positive ? units : -units, units, (score > 0.0) != positive ? first_mass : 0,
                 units});
  }
  combine(mine, reinterpret_cast<Sums*>(shared));
  if (threadIdx.x == 0) {
    add_to(&sums[0], mine.total);
    add_to(&sums[1], mine.mass);
    add_to(&sums[2], mine.mistaken);
    atomicMin(&sums[3], mine.least);
  }
}

// One group of features: where its codes begin, and which blocks work on it.
struct Group {
  int64 first_feature, n_features, width_bits, first_byte, first_block;
};

// Add the changes of `n` samples from `first` on to the histograms.
//
// Each lane of a tile belongs to one feature and has a column of the table to itself: it is the
// column's number that picks the bank of shared memory, so no two lanes of a warp ever meet in a
// bank, let alone in a word, whatever the codes. And all lanes of a wide group hold the same
// samples, so a change of zero is passed over by the whole warp.
//
// Adding 64-bit integers in shared memory would be a loop of compare-and-swap (so says the machine
// code for compute capability 9.0), so a sum is two words: the lower one's carry is seen in what
// `atomicAdd` returns, and goes into the upper one with the upper half. The
// changes are added as they are, times 2 but without the label; the sums fit even so.
//
// COLUMN_BITS  the table has 2**COLUMN_BITS columns, no fewer than the widest group has features:
//              one for each lane if shared memory allows
// codes        tiles from the sample `first` on
// groups       (n_groups + 1); the last one's first_block is the end of all
// change       for all samples, and zeros up to whole tiles
// histograms   (n_features, 2, 256): by label and code
template <int COLUMN_BITS>
__device__ void add(const uint8* codes, const Group* groups, int64 n_groups, const int64* change,
                    int64 first, int64 n, int64* histograms) {
  constexpr int N_WORDS = SLOTS << COLUMN_BITS;
  uint32* low = reinterpret_cast<uint32*>(shared);
  uint32* high = low + N_WORDS;
  int64 g = 0;  // the last group that begins at this block or before
  for (int64 end = n_groups; end - g > 1;) {
    int64 middle = (g + end) / 2;
    if (groups[middle].first_block <= blockIdx.x) g = middle;
    else end = middle;
  }
  Group group = groups[g];
  FOR_BLOCK(i, 0, N_WORDS) low[i] = high[i] = 0;
  __syncthreads();

  // This block's tiles: an equal share of the group's.
  int width_bits = int(group.width_bits), copy_bits = LANE_BITS - width_bits;
  int64 n_tiles = n / RUN >> copy_bits, n_blocks = groups[g + 1].first_block - group.first_block;
  int64 block = blockIdx.x - group.first_block;
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
        // Label and code are shifted to their places in the index at once.
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

#define ADD(columns, COLUMN_BITS)                                                              \
  KERNEL_OF_FULL_BLOCKS add_##columns(const uint8* codes, const Group* groups,                 \
                                      int64 n_groups, const int64* change, int64 first,        \
                                      int64 n, int64* histograms) {                            \
    add<COLUMN_BITS>(codes, groups, n_groups, change, first, n, histograms);                   \
  }

ADD(32, 5)
ADD(16, 4)
ADD(8, 3)
