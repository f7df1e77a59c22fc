// From histograms to the best split for real, Newton and shared votes.
//
// The search is that of `search.cu`, with other scores: those of `engines/gain.py`, operation by
// operation. They are convex in the sums left of a cut. So inside a bin they are bounded by their
// values at the corners of the region in which the sums can lie. `cpu/split/cell_scores.py` explains that
// region and its corners, and `cpu/split/skew.py` what is noted of a bin when it has been searched.
// Bounds computed in floating point are widened by far more than their error.
//
// `weigh_...` updates sums, edges and bounds, `list_bins` of `search.cu` lists the bins that may
// hold a better cut, `sum_pieces` adds up their pieces, `bound_...` bounds the cuts inside each
// piece, `scan_...` scores the cuts in those that may still hold a better one, and `finish_splits`
// takes the best cut and adds up its regions. `sum_cuts` adds up the regions of any other cut.

#include "common.cuh"
#include "search.cuh"
#include "integers.cuh"

constexpr int64 SPLIT_PIECE = 512;  // samples of a piece of a bin; the last one may have fewer
constexpr double OUTWARDS = 0x1p-40;  // by what share a bound is widened
constexpr double FORGOTTEN = 1e300;   // instead of what is noted of a bin

// Sums over some samples, for one output: of the gradients by label and without their signs,
// and of the Hessians if they differ from these.
struct Triple {
  int64 positive, negative, hessian;
  __device__ void append(const Triple& other) {
    positive += other.positive;
    negative += other.negative;
    hessian += other.hessian;
  }
  __device__ int64 gradient() const { return positive - negative; }
};

constexpr Triple NOTHING = {0, 0, 0};

__device__ inline Triple less(const Triple& whole, const Triple& part) {
  return {whole.positive - part.positive, whole.negative - part.negative,
          whole.hessian - part.hessian};
}

// How far a step may have moved the shares of a bin's sums, by output and label: see
// `engines.movement`. Each is (n_outputs, 2), for the label -1, and for the label +1.
struct Movement {
  const double* most;        // in any bin
  const double* of_majority;     // if all samples were of the largest region, the majority
  const double* is_one_way;  // 1.0 if all samples of other regions gain weight relative to the
                             // majority, or all lose it; otherwise 0.0
  const double* low;         // the least factor of a sum if all samples are of the majority,
  const double* high;        // and the largest
};

// What a run keeps from round to round, and arrays for a round's search.
struct Splits {
  LossSamples samples;
  Triple* left;   // (n_outputs, n_bins) sums before each bin; for the slot of missing values, over
                  // all samples with a value
  double* noted;  // (5, n_outputs, n_bins) the fields of `Skew`, and the bin's tilt
  Movement movement;
  Triple* piece_sums;    // (n_outputs, most_pieces)
  Triple* piece_before;  // (n_outputs, most_pieces) sums of the bin before the piece
  double* piece_skew;   // (4, n_outputs, most_pieces) the fields of `Skew`
  int64* piece_bounds;   // (most_pieces)
  Best* piece_best;      // (most_pieces)
  int64* least;          // the best score at the end of a piece; lower bounds need no scan
  int64* regions;        // (3, n_outputs, 2) of the best cut: gradients and Hessians
  int64 has_hessians, most_pieces;
  double l2;
};

__device__ inline Triple term_of(const Splits& splits, int64 k, int64 sample) {
  Integers own = integers_of(splits.samples, k, sample);
  return {own.is_positive ? own.gradient : 0, own.is_positive ? 0 : own.gradient,
          splits.has_hessians ? own.hessian : 0};
}

__device__ inline Triple sums_at(const Splits& splits, int64 n_features, int64 k, int64 j,
                                 int64 code) {
  int64 layer = splits.has_hessians ? 2 * k : k;
  const int64* own = splits.samples.layers.histograms + (layer * n_features + j) * SLOTS;
  const int64* next = own + n_features * SLOTS;
  int64 hessian = splits.has_hessians ? next[code] + next[256 + code] : 0;
  return {own[256 + code], own[code], hessian};
}

// Integers that compare as the scores do. 0.0 and -0.0 are equal.
__device__ inline int64 score_key(int64 score) { return score; }
__device__ inline int64 score_key(double score) {
  int64 bits = __double_as_longlong(score);
  return bits >= 0 ? bits : NO_SCORE - bits;
}

__device__ inline int64 bound_key(int64 bound) { return bound; }
__device__ inline int64 bound_key(double bound) {
  return score_key(bound + fabs(bound) * OUTWARDS);
}

// By how much the share p of a bin's positive sum left of a cut may exceed the share n of its
// negative sum, and the other way round; and the most that p - t n and n - p / t are, with the tilt
// t, the bin's negative sum over its positive one.
//
// Of squared loss, rise and fall are the most that the sum of gradients left of a cut and its
// opposite are, over the bin's Hessian; the tilt is the sum of the votes since they were noted.
struct Skew {
  double positive, negative, rise, fall;
  __device__ void append(const Skew& other) {
    if (other.positive > positive) positive = other.positive;
    if (other.negative > negative) negative = other.negative;
    if (other.rise > rise) rise = other.rise;
    if (other.fall > fall) fall = other.fall;
  }
  __device__ Skew plus(const Skew& other) const {
    return {positive + other.positive, negative + other.negative, rise + other.rise,
            fall + other.fall};
  }
  // In arrays the fields are so many numbers apart.
  static __device__ Skew read(const double* from, int64 apart) {
    return {from[0], from[apart], from[2 * apart], from[3 * apart]};
  }
  __device__ void write(double* to, int64 apart) const {
    to[0] = positive;
    to[apart] = negative;
    to[2 * apart] = rise;
    to[3 * apart] = fall;
  }
};

