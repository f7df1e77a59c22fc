// What the searches for discrete votes of one output know of the bins: `search.cu` for stumps,
// `intervals.cu` for stumps and intervals.
//
// Both add up `score_left`, the sum of signed weights up to a cut. They know it at the edges
// between bins, and how far it may rise and fall inside a bin.

#ifndef GPUSTUMP_PROFILES
#define GPUSTUMP_PROFILES

// What a round knows of a bin.
struct Profile {
  int64 positive, negative;  // the weight of its samples of either label
  int64 rise, fall;          // how far score_left rose and fell in the last scan of the bin
  int64 positive_then, negative_then;  // the weights at that time
  int64 left;  // score_left at its left edge
};

// How far a running sum rises and falls over a stretch of sorted samples, and where.
struct Extremes {
  int64 sum, high, low;
  int64 high_at, low_at;  // sorted positions; -1 if there is no cut
  __device__ void add(int64 by) { sum += by; }
  __device__ void cut_at(int64 position) {
    if (high_at < 0 || sum > high) high = sum, high_at = position;
    if (low_at < 0 || sum < low) low = sum, low_at = position;
  }
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

[[maybe_unused]] constexpr Extremes NOWHERE = {0, -TOP, TOP, -1, -1};

// Read the weights of a feature's bins from its histogram, and compute `score_left` at the right
// edge of each bin. `running` is scratch space in shared memory; the result is in it.
__device__ inline const int64* read_weights(const int64* own, int64 n_bins, Profile* profile,
                                            int64 (*running)[256]) {
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
  return running[from];
}

// Update a bin's profile.
//
// left              score_left at its left edge
// rescale_exponent  all integers were divided by two to this power and rounded up since the last
//                   round; if it is negative, what earlier scans found is void
__device__ inline void update(Profile& p, int64 left, int64 rescale_exponent) {
  p.left = left;
  if (rescale_exponent < 0) {
    p.rise = p.fall = p.positive_then = p.negative_then = 0;
  } else if (rescale_exponent > 0) {
    p.rise = -(-p.rise >> rescale_exponent);
    p.fall = -(-p.fall >> rescale_exponent);
    p.positive_then >>= rescale_exponent;
    p.negative_then >>= rescale_exponent;
  }
}

// At cuts inside a bin, score_left is at most `up` above its value at the left edge, and at most
// `down` below it.
struct Swing {
  int64 up, down;
};

__device__ inline Swing swing_of(const Profile& p) {
  int64 up = smaller(p.positive, p.rise + p.positive - p.positive_then);
  int64 down = smaller(p.negative, p.fall + p.negative - p.negative_then);
  // The last scan found no cut if rise and fall are -TOP.
  return {larger(up, -p.negative), larger(down, -p.positive)};
}

// Note what a scan found of a bin.
__device__ inline void note(Profile* p, const Extremes& found) {
  p->rise = found.high;
  p->fall = -found.low;
  p->positive_then = p->positive;
  p->negative_then = p->negative;
}

// A threshold above all values separates all values from the missing ones. Unless their sums have
// opposite signs, a constant is as good.
__device__ inline bool are_opposed(int64 present, int64 missing) {
  return (present > 0 && missing < 0) || (present < 0 && missing > 0);
}

__device__ inline BestEdge above_all_values(const Feature& feature, int64 present, int64 missing) {
  return {absolute(present) + absolute(missing), feature.n_present - 1, present > 0 ? 1 : -1};
}

// Scan score_left over each piece. A block takes a piece, and each of its threads a stretch of it.
// `Run` is the record that is made of a stretch: `Extremes`, or `Slopes` of `intervals.cu`.
template <class Run>
__device__ void scan_pieces(const Piece* pieces, const PreparedTable& table, const Round& round,
                            const double* signed_weights, const Run& empty, Run* runs) {
  for (int64 p = blockIdx.x; p < round.counts->n_pieces; p += gridDim.x) {
    Bin bin = table.bins[pieces[p].bin];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    int64 size = piece_of(bin.n_inside, round.pieces), last = bin.offset + bin.n_inside - 1;
    int64 begin = bin.offset + pieces[p].number * size, end = smaller(begin + size, last);
    int64 stretch = (end - begin + blockDim.x - 1) / blockDim.x;
    begin += threadIdx.x * stretch;
    Run mine = empty;
    for (int64 k = begin; k < smaller(begin + stretch, end); k++) {
      int marked = order[k];
      double weight = signed_weights[sample_of(marked)];
      int64 units = units_of(fabs(weight));
      mine.add(weight > 0.0 ? units : -units);
      if (marked >= 0) mine.cut_at(k);  // otherwise the next sample has the same value
    }
    combine(mine, reinterpret_cast<Run*>(shared));
    if (threadIdx.x == 0) runs[p] = mine;
  }
}

// The record of a bin, joined from those of its pieces.
template <class Run>
__device__ Run joined(const Bin& bin, const Round& round, const Run* pieces, const Run& empty) {
  int64 piece = piece_of(bin.n_inside, round.pieces), n = (bin.n_inside - 1 + piece - 1) / piece;
  Run found = empty;
  for (int64 k = 0; k < n; k++) found.append(pieces[k]);
  return found;
}

#endif
