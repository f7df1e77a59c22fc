// What the searches for the best cut have in common: see `search.cu`, `intervals.cu`, `splits.cu`.
//
// A search weighs all bins: it computes the scores at their edges, and bounds for the cuts inside.
// It lists the bins that may hold a better cut than the best edge, searches these, and writes the
// best cut. Scores and bounds are compared as integers: agreements as they are, other scores by
// keys that sort as they do.

#ifndef GPUSTUMP_SEARCH
#define GPUSTUMP_SEARCH

// Below every score.
[[maybe_unused]] constexpr int64 NO_SCORE = -9223372036854775807ll - 1;

// A bin, or the slot for missing values that follows a feature's bins. Rounds do not change it.
struct Bin {
  int64 offset;  // sorted position of its first sample
  int64 n_inside;
  int64 feature;
  int64 has_cuts;  // whether it holds two values or more
};

struct Feature {
  int64 first;  // its first bin
  int64 n_bins;
  int64 n_present;
};

// A feature's best cut at an edge, and, for classic stumps, its sums of signed weights.
struct Edge {
  int64 score, position, polarity;
  int64 present, missing;  // the sums over its present and its missing values
};

// A cut. The larger score wins; of equal ones the lower feature, then the lower position, which is
// `place_of` two positions in the search for intervals.
struct Best {
  int64 score, feature, position;
  int64 detail;  // for classic stumps the polarity, for others the piece it was found in, or -1
  __device__ void append(const Best& other) {
    bool wins = other.score > score;
    if (other.score == score)
      wins = other.feature < feature || (other.feature == feature && other.position < position);
    if (wins) *this = other;
  }
};

// Both cuts of an interval in one integer, which sorts by `after`, the position of the last sample
// before the interval, and then by position. A stump has an `after` of -1, so the integer is its
// position, and stumps come first.
constexpr int PLACE_BITS = 31;
__device__ inline int64 place_of(int64 after, int64 position) {
  return (after + 1) << PLACE_BITS | position;
}
__device__ inline int64 after_of(int64 place) { return (place >> PLACE_BITS) - 1; }
__device__ inline int64 position_of(int64 place) { return place & ((1ll << PLACE_BITS) - 1); }

struct BestEdge {
  int64 score, position, polarity;
  __device__ void append(const BestEdge& other) {
    bool ties = other.score == score && other.position < position;
    if (other.score > score || ties) *this = other;
  }
};

// How much there is to search: pieces of bins, bins, and features whose sorted order the host has
// to provide first.
struct Counts {
  int64 n_pieces, n_listed, n_wanted;
};

// A piece of a bin: the part that a block searches at a time.
struct Piece {
  int bin, number;
};

// A bin that is searched.
struct Listed {
  int64 bin, first_piece;
};

// The two samples on both sides of a cut, and their values in the table's dtype, if the table is on
// the device. The samples are -1 if the host knows the values: at the edge of a bin.
struct Neighbours {
  int64 samples[2];
  unsigned char values[16];
};

// All that the host reads of a round. In the search of `splits.cu` the sums over the regions of the
// best cut follow.
struct Result {
  Best best;
  int64 missing;   // the signed weight of the samples whose value of that feature is missing
  int64 n_wanted;  // how many features' sorted orders the host has to provide
  Sums sums;       // of `advance`
  Neighbours beside[2];  // the cut; and the lower one of an interval
};

// The caller's table, from which the values on both sides of a cut are read.
struct SourceTable {
  const unsigned char* values;  // null if it is not on the device
  int64 row_stride, column_stride, item_size;  // in bytes
  const int64* rows;                           // the rows that take part; null for all
};

// A table prepared for the rounds. Only `orders` changes from round to round.
struct PreparedTable {
  const Feature* features;
  const Bin* bins;
  const uint64* orders;  // the address of each feature's sorted order; 0 if it is not on the device
  const SourceTable* source;
  int64 n_features;
  int64 n_bins;  // of all features, slots for missing values included
};

// How bins are cut into pieces.
struct Sizes {
  int64 least;  // the fewest samples of a piece
  int64 most;   // the most pieces of a bin; 0 for no limit
};

// The bins and edges as the current round finds them.
struct Round {
  int64* bounds;   // (n_bins) no cut inside has a larger score; NO_SCORE if there is no cut
  Edge* edges;     // (n_features)
  uint32* wanted;  // (n_features) whether the host has to provide the sorted order
  Result* result;
  Counts* counts;
  Sums* sums;         // of `advance`; copied into the result, and reset
  Sizes pieces;
  const int64* directions;  // (n_features) monotone constraints: 1, -1, 0; null if there are none
};

// A feature's constraint: see `engines/monotone.py`.
__device__ inline int64 direction_of(const Round& round, int64 feature) {
  return round.directions ? round.directions[feature] : 0;
}

// The samples of a piece of a bin; the last piece may have fewer.
__device__ inline int64 piece_of(int64 n_inside, const Sizes& pieces) {
  int64 fair = pieces.most ? (n_inside + pieces.most - 1) / pieces.most : 0;
  return fair > pieces.least ? fair : pieces.least;
}

__device__ inline int64 absolute(int64 x) { return x < 0 ? -x : x; }
__device__ inline int64 larger(int64 x, int64 y) { return x > y ? x : y; }
__device__ inline int64 smaller(int64 x, int64 y) { return x < y ? x : y; }

__device__ inline void forget(Neighbours* beside) {
  for (int k = 0; k < 2; k++) beside[k].samples[0] = beside[k].samples[1] = -1;
}

// Begin a round's search. Called by one thread of the grid.
__device__ inline void begin_search(const Round& round) {
  Result* result = round.result;
  result->sums = *round.sums;
  *round.sums = NO_SUMS;
  *round.counts = {0, 0, 0};
  result->best = {NO_SCORE, 0, 0, 1};
  forget(result->beside);
}

__device__ inline Best best_of(const Edge* edges, int64 j) {
  return {edges[j].score, j, edges[j].position, edges[j].polarity};
}

__device__ inline bool is_other(const Best& best, const Best& before) {
  return best.feature != before.feature || best.position != before.position ||
         best.score != before.score;
}

// Write the best cut to the result, and reset the counts for another launch. Called by one thread.
// Returns whether the cut differs from the one before, so that the values beside it must be
// written.
__device__ inline bool take(const Round& round, const Best& best) {
  Result* result = round.result;
  Best before = result->best;
  result->n_wanted = round.counts->n_wanted;
  *round.counts = {0, 0, 0};
  result->best = best;
  bool is_new = best.score != NO_SCORE && is_other(best, before);
  if (is_new) forget(result->beside);
  return is_new;
}

__device__ inline void copy_value(const SourceTable& source, int64 sample, int64 feature,
                                  unsigned char* to) {
  int64 row = source.rows ? source.rows[sample] : sample;
  const unsigned char* from =
      source.values + row * source.row_stride + feature * source.column_stride;
  for (int64 k = 0; k < source.item_size; k++) to[k] = from[k];
}

// Write the samples on both sides of a cut, and their values. The feature's order is on the device.
__device__ inline void write_neighbours(const PreparedTable& table, int64 feature, int64 position,
                                        Neighbours* beside) {
  const int* order = reinterpret_cast<const int*>(table.orders[feature]);
  for (int k = 0; k < 2; k++) {
    beside->samples[k] = sample_of(order[position + k]);
    if (table.source->values)
      copy_value(*table.source, beside->samples[k], feature, beside->values + 8 * k);
  }
}

#endif