// By how much the skew may grow if the share p moves by `by_p` and the share n by `by_n`.
__device__ inline Skew growth_of(double by_p, double by_n, double tilt) {
  return {by_p + by_n, by_p + by_n, by_p + tilt * by_n, by_n + by_p / tilt};
}

// How far the sum of signed gradients may be above its value at the left edge, and below it.
struct Reach {
  int64 up, down;
};

constexpr int64 ANYWHERE = int64(1) << 62;  // above every reach

// A bin or piece: the sums before it and up to its end; the two sums whose shares are compared, how
// far these may be ahead inside, and what is known of its reach beside that.
struct Inside {
  Triple low, high;
  int64 positive, negative;
  double by_positive, by_negative;
  Reach most;
};

// A whole number not below share * whole, and not above `whole`; share is at most 1.
__device__ inline int64 rounded_up(double share, int64 whole) {
  return smaller(whole, int64(share * double(whole) * (1.0 + OUTWARDS)) + 1);
}

__device__ inline Reach reach_of(const Inside& inside) {
  int64 p = inside.positive, n = inside.negative;
  int64 up = larger(rounded_up(inside.by_positive, p), p - n + rounded_up(inside.by_positive, n));
  int64 down = larger(rounded_up(inside.by_negative, n),
                      n - p + rounded_up(inside.by_negative, p));
  return {smaller(up, inside.most.up), smaller(down, inside.most.down)};
}

// Which cuts of a feature a monotone constraint allows: see `engines/monotone.py`. With several
// outputs, nothing is constrained.
struct Limit {
  int64 direction;  // 1, -1, or 0 for none
  double smoothing, l2;
};

constexpr double FORBIDDEN = -1e300;  // a score below all others
constexpr double ROUNDINGS = 0x1p-44;  // more than the roundings of levels, and of distances

__device__ inline bool is_allowed(int64) { return true; }
__device__ inline bool is_allowed(double score) { return score > FORBIDDEN; }

__device__ inline Limit limit_of(const Round& round, const Splits& splits, int64 feature,
                                 const Triple& present, const Triple& missing) {
  int64 direction = direction_of(round, feature);
  if (direction == 0) return {0, 0.0, splits.l2};
  int64 weight = present.positive + present.negative + missing.positive + missing.negative;
  double smoothing = double(weight) / double(2 * splits.samples.n_samples);
  return {direction, smoothing, splits.l2};
}

// One output's part of a cut's score, or NOT_ALLOWED.
template <class Votes>
__device__ inline typename Votes::Score worth_of(const Triple& left, const Triple& right,
                                                 const Triple& missing, const Limit& limit) {
  typename Votes::Score score = Votes::worth(left, right, missing, limit.l2);
  if (limit.direction == 0) return score;
  double one = Votes::level(left, limit), two = Votes::level(right, limit);
  bool is_in_order = limit.direction > 0 ? one <= two : one >= two;
  return is_in_order ? score : Votes::NOT_ALLOWED;
}

// A bound for the allowed cuts inside a bin or piece. They lie on one side of a line, so there are
// none if all corners lie on the other side: see `cpu/split/monotone_bounds.py`.
template <class Votes>
__device__ inline typename Votes::Score most_of(const Inside& inside, const Triple& present,
                                                const Triple& missing, const Limit& limit) {
  if (limit.direction != 0 && !Votes::may_allow(inside, present, limit))
    return Votes::NOT_ALLOWED;
  return Votes::most(inside, present, missing, limit.l2);
}

// The bound of a bin or piece as an integer: below all scores if no cut inside is allowed.
template <class Score>
__device__ inline int64 key_of_bound(Score bound) {
  return is_allowed(bound) ? bound_key(bound) : NO_SCORE;
}

// Discrete votes that several outputs share.
struct SharedVotes {
  using Score = int64;
  static constexpr Score NOT_ALLOWED = NO_SCORE;
  static __device__ double level(const Triple&, const Limit&) { return 0.0; }
  static __device__ bool may_allow(const Inside&, const Triple&, const Limit&) { return true; }
  static __device__ Score worth(const Triple& left, const Triple& right, const Triple& missing,
                                double) {
    return absolute(left.gradient() - right.gradient()) + absolute(missing.gradient());
  }
  static __device__ Score most(const Inside& inside, const Triple& present, const Triple& missing,
                               double) {
    Reach reach = reach_of(inside);
    int64 left = inside.low.gradient(), all = present.gradient();
    return larger(2 * (left + reach.up) - all, all - 2 * (left - reach.down)) +
           absolute(missing.gradient());
  }
};

