// From histograms to the best cut: edges exactly, bounds for the cuts between them, and a scan of
// the bins whose bounds do not rule them out.
//
// This is the search of `cpu/search.py`, which explains it, in four kernels that do not wait for
// the host: `weigh` brings the bins' weights and bounds up to date, `list_bins` lists the bins that
// may hold a better cut than the best edge, `scan` looks into them, `finish` takes the best cut and
// writes the round's result. If a feature is to be scanned and its sorted order is not on the
// device, the result says so; the host provides the order and launches the last three kernels
// again.

#include "common.cuh"

// A bin, or the slot for missing values that follows a feature's bins. Rounds do not change it.
struct Bin {
  int64 offset;  // sorted position of its first sample
  int64 n_inside;
  int64 feature;
  int64 has_cuts;  // whether it holds two values or more
};

// What a round knows of a bin.
struct Profile {
  int64 positive, negative;  // the weight of its samples of either label
  int64 rise, fall;          // how far score_left rose and fell inside when it was last scanned
  int64 positive_then, negative_then;  // the weights at that time
  int64 bound;  // no cut inside has a larger agreement; -1 if there is no cut
  int64 left;   // score_left at its left edge
};

struct Feature {
  int64 first;  // its first bin
  int64 n_bins;
  int64 n_present;
};

// A feature's best cut at an edge, and its sums of signed weights.
struct Edge {
  int64 agreement, position, polarity;
  int64 present, missing;  // the sums over its present and its missing values
};

// A cut. The larger agreement wins; of equal ones the lower feature, then the lower position.
struct Best {
  int64 agreement, feature, position, polarity;
  __device__ void append(const Best& other) {
    bool wins = other.agreement > agreement;
    if (other.agreement == agreement)
      wins = other.feature < feature || (other.feature == feature && other.position < position);
    if (wins) *this = other;
  }
};

// How much there is to scan: pieces of bins, bins, and features whose sorted order the host has to
// provide first.
struct Counts {
  int64 n_pieces, n_listed, n_wanted;
};

// A piece of a bin: the part that a block scans at a time.
struct Piece {
  int bin, number;
};

// A bin to be scanned.
struct Listed {
  int64 bin, first_piece;
};

// How far a running sum rises and falls over a stretch of sorted samples, and where.
struct Extremes {
  int64 sum, high, low;
  int64 high_at, low_at;  // sorted positions; -1 if there is no cut
  __device__ void append(const Extremes& next) {
    if (next.high_at >= 0 && (high_at < 0 || sum + next.high > high)) {
      high = sum + next.high;
      high_at = next.high_at;
    }
    if (next.low_at >= 0 && (low_at < 0 || sum + next.low < low)) {
      low = sum + next.low;
      low_at = next.low_at;
    }
    sum += next.sum;
  }
};

constexpr Extremes NOWHERE = {0, -TOP, TOP, -1, -1};

// All that the host reads of a round.
struct Result {
  Best best;
  int64 missing;     // the signed weight of the samples whose value of that feature is missing
  int64 n_wanted;    // how many features' sorted orders the host has to provide
  Sums sums;         // of `advance`
  int64 samples[2];  // the two on either side of the cut if it lies inside a bin; else -1
  unsigned char values[16];  // their values, as the table holds them, if it is on the device
};

// The caller's table, from which the values on both sides of a cut are read.
struct SourceTable {
  const unsigned char* values;  // null if it is not on the device
  int64 row_stride, column_stride, item_size;  // in bytes
  const int64* rows;                           // the rows that take part; null for all
};

// A table prepared for the rounds. Nothing of it changes in a round but `orders`.
struct PreparedTable {
  const Feature* features;
  const Bin* bins;
  const uint64* orders;  // the address of each feature's sorted order; 0 if it is not on the device
  const SourceTable* source;
  int64 n_features;
  int64 n_bins;  // of all features, slots for missing values included
};

// Samples of a piece: enough for a full block, and so few that several blocks share a large bin.
constexpr int64 PIECE = 2048, MOST_PIECES = 32;

__device__ inline int64 piece_of(int64 n_inside) {
  int64 fair = (n_inside + MOST_PIECES - 1) / MOST_PIECES;
  return fair > PIECE ? fair : PIECE;
}

__device__ inline int64 absolute(int64 x) { return x < 0 ? -x : x; }
__device__ inline int64 larger(int64 x, int64 y) { return x > y ? x : y; }
__device__ inline int64 smaller(int64 x, int64 y) { return x < y ? x : y; }

struct BestEdge {
  int64 agreement, position, polarity;
  __device__ void append(const BestEdge& other) {
    bool ties = other.agreement == agreement && other.position < position;
    if (other.agreement > agreement || ties) *this = other;
  }
};

