// From histograms to the best cut: edges exactly, bounds for the rest, and a scan where it matters.
//
// This is the search of `cpu/search.py`, which explains it, in four steps that need no word from
// the host: `weigh` brings what is known of every bin up to date, `list` notes the bins that may
// hold a better cut than the best edge, `scan` looks into those, `finish` compares and writes the
// round's integers. Where a listed feature's sorted order is not on the device, it is asked for;
// `list`, `scan` and `finish` then run once more.

#include "common.cuh"

// What never changes of a bin, or of the slot for what is missing, which follows a feature's bins.
struct Bin {
  int64 offset;  // sorted position of its first sample
  int64 n_inside;
  int64 feature;
  int64 has_cuts;  // whether it holds two values or more
};

// What a round knows of it.
struct Profile {
  int64 positive, negative;  // the weight of its samples of either label
  int64 rise, fall;          // how far score_left rose and fell inside at the last look
  int64 positive_then, negative_then;
  int64 bound;  // no cut inside has a larger agreement; -1 if there is none
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
  int64 present, missing;
};

// A cut. Of two, the one of larger agreement comes first, then lower feature, then lower position.
struct Best {
  int64 agreement, feature, position, polarity;
  __device__ void append(const Best& other) {
    bool wins = other.agreement > agreement;
    if (other.agreement == agreement)
      wins = other.feature < feature || (other.feature == feature && other.position < position);
    if (wins) *this = other;
  }
};

// What there is to scan, counted.
struct Counts {
  int64 n_pieces, n_listed, n_wanted;
};

struct Piece {
  int bin, number;
};

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

// What the host gets to know, and all that it gets to know, of a round.
struct Result {
  Best best;
  int64 missing;             // the signed weight of what lacks its feature
  int64 n_wanted;            // features whose sorted order is asked for
  int64 sums[4];             // of `advance`
  int64 samples[2];          // on either side of the cut, if it lies inside a bin; else -1
  unsigned char values[16];  // theirs, as the table holds them, if it is on the device
};

// Samples that a block scans at a time: enough to fill it, and so few that a large bin is shared.
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

// Weights of all bins, each feature's best edge, and bounds for what lies between the edges.
//
// halvings   all integers were divided by 2**halvings and rounded up since the last round; if it
//            is less than 0, what was known of the bins does not hold any more
// sums       of `advance`; taken over into the result, and reset
KERNEL weigh(const int64* histograms, const Feature* features, const Bin* bins, int64 n_features,
             int64 halvings, Profile* profiles, Edge* edges, Counts* counts, uint32* wanted,
             int64* sums, Result* result) {
  int64(*running)[256] = reinterpret_cast<int64(*)[256]>(shared);
  BestEdge* found = reinterpret_cast<BestEdge*>(running + 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (int k = 0; k < 4; k++) result->sums[k] = sums[k];
    sums[0] = sums[1] = sums[2] = 0;
    sums[3] = TOP;
    *counts = {0, 0, 0};
    result->best = {-1, 0, 0, 1};
    result->samples[0] = result->samples[1] = -1;
  }
  for (int64 j = blockIdx.x; j < n_features; j += gridDim.x) {
    Feature feature = features[j];
    int64 n_bins = feature.n_bins;
    const int64* own = histograms + j * SLOTS;
    Profile* profile = profiles + feature.first;
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
    int64 here = n_bins > 0 ? score_left[n_bins - 1] : 0;
    int64 lacking = own[256 + MISSING] - own[MISSING], extra = absolute(lacking);

    BestEdge mine = {-1, 0, 1};
    FOR_BLOCK(b, 0, n_bins) {
      Profile p = profile[b];
      const Bin bin = bins[feature.first + b];
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
        up = larger(up, -p.negative);  // a bin without a cut says less than nothing
        down = larger(down, -p.positive);
        p.bound = larger(2 * (p.left + up) - here, here - 2 * (p.left - down)) + extra;
      }
      profile[b] = p;
      int64 agreement = 2 * score_left[b] - here;
      if (b + 1 < n_bins)
        mine.append({absolute(agreement) + extra, bin.offset + bin.n_inside - 1,
                     agreement >= 0 ? 1 : -1});
    }
    // The threshold above all values parts what is present from what is missing.
    bool opposed = (here > 0 && lacking < 0) || (here < 0 && lacking > 0);
    if (opposed && threadIdx.x == 0)
      mine.append({absolute(here) + extra, feature.n_present - 1, here > 0 ? 1 : -1});
    combine(mine, found);
    if (threadIdx.x == 0) {
      wanted[j] = 0;
      edges[j] = {mine.agreement, mine.position, mine.polarity, here, lacking};
    }
  }
}