struct RealVotes {
  using Score = double;
  static constexpr Score NOT_ALLOWED = FORBIDDEN;
  static __device__ double root(int64 positive, int64 negative) {
    return sqrt(double(positive) * double(negative));
  }
  static __device__ Score worth(const Triple& left, const Triple& right, const Triple& missing,
                                double) {
    double roots = root(left.positive, left.negative) + root(right.positive, right.negative);
    return -(roots + root(missing.positive, missing.negative));
  }
  static __device__ double at(const Triple& present, int64 positive, int64 negative) {
    return root(positive, negative) +
           root(present.positive - positive, present.negative - negative);
  }
  // The corners of the region in which the sums left of a cut lie, on the side where one sum is ahead.
  // Its share of `own` is ahead of the other sum's share of `other` by at most `by`, and the sum is
  // ahead by at most `most`. So two lines bound the region there. They meet its sides, and may meet
  // each other.
  template <class Take>
  static __device__ void ahead(int64 own, int64 other, double by, int64 most, Take take) {
    int64 first = smaller(rounded_up(by, own), most);
    int64 last = larger(other - rounded_up(by, other), own - most);
    take(first, int64(0));
    take(own, last);
    double p = double(own), n = double(other), x = (double(most) - by * n) / (1.0 - n / p);
    if (!(x > double(first) && x < p)) return;  // they do not meet in between
    // Any point below both lines will do; this is nearly the one where they meet.
    x = double(int64(x));
    double y = fmin(n * (x / p) - by * n, x - double(most)) - (p + n) * OUTWARDS - 1.0;
    take(int64(x), larger(int64(y), 0));
  }
  // The least value of a function at all corners of that region.
  template <class Function>
  static __device__ double least_at_corners(const Inside& inside, Function value) {
    int64 p0 = inside.low.positive, p9 = inside.high.positive;
    int64 n0 = inside.low.negative, n9 = inside.high.negative;
    double least = fmin(value(p0, n0), value(p9, n9));
    ahead(p9 - p0, n9 - n0, inside.by_positive, inside.most.up, [&](int64 p, int64 n) {
      least = fmin(least, value(p0 + p, n0 + n));
    });
    ahead(n9 - n0, p9 - p0, inside.by_negative, inside.most.down, [&](int64 n, int64 p) {
      least = fmin(least, value(p0 + p, n0 + n));
    });
    return least;
  }
  static __device__ Score most(const Inside& inside, const Triple& present, const Triple& missing,
                               double) {
    auto roots = [&](int64 p, int64 n) { return at(present, p, n); };
    return -(least_at_corners(inside, roots) + root(missing.positive, missing.negative));
  }
  static __device__ double level(const Triple& sums, const Limit& limit) {
    return (double(sums.positive) + limit.smoothing) / (double(sums.negative) + limit.smoothing);
  }
  static __device__ bool may_allow(const Inside& inside, const Triple& present,
                                   const Limit& limit) {
    double s = limit.smoothing, size = double(present.positive) + 2.0 * s;
    double slope = size / (double(present.negative) + 2.0 * s);
    auto beyond = [&](int64 p, int64 n) {
      return double(limit.direction) * ((double(p) + s) - slope * (double(n) + s));
    };
    return least_at_corners(inside, beyond) <= size * ROUNDINGS;
  }
};

struct NewtonVotes {
  using Score = double;
  static constexpr Score NOT_ALLOWED = FORBIDDEN;
  static __device__ double gain(int64 gradient, int64 hessian, double l2) {
    double x = double(gradient), below = double(hessian) + l2;
    return (x * x) / (below > 1.0 ? below : 1.0);  // the Hessian of an empty region is 0
  }
  static __device__ double of(const Triple& sums, double l2) {
    return gain(sums.gradient(), sums.hessian, l2);
  }
  static __device__ Score worth(const Triple& left, const Triple& right, const Triple& missing,
                                double l2) {
    return (of(left, l2) + of(right, l2)) + of(missing, l2);
  }
  static __device__ double at(const Triple& present, int64 gradient, int64 hessian, double l2) {
    return gain(gradient, hessian, l2) +
           gain(present.gradient() - gradient, present.hessian - hessian, l2);
  }
  static __device__ Score most(const Inside& inside, const Triple& present, const Triple& missing,
                               double l2) {
    Reach reach = reach_of(inside);
    int64 high = inside.low.gradient() + reach.up, low = inside.low.gradient() - reach.down;
    // A cut inside leaves a sample on either side, whose Hessian is above 0.
    int64 few = inside.low.hessian + 1, many = inside.high.hessian - 1;
    double most = fmax(at(present, high, few, l2), at(present, high, many, l2));
    most = fmax(most, fmax(at(present, low, few, l2), at(present, low, many, l2)));
    return most + of(missing, l2);
  }
  static __device__ double level(const Triple& sums, const Limit& limit) {
    double below = double(sums.hessian) + limit.l2;
    return double(sums.gradient()) / (below > 1.0 ? below : 1.0);
  }
  static __device__ bool may_allow(const Inside& inside, const Triple& present,
                                   const Limit& limit) {
    double size = double(present.positive + present.negative);
    double below = double(present.hessian) + 2.0 * limit.l2;
    double slope = double(present.gradient()) / (below > 1.0 ? below : 1.0);
    auto beyond = [&](int64 gradient, int64 hessian) {
      return double(limit.direction) * (double(gradient) - slope * (double(hessian) + limit.l2));
    };
    Reach reach = reach_of(inside);
    int64 high = inside.low.gradient() + reach.up, low = inside.low.gradient() - reach.down;
    int64 few = inside.low.hessian + 1, many = inside.high.hessian - 1;
    double least = fmin(beyond(high, few), beyond(high, many));
    least = fmin(least, fmin(beyond(low, few), beyond(low, many)));
    return least <= size * ROUNDINGS;
  }
};

