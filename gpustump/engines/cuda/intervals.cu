// From histograms to the best interval or stump: pairs of edges exactly, bounds for the pairs that
// have an end inside a bin, and a scan of the bins whose bounds do not rule them out.
//
// The best interval is the pair of cuts between which score_left rises or falls most. A stretch of
// sorted samples has a record of its steepest rise and fall, and of what is needed to append
// another stretch: `Slopes`. So the records of pieces combine into records of bins, and those of
// bins, with the edges between them, into the record of a feature. The record of a bin that was not
// scanned has no cuts, only the bin's sum.
//
// The kernels run in the order of those for stumps in `search.cu`: `weigh_pairs`, `list_bins` (of
// that file), `scan_pairs`, then `join_pieces` and `pair_up` for the features with scanned bins,
// and `finish_pairs`. A pair can beat the best one only if the bounds of the bins that hold its
// ends are large enough. So all bins with such bounds are scanned at once, and no others.

#include "common.cuh"
#include "search.cuh"
#include "profiles.cuh"

constexpr int64 NO_SLOPE = -TOP;  // a rise or a fall where there is no pair of cuts

// The steepest rise and fall from a cut to a later one, and the places of these pairs.
struct Slopes {
  Extremes reached;
  int64 rise, rise_place, fall, fall_place;
  __device__ void add(int64 by) { reached.add(by); }
  __device__ void cut_at(int64 position) {
    if (reached.high_at >= 0) {
      take_rise(reached.sum - reached.low, place_of(reached.low_at, position));
      take_fall(reached.high - reached.sum, place_of(reached.high_at, position));
    }
    reached.cut_at(position);
  }
  __device__ void append(const Slopes& next) {
    if (reached.high_at >= 0 && next.reached.high_at >= 0) {
      int64 high = reached.sum + next.reached.high, low = reached.sum + next.reached.low;
      take_rise(high - reached.low, place_of(reached.low_at, next.reached.high_at));
      take_fall(reached.high - low, place_of(reached.high_at, next.reached.low_at));
    }
    take_rise(next.rise, next.rise_place);
    take_fall(next.fall, next.fall_place);
    reached.append(next.reached);
  }
  // Of equally steep pairs the first is kept, and no later one has a lower place. For a later pair
  // would begin at the lowest cut so far; if that came before the first pair's lower cut, the first
  // pair's rise from there would be larger.
  __device__ void take_rise(int64 by, int64 place) {
    if (by > rise) rise = by, rise_place = place;
  }
  __device__ void take_fall(int64 by, int64 place) {
    if (by > fall) fall = by, fall_place = place;
  }
};

constexpr Slopes FLAT = {NOWHERE, NO_SLOPE, 0, NO_SLOPE, 0};

// The least and the largest that score_left may be at some cuts.
struct Range {
  int64 low, high;
  __device__ void append(const Range& other) {
    low = smaller(low, other.low);
    high = larger(high, other.high);
  }
};

constexpr Range NO_CUTS = {TOP, -TOP};

// Whether pieces of a feature's bins were joined in this round, and whether the feature was paired
// since.
enum Look : uint32 { UNSEEN, JOINED, PAIRED };

// What the rounds of a run keep.
struct Pairs {
  Profile* profiles;  // (n_bins)
  Slopes* bins;       // (n_bins) found by this round's scan; without cuts if a bin was not scanned
  Slopes* pieces;     // (n_pieces)
  uint32* looked;     // (n_features) whether its bins were scanned: `Look`
  const double* signed_weights;
  const int64* rescale_exponent;  // see `update`
};