// The bins and edges as the current round finds them.
struct Round {
  Profile* profiles;  // (n_bins)
  Edge* edges;        // (n_features)
  uint32* wanted;     // (n_features) whether the host has to provide the sorted order
  Result* result;
};

// Compute the weights of all bins, each feature's best edge, and bounds for the cuts between edges.
//
// halvings   all integers were divided by 2**halvings and rounded up since the last round; if it
//            is below 0, earlier scans tell nothing about the bins
// sums       of `advance`; copied into the result, and reset
KERNEL weigh(const int64* histograms, const PreparedTable table, const Round round, int64 halvings,
             Counts* counts, Sums* sums) {
  int64(*running)[256] = reinterpret_cast<int64(*)[256]>(shared);
  BestEdge* found = reinterpret_cast<BestEdge*>(running + 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    Result* result = round.result;
    result->sums = *sums;
    *sums = NO_SUMS;
    *counts = {0, 0, 0};
    result->best = {-1, 0, 0, 1};
    result->samples[0] = result->samples[1] = -1;
  }
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    Feature feature = table.features[j];
    int64 n_bins = feature.n_bins;
    const int64* own = histograms + j * SLOTS;
    Profile* profile = round.profiles + feature.first;
    FOR_BLOCK(b, 0, n_bins + 1) {
      int64 code = b < n_bins ? b : MISSING;
      int64 negative = own[code], positive = own[256 + code];
      profile[b].negative = negative;
      profile[b].positive = positive;
      running[0][b] = b < n_bins ? positive - negative : 0;
    }
    __syncthreads();
    int from = 0;
    for (int64 step = 1; step < n_bins; step *= 2, from = 1 - from) {
      FOR_BLOCK(b, 0, n_bins)
        running[1 - from][b] = running[from][b] + (b >= step ? running[from][b - step] : 0);
      __syncthreads();
    }
    const int64* score_left = running[from];  // up to and with a bin
    int64 present = n_bins > 0 ? score_left[n_bins - 1] : 0;
    int64 missing = own[256 + MISSING] - own[MISSING], extra = absolute(missing);

    BestEdge mine = {-1, 0, 1};
    FOR_BLOCK(b, 0, n_bins) {
      Profile p = profile[b];
      const Bin bin = table.bins[feature.first + b];
      p.left = score_left[b] - (p.positive - p.negative);
      p.bound = -1;
      if (halvings < 0) {
        p.rise = p.fall = p.positive_then = p.negative_then = 0;
      } else if (halvings > 0) {
        p.rise = -(-p.rise >> halvings);
        p.fall = -(-p.fall >> halvings);
        p.positive_then >>= halvings;
        p.negative_then >>= halvings;
      }
      if (bin.has_cuts) {
        int64 up = smaller(p.positive, p.rise + p.positive - p.positive_then);
        int64 down = smaller(p.negative, p.fall + p.negative - p.negative_then);
        up = larger(up, -p.negative);  // the last scan found no cut if rise and fall are -TOP
        down = larger(down, -p.positive);
        p.bound = larger(2 * (p.left + up) - present, present - 2 * (p.left - down)) + extra;
      }
      profile[b] = p;
      int64 agreement = 2 * score_left[b] - present;
      if (b + 1 < n_bins)
        mine.append({absolute(agreement) + extra, bin.offset + bin.n_inside - 1,
                     agreement >= 0 ? 1 : -1});
    }
    // A threshold above all values separates present values from missing ones.
    bool opposed = (present > 0 && missing < 0) || (present < 0 && missing > 0);
    if (opposed && threadIdx.x == 0)
      mine.append({absolute(present) + extra, feature.n_present - 1, present > 0 ? 1 : -1});
    combine(mine, found);
    if (threadIdx.x == 0) {
      round.wanted[j] = 0;
      round.edges[j] = {mine.agreement, mine.position, mine.polarity, present, missing};
    }
  }
}

__device__ inline Best best_of(const Edge* edges, int64 j) {
  return {edges[j].agreement, j, edges[j].position, edges[j].polarity};
}

// List the bins that may hold a better cut than the best one known, and cut them into pieces.
// Where a feature's sorted order is not on the device, it is noted as wanted instead.
KERNEL list_bins(const PreparedTable table, const Round round, Counts* counts, Listed* listed,
                 Piece* pieces) {
  Best mine = round.result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  Best* found = reinterpret_cast<Best*>(shared);
  combine(mine, found);
  Best best = found[0];
  FOR_GRID(b, 0, table.n_bins) {
    Bin bin = table.bins[b];
    int64 bound = round.profiles[b].bound;
    if (!bin.has_cuts || bound < best.agreement) continue;
    if (bound == best.agreement) {
      if (bin.feature > best.feature) continue;
      if (bin.feature == best.feature && bin.offset >= best.position) continue;
    }
    if (table.orders[bin.feature] == 0) {
      if (atomicExch(&round.wanted[bin.feature], 1u) == 0) add_to(&counts->n_wanted, 1);
      continue;
    }
    int64 piece = piece_of(bin.n_inside), n = (bin.n_inside - 1 + piece - 1) / piece;
    int64 at = atomicAdd(reinterpret_cast<uint64*>(&counts->n_pieces), uint64(n));
    listed[atomicAdd(reinterpret_cast<uint64*>(&counts->n_listed), 1ull)] = {b, at};
    for (int64 k = 0; k < n; k++) pieces[at + k] = {int(b), int(k)};
  }
}