// By how many units the sum of a bin's integers and that of its weights may differ, with room for
// roundings: see `cpu/split/skew.py`.
__device__ inline double units_apart(const Splits& splits, int64 n_inside) {
  return 4.0 * double(n_inside) + 1024.0 * double(splits.samples.n_outputs + 4);
}

// How far a step has moved the share of a sum that was `then` and is `now`.
__device__ inline double moved(const Movement& movement, int64 at, int64 then, int64 now,
                               double n_units) {
  double most = movement.most[at];
  if (movement.is_one_way[at] == 0.0) return most;
  double sum = double(now), low = movement.low[at] * double(then);
  double high = movement.high[at] * double(then);
  // The error of the sum before the step has changed with the sum.
  double off = n_units * (1.0 + movement.high[at]);
  double gain = fmax(fabs(sum - low), fabs(sum - high)) + off, total = sum - n_units;
  double share = total > gain ? gain / total : 1.0;
  return fmin(most, movement.of_majority[at] + share + OUTWARDS);
}

// The two sums of a bin whose shares a step hardly moves: those of both labels, or for Poisson and
// gamma loss those of the two amounts.
struct Sides {
  int64 positive, negative;
};

__device__ inline Sides sides_of(const Splits& splits, const Triple& sums) {
  if (splits.samples.loss < POISSON) return {sums.positive, sums.negative};
  return {(sums.hessian + sums.gradient()) >> 1, (sums.hessian - sums.gradient()) >> 1};
}

__device__ inline int64 rounded_reach(double most) {
  double found = most * (1.0 + OUTWARDS) + 1.0;
  return found < double(ANYWHERE) ? int64(found) : ANYWHERE;  // it may be no number
}

// How far one of both sums, `own`, may get ahead of the other one in a bin. With the sums P and N,
// P p - N n = P (p - t n) + (P t - N) n, and n lies between 0 and 1.
__device__ inline int64 reach_of(double rise, double tilt, double own, double other) {
  return rounded_reach(own * rise + fmax(0.0, own * tilt - other));
}

// Update what is noted of a bin, whose sums were `then` and are `now`. Returns what may lie inside
// it. The notes of a bin with hardly any weight are dropped: its weights may be at their floor, where
// they do not follow the factors.
__device__ inline Inside inside_of(const Splits& splits, int64 n_bins, int64 k, int64 bin,
                                   int64 n_inside, const Sides& then, const Triple& low,
                                   const Triple& high) {
  const Sides now = sides_of(splits, less(high, low));
  double p = double(now.positive), n = double(now.negative);
  double n_units = units_apart(splits, n_inside), off_p = n_units / p, off_n = n_units / n;
  double moved_n = moved(splits.movement, 2 * k, then.negative, now.negative, n_units);
  double moved_p = moved(splits.movement, 2 * k + 1, then.positive, now.positive, n_units);
  const int64 plane = splits.samples.n_outputs * n_bins;
  double* noted = splits.noted + k * n_bins + bin;
  const double tilt = noted[4 * plane];
  const Skew off = growth_of(off_p, off_n, tilt);
  Skew next = {FORGOTTEN, FORGOTTEN, FORGOTTEN, FORGOTTEN};
  if (off.positive < 1.0) next = Skew::read(noted, plane).plus(growth_of(moved_p, moved_n, tilt));
  next.write(noted, plane);
  const Skew most = next.plus(off);
  return {low, high, now.positive, now.negative, fmin(1.0, most.positive),
          fmin(1.0, most.negative),
          {reach_of(most.rise, tilt, p, n), reach_of(most.fall, 1.0 / tilt, n, p)}};
}

// The same for squared loss. A step takes the vote of the largest region times the Hessian from a
// sum of gradients, and more or less from the samples of other regions.
__device__ inline Inside inside_of_residuals(const Splits& splits, int64 n_bins, int64 bin,
                                             int64 n_inside, const Triple& then,
                                             const Triple& low, const Triple& high) {
  const Triple now = less(high, low);
  const Movement& movement = splits.movement;
  double vote = movement.low[0], size = double(now.hessian), change = vote * size;
  double others = (double(now.gradient() - then.gradient()) + change) / size;
  double off = (2.0 * double(n_inside) + fabs(change) * OUTWARDS) / size;  // roundings
  double up = fmax(0.0, others), down = fmax(0.0, -others);
  if (movement.is_one_way[0] == 0.0) up = down = movement.most[0];
  double* noted = splits.noted + bin;
  double rise = noted[2 * n_bins] += up + off, fall = noted[3 * n_bins] += down + off;
  double votes = noted[4 * n_bins] += vote;
  Reach most = {rounded_reach(size * (rise + fmax(0.0, -votes))),
                rounded_reach(size * (fall + fmax(0.0, votes)))};
  return {low, high, now.positive, now.negative, 1.0, 1.0, most};
}