// The best pair, or single cut, of a feature's edges and of the cuts found inside its bins. A whole
// block calls it, and combines through `found`; only the first thread's result is valid.
__device__ BestEdge best_of_feature(const PreparedTable& table, int64 j, const Slopes* bins,
                                    int64 present, int64 missing, Slopes* found) {
  Feature feature = table.features[j];
  int64 n_bins = feature.n_bins, stretch = (n_bins + blockDim.x - 1) / blockDim.x;
  int64 begin = threadIdx.x * stretch, end = smaller(begin + stretch, n_bins);
  Slopes mine = FLAT;
  for (int64 b = begin; b < end; b++) {
    const Bin bin = table.bins[feature.first + b];
    mine.append(bins[feature.first + b]);
    if (b + 1 < n_bins) mine.cut_at(bin.offset + bin.n_inside - 1);
  }
  combine(mine, found);
  BestEdge best = {NO_SCORE, 0, 1};
  if (are_opposed(present, missing)) best.append(above_all_values(feature, present, missing));
  const Extremes& reached = mine.reached;
  int64 extra = absolute(missing);
  if (reached.high_at >= 0) {  // stumps
    best.append({2 * reached.high - present + extra, reached.high_at, 1});
    best.append({present - 2 * reached.low + extra, reached.low_at, -1});
  }
  if (mine.rise != NO_SLOPE) {
    best.append({2 * mine.rise - present + extra, mine.rise_place, 1});
    best.append({2 * mine.fall + present + extra, mine.fall_place, -1});
  }
  return best;
}

// Where score_left may be at the cuts inside a bin.
__device__ inline Range inside(const Profile& p, const Bin& bin) {
  if (!bin.has_cuts) return NO_CUTS;
  Swing swing = swing_of(p);
  return {p.left - swing.down, p.left + swing.up};
}

// The largest agreement of a pair, or a single cut, that has an end inside a bin.
//
// before  where score_left may be at the cuts before these; 0, before all samples, is one of them
// after   where it may be at the cuts after these, if there are any
__device__ inline int64 bound_of(const Profile& p, const Range& own, const Range& before,
                                 const Range& after, bool is_last, int64 present) {
  // Within the bin a rise is at most the weight of the samples labelled +1, a fall that of the
  // others.
  int64 rise = smaller(p.positive, own.high - own.low);
  int64 fall = smaller(p.negative, own.high - own.low);
  rise = larger(rise, own.high - before.low);
  fall = larger(fall, before.high - own.low);
  if (!is_last) {
    rise = larger(rise, after.high - own.low);
    fall = larger(fall, own.high - after.low);
  }
  return larger(2 * rise - present, 2 * fall + present);
}

// Compute the weights of all bins, each feature's best pair of edges, and bounds for other pairs.
KERNEL_OF_64_REGISTERS weigh_pairs(const int64* histograms, const PreparedTable table,
                                   const Round round, const Pairs pairs) {
  const int64 rescale_exponent = *pairs.rescale_exponent;
  int64(*running)[256] = reinterpret_cast<int64(*)[256]>(shared);
  Range(*before)[256] = reinterpret_cast<Range(*)[256]>(running + 2);
  Range(*after)[256] = before + 2;
  Slopes* found = reinterpret_cast<Slopes*>(after + 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) begin_search(round);
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    Feature feature = table.features[j];
    int64 n_bins = feature.n_bins;
    const int64* own = histograms + j * SLOTS;
    Profile* profile = pairs.profiles + feature.first;
    int64* bound = round.bounds + feature.first;
    const int64* score_left = read_weights(own, n_bins, profile, running);
    int64 present = n_bins > 0 ? score_left[n_bins - 1] : 0;
    int64 missing = own[256 + MISSING] - own[MISSING];
    FOR_BLOCK(b, 0, n_bins) {
      Profile p = profile[b];
      update(p, score_left[b] - (p.positive - p.negative), rescale_exponent);
      profile[b] = p;
      Slopes unknown = FLAT;
      unknown.add(p.positive - p.negative);
      pairs.bins[feature.first + b] = unknown;
      Range cuts = inside(p, table.bins[feature.first + b]);
      if (b + 1 < n_bins) cuts.append({score_left[b], score_left[b]});
      before[0][b] = after[0][b] = cuts;
    }
    __syncthreads();
    int from = 0;  // running ranges: of the bins up to this one, and of those from this one on
    for (int64 step = 1; step < n_bins; step *= 2, from = 1 - from) {
      FOR_BLOCK(b, 0, n_bins) {
        Range up_to = before[from][b], onwards = after[from][b];
        if (b >= step) up_to.append(before[from][b - step]);
        if (b + step < n_bins) onwards.append(after[from][b + step]);
        before[1 - from][b] = up_to;
        after[1 - from][b] = onwards;
      }
      __syncthreads();
    }
    FOR_BLOCK(b, 0, n_bins) {
      const Bin bin = table.bins[feature.first + b];
      const Profile p = profile[b];
      bound[b] = NO_SCORE;
      if (!bin.has_cuts) continue;
      Range earlier = {0, 0}, later = {score_left[b], score_left[b]};
      if (b > 0) earlier.append(before[from][b - 1]);
      if (b + 1 < n_bins) later.append(after[from][b + 1]);
      bound[b] = bound_of(p, inside(p, bin), earlier, later, b + 1 == n_bins, present) +
                 absolute(missing);
    }
    BestEdge best = best_of_feature(table, j, pairs.bins, present, missing, found);
    if (threadIdx.x == 0) {
      round.wanted[j] = 0;
      pairs.looked[j] = UNSEEN;
      round.edges[j] = {best.score, best.position, best.polarity, present, missing};
    }
  }
}