// Find how far score_left rises and falls over each piece. A block takes a piece, and each of its
// threads a stretch of it.
KERNEL scan(const Piece* pieces, const Counts* counts, const PreparedTable table,
            const double* signed_weights, Extremes* extremes) {
  for (int64 p = blockIdx.x; p < counts->n_pieces; p += gridDim.x) {
    Bin bin = table.bins[pieces[p].bin];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    int64 size = piece_of(bin.n_inside), last = bin.offset + bin.n_inside - 1;
    int64 begin = bin.offset + pieces[p].number * size, end = smaller(begin + size, last);
    int64 stretch = (end - begin + blockDim.x - 1) / blockDim.x;
    begin += threadIdx.x * stretch;
    Extremes mine = NOWHERE;
    for (int64 k = begin; k < smaller(begin + stretch, end); k++) {
      int marked = order[k];
      double weight = signed_weights[sample_of(marked)];
      int64 units = units_of(fabs(weight));
      mine.sum += weight > 0.0 ? units : -units;
      if (marked < 0) continue;  // the next sample has the same value
      if (mine.high_at < 0 || mine.sum > mine.high) mine.high = mine.sum, mine.high_at = k;
      if (mine.low_at < 0 || mine.sum < mine.low) mine.low = mine.sum, mine.low_at = k;
    }
    combine(mine, reinterpret_cast<Extremes*>(shared));
    if (threadIdx.x == 0) extremes[p] = mine;
  }
}

__device__ inline void copy_value(const SourceTable& source, int64 sample, int64 feature,
                                  unsigned char* to) {
  int64 row = source.rows ? source.rows[sample] : sample;
  const unsigned char* from =
      source.values + row * source.row_stride + feature * source.column_stride;
  for (int64 k = 0; k < source.item_size; k++) to[k] = from[k];
}

// Take the best cut of all, and keep what the scan found of the bins. One block.
KERNEL_OF_FULL_BLOCKS finish(const Listed* listed, Counts* counts, const Extremes* extremes,
                             const PreparedTable table, const Round round) {
  Result* result = round.result;
  Best mine = result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  FOR_BLOCK(i, 0, counts->n_listed) {
    int64 b = listed[i].bin;
    Bin bin = table.bins[b];
    int64 piece = piece_of(bin.n_inside), n = (bin.n_inside - 1 + piece - 1) / piece;
    Extremes found = NOWHERE;
    for (int64 k = 0; k < n; k++) found.append(extremes[listed[i].first_piece + k]);
    Profile* profile = &round.profiles[b];
    profile->rise = found.high;
    profile->fall = -found.low;
    profile->positive_then = profile->positive;
    profile->negative_then = profile->negative;
    profile->bound = -1;  // its best cuts are compared right here
    if (found.high_at < 0) continue;
    const Edge& edge = round.edges[bin.feature];
    int64 extra = absolute(edge.missing);
    int64 rising = 2 * (profile->left + found.high) - edge.present + extra;
    int64 falling = edge.present - 2 * (profile->left + found.low) + extra;
    mine.append({rising, bin.feature, found.high_at, 1});
    mine.append({falling, bin.feature, found.low_at, -1});
  }
  combine(mine, reinterpret_cast<Best*>(shared));
  if (threadIdx.x != 0) return;
  Best best = mine;
  result->n_wanted = counts->n_wanted;
  *counts = {0, 0, 0};
  Best before = result->best;
  result->best = best;
  bool is_new = best.feature != before.feature || best.position != before.position ||
                best.agreement != before.agreement;
  if (best.agreement < 0 || !is_new) return;
  const Edge& edge = round.edges[best.feature];
  result->missing = edge.missing;
  bool is_edge = edge.agreement == best.agreement && edge.position == best.position;
  for (int k = 0; k < 2; k++) {
    result->samples[k] = -1;
    if (is_edge) continue;  // the host knows the values at the bins' ends
    const int* order = reinterpret_cast<const int*>(table.orders[best.feature]);
    result->samples[k] = sample_of(order[best.position + k]);
    if (table.source->values)
      copy_value(*table.source, result->samples[k], best.feature, result->values + 8 * k);
  }
}