// Update the bins of all features: sums, each feature's best edge, and bounds.
template <class Votes>
__device__ void weigh_splits(const PreparedTable& table, const Round& round,
                             const Splits& splits) {
  using Score = typename Votes::Score;
  Triple(*running)[256] = reinterpret_cast<Triple(*)[256]>(shared);
  Score* score = reinterpret_cast<Score*>(running + 2);
  Score* bound = score + 256;
  BestEdge* found = reinterpret_cast<BestEdge*>(bound + 256);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    begin_search(round);
    *splits.least = NO_SCORE;
  }
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    Feature feature = table.features[j];
    int64 n_bins = feature.n_bins;
    for (int64 k = 0; k < splits.samples.n_outputs; k++) {
      FOR_BLOCK(b, 0, n_bins) running[0][b] = sums_at(splits, table.n_features, k, j, b);
      __syncthreads();
      int from = 0;
      for (int64 step = 1; step < n_bins; step *= 2, from = 1 - from) {
        FOR_BLOCK(b, 0, n_bins) {
          Triple sum = running[from][b];
          if (b >= step) sum.append(running[from][b - step]);
          running[1 - from][b] = sum;
        }
        __syncthreads();
      }
      const Triple* until = running[from];  // the sums up to the end of each bin
      const Triple present = n_bins > 0 ? until[n_bins - 1] : NOTHING;
      const Triple missing = sums_at(splits, table.n_features, k, j, MISSING);
      Triple* left = splits.left + k * table.n_bins + feature.first;
      const Limit limit = limit_of(round, splits, j, present, missing);
      Triple* then = running[1 - from];  // the sums before each bin in the last round
      FOR_BLOCK(b, 0, n_bins + 1) then[b] = left[b];
      __syncthreads();
      FOR_BLOCK(b, 0, n_bins) {
        const Triple low = b > 0 ? until[b - 1] : NOTHING, high = until[b];
        left[b] = low;
        Score part = worth_of<Votes>(high, less(present, high), missing, limit);
        score[b] = k == 0 ? part : score[b] + part;
        const Bin bin = table.bins[feature.first + b];
        if (!bin.has_cuts) continue;
        const Triple before = less(then[b + 1], then[b]);
        Inside inside =
            splits.samples.loss == SQUARED
                ? inside_of_residuals(splits, table.n_bins, feature.first + b, bin.n_inside, before,
                                      low, high)
                : inside_of(splits, table.n_bins, k, feature.first + b, bin.n_inside,
                            sides_of(splits, before), low, high);
        Score most = most_of<Votes>(inside, present, missing, limit);
        bound[b] = k == 0 ? most : bound[b] + most;
      }
      if (threadIdx.x == 0) left[n_bins] = present;
      __syncthreads();
    }
    BestEdge mine = {NO_SCORE, 0, 0};
    FOR_BLOCK(b, 0, n_bins) {
      const Bin bin = table.bins[feature.first + b];
      round.bounds[feature.first + b] = bin.has_cuts ? key_of_bound(bound[b]) : NO_SCORE;
      if (b + 1 < n_bins && is_allowed(score[b]))
        mine.append({score_key(score[b]), bin.offset + bin.n_inside - 1, 0});
    }
    // A threshold above all values separates all values from the missing ones. It counts only if it
    // is better than a constant.
    bool is_apart = n_bins > 0 && table.bins[feature.first + n_bins].n_inside > 0;
    if (is_apart && threadIdx.x == 0) {
      Score apart = 0, together = 0;
      for (int64 k = 0; k < splits.samples.n_outputs; k++) {
        const Triple present = splits.left[k * table.n_bins + feature.first + n_bins];
        const Triple missing = sums_at(splits, table.n_features, k, j, MISSING);
        Triple all = present;
        all.append(missing);
        Score two = Votes::worth(present, NOTHING, missing, splits.l2);
        Score one = Votes::worth(all, NOTHING, NOTHING, splits.l2);
        apart = k == 0 ? two : apart + two;
        together = k == 0 ? one : together + one;
      }
      if (apart > together) mine.append({score_key(apart), feature.n_present - 1, 0});
    }
    combine(mine, found);
    if (threadIdx.x == 0) {
      round.wanted[j] = 0;
      round.edges[j] = {mine.score, mine.position, -1, 0, 0};
    }
    __syncthreads();
  }
}

// Add up each piece of the bins that are listed. A block takes a piece.
KERNEL sum_pieces(const Piece* pieces, const PreparedTable table, const Round round,
                  const Splits splits) {
  for (int64 p = blockIdx.x; p < round.counts->n_pieces; p += gridDim.x) {
    Bin bin = table.bins[pieces[p].bin];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    int64 begin = bin.offset + pieces[p].number * SPLIT_PIECE;
    int64 end = smaller(begin + SPLIT_PIECE, bin.offset + bin.n_inside);
    for (int64 k = 0; k < splits.samples.n_outputs; k++) {
      Triple mine = NOTHING;
      FOR_BLOCK(at, begin, end) mine.append(term_of(splits, k, sample_of(order[at])));
      combine(mine, reinterpret_cast<Triple*>(shared));
      if (threadIdx.x == 0) splits.piece_sums[k * splits.most_pieces + p] = mine;
      __syncthreads();
    }
  }
}

// For each thread the sum of all earlier threads' values. `room` has two values for each thread.
__device__ inline Triple sum_of_earlier(const Triple& mine, Triple* room) {
  uint32 t = threadIdx.x, n = blockDim.x;
  room[t] = mine;
  __syncthreads();
  int from = 0;
  for (uint32 step = 1; step < n; step *= 2, from = 1 - from) {
    Triple sum = room[from * n + t];
    if (t >= step) sum.append(room[from * n + t - step]);
    room[(1 - from) * n + t] = sum;
    __syncthreads();
  }
  Triple earlier = t > 0 ? room[from * n + t - 1] : NOTHING;
  __syncthreads();
  return earlier;
}