// Find the steepest rise and fall of score_left over each piece.
KERNEL_OF_64_REGISTERS scan_pairs(const Piece* pieces, const PreparedTable table,
                                  const Round round, const Pairs pairs) {
  scan_pieces(pieces, table, round, pairs.signed_weights, FLAT, pairs.pieces);
}

// Join the pieces of each bin, and keep what the scan found of it.
KERNEL_OF_64_REGISTERS join_pieces(const Listed* listed, const PreparedTable table,
                                   const Round round, const Pairs pairs) {
  FOR_GRID(i, 0, round.counts->n_listed) {
    int64 b = listed[i].bin;
    Bin bin = table.bins[b];
    Slopes found = joined(bin, round, pairs.pieces + listed[i].first_piece, FLAT);
    Profile* profile = &pairs.profiles[b];
    note(profile, found.reached);
    found.reached.sum = profile->positive - profile->negative;  // with the bin's last sample
    pairs.bins[b] = found;
    round.bounds[b] = NO_SCORE;  // it need not be scanned again
    atomicExch(&pairs.looked[bin.feature], uint32(JOINED));
  }
}

// Find the best pair of each feature with scanned bins. A block takes a feature.
KERNEL_OF_64_REGISTERS pair_up(const PreparedTable table, const Round round,
                               const Pairs pairs) {
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    if (pairs.looked[j] != JOINED) continue;
    const Edge edge = round.edges[j];
    BestEdge best = best_of_feature(table, j, pairs.bins, edge.present, edge.missing,
                                    reinterpret_cast<Slopes*>(shared));
    if (threadIdx.x != 0) continue;
    round.edges[j] = {best.score, best.position, best.polarity, edge.present, edge.missing};
    pairs.looked[j] = PAIRED;
  }
}

// Take the best pair of all. One block.
KERNEL_OF_FULL_BLOCKS finish_pairs(const PreparedTable table, const Round round,
                                   const Pairs pairs) {
  Result* result = round.result;
  Best mine = result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  combine(mine, reinterpret_cast<Best*>(shared));
  if (threadIdx.x != 0 || !take(round, mine)) return;
  int64 j = mine.feature, after = after_of(mine.position), position = position_of(mine.position);
  result->missing = round.edges[j].missing;
  bool is_above_all = position + 1 == table.features[j].n_present;
  // If no bin of the feature was scanned, both ends are edges. If one was, the order is on the
  // device, unless the search was interrupted and the order dropped.
  if (pairs.looked[j] == UNSEEN || table.orders[j] == 0 || is_above_all) return;
  write_neighbours(table, j, position, &result->beside[0]);
  if (after >= 0) write_neighbours(table, j, after, &result->beside[1]);
}