__device__ inline Best best_of(const Edge* edges, int64 j) {
  return {edges[j].agreement, j, edges[j].position, edges[j].polarity};
}

// The bins that may hold a cut that comes before the best one known, in pieces to be scanned.
//
// orders    the address of each feature's sorted order on the device; 0 if it is not there
// wanted    is set for features whose order is missed
KERNEL list_bins(const Bin* bins, int64 n_bins, const Edge* edges, int64 n_features,
                 const uint64* orders, const Profile* profiles, const Result* result,
                 Counts* counts, Listed* listed, Piece* pieces, uint32* wanted) {
  Best mine = result->best;
  FOR_BLOCK(j, 0, n_features) mine.append(best_of(edges, j));
  Best* found = reinterpret_cast<Best*>(shared);
  combine(mine, found);
  Best best = found[0];
  FOR_GRID(b, 0, n_bins) {
    Bin bin = bins[b];
    int64 bound = profiles[b].bound;
    if (!bin.has_cuts || bound < best.agreement) continue;
    if (bound == best.agreement) {
      if (bin.feature > best.feature) continue;
      if (bin.feature == best.feature && bin.offset >= best.position) continue;
    }
    if (orders[bin.feature] == 0) {
      if (atomicExch(&wanted[bin.feature], 1u) == 0) add_to(&counts->n_wanted, 1);
      continue;
    }
    int64 piece = piece_of(bin.n_inside), n = (bin.n_inside - 1 + piece - 1) / piece;
    int64 at = atomicAdd(reinterpret_cast<uint64*>(&counts->n_pieces), uint64(n));
    listed[atomicAdd(reinterpret_cast<uint64*>(&counts->n_listed), 1ull)] = {b, at};
    for (int64 k = 0; k < n; k++) pieces[at + k] = {int(b), int(k)};
  }
}

// How far score_left rises and falls over each piece: a block to a piece, a stretch to a thread.
KERNEL scan(const Piece* pieces, const Counts* counts, const Bin* bins, const uint64* orders,
            const double* signed_weights, Extremes* extremes) {
  for (int64 p = blockIdx.x; p < counts->n_pieces; p += gridDim.x) {
    Bin bin = bins[pieces[p].bin];
    const int* order = reinterpret_cast<const int*>(orders[bin.feature]);
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

// Where the values on both sides of a cut are read: the caller's table, in bytes.
struct Table {
  const unsigned char* values;  // null if it is not on the device
  int64 row_stride, column_stride, item_size;
  const int64* rows;  // null if all take part
};

__device__ inline void copy_value(const Table& table, int64 sample, int64 feature,
                                  unsigned char* to) {
  int64 row = table.rows ? table.rows[sample] : sample;
  const unsigned char* from =
      table.values + row * table.row_stride + feature * table.column_stride;
  for (int64 k = 0; k < table.item_size; k++) to[k] = from[k];
}

// The best cut of all, and what was learnt of the bins. One block.
KERNEL_OF_FULL_BLOCKS finish(const Listed* listed, Counts* counts, const Extremes* extremes,
                             const Bin* bins, const Edge* edges, int64 n_features,
                             const uint64* orders, const Table* table, Profile* profiles,
                             Result* result) {
  Best mine = result->best;
  FOR_BLOCK(j, 0, n_features) mine.append(best_of(edges, j));
  FOR_BLOCK(i, 0, counts->n_listed) {
    int64 b = listed[i].bin;
    Bin bin = bins[b];
    int64 piece = piece_of(bin.n_inside), n = (bin.n_inside - 1 + piece - 1) / piece;
    Extremes found = NOWHERE;
    for (int64 k = 0; k < n; k++) found.append(extremes[listed[i].first_piece + k]);
    Profile* profile = &profiles[b];
    profile->rise = found.high;
    profile->fall = -found.low;
    profile->positive_then = profile->positive;
    profile->negative_then = profile->negative;
    profile->bound = -1;  // nothing better is left in it
    if (found.high_at < 0) continue;
    int64 here = edges[bin.feature].present, extra = absolute(edges[bin.feature].missing);
    int64 rising = 2 * (profile->left + found.high) - here + extra;
    int64 falling = here - 2 * (profile->left + found.low) + extra;
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
  const Edge& edge = edges[best.feature];
  result->missing = edge.missing;
  bool is_edge = edge.agreement == best.agreement && edge.position == best.position;
  for (int k = 0; k < 2; k++) {
    result->samples[k] = -1;
    if (is_edge) continue;  // the host knows the values at the bins' ends
    const int* order = reinterpret_cast<const int*>(orders[best.feature]);
    result->samples[k] = sample_of(order[best.position + k]);
    if (table->values)
      copy_value(*table, result->samples[k], best.feature, result->values + 8 * k);
  }
}