// How far shares are ahead, at most, if the sums of a bin left of a cut lie between two others.
// Products with one over a sum are off by far less than a unit of it, which `note_bins` adds.
__device__ inline Skew skew_of(const Splits& splits, const Triple& whole, const Sides& least,
                               const Sides& most) {
  const Sides all = sides_of(splits, whole);
  bool is_squared = splits.samples.loss == SQUARED;
  double of_p = 1.0 / double(all.positive), of_n = 1.0 / double(all.negative);
  double of_rise = is_squared ? 1.0 / double(whole.hessian) : of_p;
  double of_fall = is_squared ? of_rise : of_n;
  double p0 = double(least.positive), n0 = double(least.negative);
  double p9 = double(most.positive), n9 = double(most.negative);
  return {p9 * of_p - n0 * of_n, n9 * of_n - p0 * of_p, (p9 - n0) * of_rise,
          (n9 - p0) * of_fall};
}

// Where the skew of a piece is, whose fields are n_outputs * most_pieces apart.
__device__ inline double* skew_at(const Splits& splits, int64 k, int64 piece) {
  return splits.piece_skew + k * splits.most_pieces + piece;
}

// Bound the cuts inside each piece of the listed bins by its corners, and score the cut at its end.
// A block takes a bin, and each of its threads a piece at a time.
template <class Votes>
__device__ void bound_pieces(const Listed* listed, const PreparedTable& table, const Round& round,
                             const Splits& splits) {
  using Score = typename Votes::Score;
  Triple* room = reinterpret_cast<Triple*>(shared);
  BestEdge* found = reinterpret_cast<BestEdge*>(shared);
  for (int64 i = blockIdx.x; i < round.counts->n_listed; i += gridDim.x) {
    const int64 b = listed[i].bin, first_piece = listed[i].first_piece;
    const Bin bin = table.bins[b];
    const Feature feature = table.features[bin.feature];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    int64 n_pieces = (bin.n_inside - 1 + SPLIT_PIECE - 1) / SPLIT_PIECE;
    for (int64 k = 0; k < splits.samples.n_outputs; k++) {
      const Triple* sums = splits.piece_sums + k * splits.most_pieces + first_piece;
      Triple* before = splits.piece_before + k * splits.most_pieces + first_piece;
      Triple until_here = NOTHING;
      for (int64 begin = 0; begin < n_pieces; begin += blockDim.x) {
        int64 q = begin + threadIdx.x;
        Triple mine = q < n_pieces ? sums[q] : NOTHING;
        Triple earlier = sum_of_earlier(mine, room);
        earlier.append(until_here);
        if (q < n_pieces) before[q] = earlier;
        if (threadIdx.x == blockDim.x - 1) {
          room[0] = earlier;
          room[0].append(mine);
        }
        __syncthreads();
        until_here = room[0];
        __syncthreads();
      }
    }
    BestEdge mine = {NO_SCORE, 0, 0};
    FOR_BLOCK(q, 0, n_pieces) {
      int64 p = first_piece + q, end = bin.offset + (q + 1) * SPLIT_PIECE - 1;
      Score bound = 0, score = 0;
      for (int64 k = 0; k < splits.samples.n_outputs; k++) {
        const Triple* left = splits.left + k * table.n_bins;
        const Triple present = left[feature.first + feature.n_bins];
        const Triple missing = sums_at(splits, table.n_features, k, bin.feature, MISSING);
        const Limit limit = limit_of(round, splits, bin.feature, present, missing);
        const Triple whole = less(left[b + 1], left[b]);
        const Triple before = splits.piece_before[k * splits.most_pieces + p];
        const Triple own = splits.piece_sums[k * splits.most_pieces + p];
        Triple until = before;
        until.append(own);
        Triple low = before, high = until;
        low.append(left[b]);
        high.append(left[b]);
        const Sides sides = sides_of(splits, own);
        Inside inside = {low, high, sides.positive, sides.negative, 1.0, 1.0,
                         {ANYWHERE, ANYWHERE}};
        Score most = most_of<Votes>(inside, present, missing, limit);
        Score part = worth_of<Votes>(high, less(present, high), missing, limit);
        bound = k == 0 ? most : bound + most;
        score = k == 0 ? part : score + part;
        skew_of(splits, whole, sides_of(splits, before), sides_of(splits, until))
            .write(skew_at(splits, k, p), splits.samples.n_outputs * splits.most_pieces);
      }
      bool is_cut = end + 1 < bin.offset + bin.n_inside && order[end] >= 0 && is_allowed(score);
      int64 key = is_cut ? score_key(score) : NO_SCORE;
      splits.piece_bounds[p] = larger(key_of_bound(bound), key);
      splits.piece_best[p] = {key, bin.feature, end, p};
      mine.append({key, 0, 0});
    }
    combine(mine, found);
    if (threadIdx.x == 0) atomicMax(splits.least, mine.score);
    __syncthreads();
  }
}

