// From histograms to the best classic stump: edges exactly, bounds for the cuts between them, and a
// scan of the bins whose bounds do not rule them out.
//
// This is the search of `cpu/search.py`, which explains it, in four kernels that do not wait for
// the host: `weigh` brings the bins' weights and bounds up to date, `list_bins` lists the bins that
// may hold a better cut than the best edge, `scan` looks into them, `finish` takes the best cut and
// writes the round's result. If a feature is to be scanned and its sorted order is not on the
// device, the result says so; the host provides the order and launches the last three kernels
// again.

#include "common.cuh"
#include "search.cuh"

// What a round knows of a bin.
struct Profile {
  int64 positive, negative;  // the weight of its samples of either label
  int64 rise, fall;          // how far score_left rose and fell inside when it was last scanned
  int64 positive_then, negative_then;  // the weights at that time
  int64 left;  // score_left at its left edge
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

// Compute the weights of all bins, each feature's best edge, and bounds for the cuts between edges.
//
// halvings_of_step  all integers were divided by 2**this and rounded up since the last round; if it
//                   is below 0, earlier scans tell nothing about the bins
KERNEL weigh(const int64* histograms, const PreparedTable table, const Round round,
             Profile* profiles, const int64* halvings_of_step) {
  const int64 halvings = *halvings_of_step;
  int64(*running)[256] = reinterpret_cast<int64(*)[256]>(shared);
  BestEdge* found = reinterpret_cast<BestEdge*>(running + 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) begin_search(round);
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    Feature feature = table.features[j];
    int64 n_bins = feature.n_bins;
    const int64* own = histograms + j * SLOTS;
    Profile* profile = profiles + feature.first;
    int64* bound = round.bounds + feature.first;
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

    BestEdge mine = {NO_SCORE, 0, 1};
    FOR_BLOCK(b, 0, n_bins) {
      Profile p = profile[b];
      const Bin bin = table.bins[feature.first + b];
      p.left = score_left[b] - (p.positive - p.negative);
      bound[b] = NO_SCORE;
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
        bound[b] = larger(2 * (p.left + up) - present, present - 2 * (p.left - down)) + extra;
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
      round.edges[j] = {mine.score, mine.position, mine.polarity, present, missing};
    }
  }
}

// List the bins that may hold a better cut than the best one known, and cut them into pieces.
// Where a feature's sorted order is not on the device, it is noted as wanted instead.
KERNEL list_bins(const PreparedTable table, const Round round, Listed* listed, Piece* pieces) {
  Counts* counts = round.counts;
  Best mine = round.result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  Best* found = reinterpret_cast<Best*>(shared);
  combine(mine, found);
  Best best = found[0];
  FOR_GRID(b, 0, table.n_bins) {
    Bin bin = table.bins[b];
    int64 bound = round.bounds[b];
    if (!bin.has_cuts || bound < best.score) continue;
    if (bound == best.score) {
      if (bin.feature > best.feature) continue;
      if (bin.feature == best.feature && bin.offset >= best.position) continue;
    }
    if (table.orders[bin.feature] == 0) {
      if (atomicExch(&round.wanted[bin.feature], 1u) == 0) add_to(&counts->n_wanted, 1);
      continue;
    }
    int64 piece = piece_of(bin.n_inside, round.most_pieces), n = (bin.n_inside - 1 + piece - 1) / piece;
    int64 at = atomicAdd(reinterpret_cast<uint64*>(&counts->n_pieces), uint64(n));
    listed[atomicAdd(reinterpret_cast<uint64*>(&counts->n_listed), 1ull)] = {b, at};
    for (int64 k = 0; k < n; k++) pieces[at + k] = {int(b), int(k)};
  }
}

// Find how far score_left rises and falls over each piece. A block takes a piece, and each of its
// threads a stretch of it.
KERNEL scan(const Piece* pieces, const PreparedTable table, const Round round,
            const double* signed_weights, Extremes* extremes) {
  for (int64 p = blockIdx.x; p < round.counts->n_pieces; p += gridDim.x) {
    Bin bin = table.bins[pieces[p].bin];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    int64 size = piece_of(bin.n_inside, round.most_pieces), last = bin.offset + bin.n_inside - 1;
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

// Take the best cut of all, and keep what the scan found of the bins. One block.
KERNEL_OF_FULL_BLOCKS finish(const Listed* listed, const Extremes* extremes,
                             const PreparedTable table, const Round round, Profile* profiles) {
  Result* result = round.result;
  Counts* counts = round.counts;
  Best mine = result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  FOR_BLOCK(i, 0, counts->n_listed) {
    int64 b = listed[i].bin;
    Bin bin = table.bins[b];
    int64 piece = piece_of(bin.n_inside, round.most_pieces), n = (bin.n_inside - 1 + piece - 1) / piece;
    Extremes found = NOWHERE;
    for (int64 k = 0; k < n; k++) found.append(extremes[listed[i].first_piece + k]);
    Profile* profile = &profiles[b];
    profile->rise = found.high;
    profile->fall = -found.low;
    profile->positive_then = profile->positive;
    profile->negative_then = profile->negative;
    round.bounds[b] = NO_SCORE;  // its best cuts are compared right here
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
                best.score != before.score;
  if (best.score == NO_SCORE || !is_new) return;
  const Edge& edge = round.edges[best.feature];
  result->missing = edge.missing;
  bool is_edge = edge.score == best.score && edge.position == best.position;
  write_neighbours(table, best, is_edge, result);
}