// Score every cut inside each piece that may hold the best one, and note how far shares are ahead
// there. A block takes a piece, and each of its threads a stretch of it, output after output.
template <class Votes>
__device__ void scan_splits(const Piece* pieces, const PreparedTable& table, const Round& round,
                            const Splits& splits) {
  using Score = typename Votes::Score;
  Score* score = reinterpret_cast<Score*>(shared);
  Triple* room = reinterpret_cast<Triple*>(score + SPLIT_PIECE);
  Best known = round.result->best;
  FOR_BLOCK(j, 0, table.n_features) known.append(best_of(round.edges, j));
  combine(known, reinterpret_cast<Best*>(room));
  const int64 least = larger(*splits.least, reinterpret_cast<Best*>(room)->score);
  __syncthreads();
  for (int64 p = blockIdx.x; p < round.counts->n_pieces; p += gridDim.x) {
    if (splits.piece_bounds[p] < least) continue;
    const Piece piece = pieces[p];
    const Bin bin = table.bins[piece.bin];
    const int* order = reinterpret_cast<const int*>(table.orders[bin.feature]);
    const Feature feature = table.features[bin.feature];
    int64 begin = bin.offset + piece.number * SPLIT_PIECE;
    int64 count = smaller(SPLIT_PIECE, bin.offset + bin.n_inside - 1 - begin);
    int64 stretch = (count + blockDim.x - 1) / blockDim.x;
    int64 from = smaller(threadIdx.x * stretch, count), to = smaller(from + stretch, count);
    for (int64 k = 0; k < splits.samples.n_outputs; k++) {
      const Triple* left = splits.left + k * table.n_bins;
      const Triple present = left[feature.first + feature.n_bins];
      const Triple missing = sums_at(splits, table.n_features, k, bin.feature, MISSING);
      const Limit limit = limit_of(round, splits, bin.feature, present, missing);
      const Triple low = left[piece.bin], whole = less(left[piece.bin + 1], low);
      Triple inside = splits.piece_before[k * splits.most_pieces + p];
      Triple mine = NOTHING;
      for (int64 at = from; at < to; at++)
        mine.append(term_of(splits, k, sample_of(order[begin + at])));
      inside.append(sum_of_earlier(mine, room));
      Skew skew = {0.0, 0.0, 0.0, 0.0};
      for (int64 at = from; at < to; at++) {
        int marked = order[begin + at];
        inside.append(term_of(splits, k, sample_of(marked)));
        if (marked < 0) continue;  // the next sample has the same value
        Triple until = low;
        until.append(inside);
        Score part = worth_of<Votes>(until, less(present, until), missing, limit);
        score[at] = k == 0 ? part : score[at] + part;
        const Sides here = sides_of(splits, inside);
        skew.append(skew_of(splits, whole, here, here));
      }
      combine(skew, reinterpret_cast<Skew*>(room));
      if (threadIdx.x == 0)
        skew.write(skew_at(splits, k, p), splits.samples.n_outputs * splits.most_pieces);
      __syncthreads();
    }
    Best mine = {NO_SCORE, 0, 0, -1};
    for (int64 at = from; at < to; at++)
      if (order[begin + at] >= 0 && is_allowed(score[at]))
        mine.append({score_key(score[at]), bin.feature, begin + at, p});
    combine(mine, reinterpret_cast<Best*>(room));
    if (threadIdx.x == 0) splits.piece_best[p] = mine;
    __syncthreads();
  }
}

// Write an output's sums over a region of a cut: of the gradients and of the Hessians.
// `regions` (3, n_outputs, 2) has those of all regions.
__device__ inline void write_region(const Splits& splits, int region, int64 k,
                                    const Triple& sums, int64* regions) {
  int64* to = regions + (region * splits.samples.n_outputs + k) * 2;
  to[0] = sums.gradient();
  to[1] = splits.has_hessians ? sums.hessian : sums.positive + sums.negative;
}

// Note how far shares are ahead in the bins that have been searched, and rule the bins out.
__device__ inline void note_bins(const Listed* listed, const PreparedTable& table,
                                 const Round& round, const Splits& splits) {
  FOR_BLOCK(i, 0, round.counts->n_listed) {
    int64 b = listed[i].bin;
    const Bin bin = table.bins[b];
    int64 n = (bin.n_inside - 1 + SPLIT_PIECE - 1) / SPLIT_PIECE;
    double n_units = units_apart(splits, bin.n_inside);
    for (int64 k = 0; k < splits.samples.n_outputs; k++) {
      const Triple* left = splits.left + k * table.n_bins + b;
      const Triple own = less(left[1], left[0]);
      const Sides sides = sides_of(splits, own);
      bool is_squared = splits.samples.loss == SQUARED;
      double off_p = n_units / double(sides.positive), off_n = n_units / double(sides.negative);
      double tilt = double(sides.negative) / double(sides.positive);
      Skew most = {0.0, 0.0, 0.0, 0.0};
      for (int64 p = listed[i].first_piece; p < listed[i].first_piece + n; p++)
        most.append(Skew::read(skew_at(splits, k, p),
                               splits.samples.n_outputs * splits.most_pieces));
      if (!is_squared) most = most.plus(growth_of(off_p, off_n, tilt));
      int64 plane = splits.samples.n_outputs * table.n_bins;
      double* noted = splits.noted + k * table.n_bins + b;
      most.write(noted, plane);
      noted[4 * plane] = is_squared ? 0.0 : tilt;
    }
    round.bounds[b] = NO_SCORE;  // its best cut is compared in this kernel
  }
}

// The bin of a feature that holds a sorted position.
__device__ inline int64 bin_at(const PreparedTable& table, int64 j, int64 position) {
  int64 low = table.features[j].first, high = low + table.features[j].n_bins;
  while (high - low > 1) {
    int64 middle = (low + high) / 2;
    if (table.bins[middle].offset <= position) low = middle;
    else high = middle;
  }
  return low;
}

// Where the sum over the left region of a cut begins.
struct Start {
  int64 bin;            // the bin that holds the cut, or the one after it if the bin ends there
  int64 position;       // the first sorted position that is added up, up to the cut's
  const Triple* known;  // for each output, `stride` apart, the bin's sums before it; null for none
  int64 stride;
};

// The start of the bin that holds a cut. A cut after the last value has no samples to add up.
__device__ inline Start start_of(const PreparedTable& table, int64 j, int64 position) {
  const Feature feature = table.features[j];
  if (position + 1 >= feature.n_present)
    return {feature.first + feature.n_bins, position + 1, nullptr, 0};
  int64 b = bin_at(table, j, position);
  const Bin bin = table.bins[b];
  if (position + 1 == bin.offset + bin.n_inside) return {b + 1, position + 1, nullptr, 0};
  return {b, bin.offset, nullptr, 0};
}

// Add up the regions of a cut of feature j, and write their sums. A block works on it.
__device__ inline void sum_regions(const PreparedTable& table, const Splits& splits, int64 j,
                                   int64 position, const Start& start, int64* regions) {
  Triple* room = reinterpret_cast<Triple*>(shared);
  const int* order = reinterpret_cast<const int*>(table.orders[j]);
  const int64 last = table.features[j].first + table.features[j].n_bins;
  for (int64 k = 0; k < splits.samples.n_outputs; k++) {
    Triple left = NOTHING;
    if (threadIdx.x == 0 && start.known) left = start.known[k * start.stride];
    FOR_BLOCK(at, start.position, position + 1)
      left.append(term_of(splits, k, sample_of(order[at])));
    combine(left, room);
    if (threadIdx.x == 0) {
      const Triple* before_bin = splits.left + k * table.n_bins;
      left.append(before_bin[start.bin]);
      const Triple missing = sums_at(splits, table.n_features, k, j, MISSING);
      write_region(splits, FIRST_REGION, k, left, regions);
      write_region(splits, SECOND_REGION, k, less(before_bin[last], left), regions);
      write_region(splits, MISSING_REGION, k, missing, regions);
    }
    __syncthreads();
  }
}

// Add up the regions of some cuts, which need not be the best ones.
//
// cuts   (n_cuts, 2) features and sorted positions
// found  (n_cuts, 3, n_outputs, 2)
KERNEL_OF_128_REGISTERS sum_cuts(const int64* cuts, int64 n_cuts, const PreparedTable table,
                                 const Splits splits, int64* found) {
  for (int64 i = blockIdx.x; i < n_cuts; i += gridDim.x) {
    int64 j = cuts[2 * i], position = cuts[2 * i + 1];
    Start start = start_of(table, j, position);
    sum_regions(table, splits, j, position, start, found + i * 6 * splits.samples.n_outputs);
  }
}

// Take the best cut of all, add up its regions, and keep what was found of the bins. Runs as one
// block.
KERNEL_OF_HALF_BLOCKS finish_splits(const Piece* pieces, const Listed* listed,
                                    const PreparedTable table, const Round round,
                                    const Splits splits) {
  Result* result = round.result;
  const Best before = result->best;
  Best mine = before;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  FOR_BLOCK(p, 0, round.counts->n_pieces) mine.append(splits.piece_best[p]);
  note_bins(listed, table, round, splits);
  combine(mine, reinterpret_cast<Best*>(shared));
  const Best best = *reinterpret_cast<Best*>(shared);
  __syncthreads();  // all have read what the first thread is about to write
  if (threadIdx.x == 0) take(round, best);
  bool is_none = best.score == NO_SCORE;
  if (!is_none && !is_other(best, before)) return;

  int64 j = best.feature;
  int64 position = is_none ? table.features[j].n_present - 1 : best.position;
  Start start = start_of(table, j, position);
  bool is_inside = start.position <= position;
  if (is_inside) {
    start.position = table.bins[start.bin].offset + pieces[best.detail].number * SPLIT_PIECE;
    start.known = splits.piece_before + best.detail;
    start.stride = splits.most_pieces;
  }
  sum_regions(table, splits, j, position, start, splits.regions);
  if (threadIdx.x == 0 && is_inside) write_neighbours(table, j, position, &result->beside[0]);
}

#define VOTES(votes, Votes)                                                                   \
  KERNEL_OF_128_REGISTERS weigh_##votes(const PreparedTable table, const Round round,        \
                                         const Splits splits) {                               \
    weigh_splits<Votes>(table, round, splits);                                                \
  }                                                                                           \
  KERNEL_OF_128_REGISTERS scan_##votes(const Piece* pieces, const PreparedTable table,       \
                                        const Round round, const Splits splits) {             \
    scan_splits<Votes>(pieces, table, round, splits);                                         \
  }                                                                                           \
  KERNEL_OF_ALL_REGISTERS bound_##votes(const Listed* listed, const PreparedTable table,      \
                                        const Round round, const Splits splits) {             \
    bound_pieces<Votes>(listed, table, round, splits);                                        \
  }

VOTES(discrete, SharedVotes)
VOTES(real, RealVotes)
VOTES(newton, NewtonVotes)
