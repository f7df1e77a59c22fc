// Pairs of features: the turns of a run, the scores of pairs, and what a turn adds to other samples.
//
// The definition is `engines.quadrants`; the numbers are those of `engines.reference.pairs`, bit for
// bit. A turn is queued as a whole, two launches for each pair. In the first one every block changes
// its samples by the step of the pair before, and adds their integers to the cells of the pair, in
// shared memory. In the second one a block finds the best cut, its votes, and the factors. If one of
// them is in doubt, nothing that is queued afterwards has an effect, and the host makes that step.

#include "common.cuh"
#include "integers.cuh"
#include "powers.cuh"

constexpr int N_QUADRANTS = 4;
constexpr int MOST_CELLS = 1024;         // of a pair
constexpr double MOST_UNITS = 0x1p40;    // of a vote that is certain
constexpr int64 NO_PAIR = -1;

// The samples of a run.
struct PairSamples {
  const uint8* bins;     // (n_features, n_samples)
  const int64* n_bins;   // (n_features)
  LossSamples own;       // without scores, sums and layers
};

// The step that is made next: it changes nothing if `cut` is 0.
struct PairStep {
  int64 first, second;  // the features
  int64 cut, other_cut;
};

struct PairMotion {
  PairStep* step;
  double* votes;    // (4, n_outputs)
  double* factors;  // (4, n_outputs, 2), for samples with the label -1, and with +1
};

// How votes follow from sums: `engines.batched_rounds.VoteRule`.
struct VoteRule {
  double scale, doubt, l2, largest_step;
  int64 loss;
};

// The pairs that take turns.
struct PairTurn {
  const int64* pairs;         // (n_pairs, 2)
  const int64* candidates;    // (n_pairs, n_candidates, 2), the cuts that each pair chooses from
  const int64* n_candidates;  // 0 for all cuts
  int64* places;  // (n_pairs, 2) the cut of each; 0 where nothing is added
  double* votes;  // (n_pairs, 4, n_outputs)
  int64* n_made;  // the number of the first pair whose step is in doubt
  int64* cells;   // (n_outputs, 2, MOST_CELLS), zeros before and after a step
};

// The shape of a pair's histogram.
struct Shape {
  int64 n_rows, n_columns;
  __device__ int64 n_cells() const { return n_rows * n_columns; }
  __device__ int64 n_cuts() const { return (n_rows - 1) * (n_columns - 1); }
};

__device__ inline Shape shape_of(const PairSamples& samples, const int64* pair) {
  return {samples.n_bins[pair[0]], samples.n_bins[pair[1]]};
}

// Shared memory: words for additions, running sums, scores, and room to combine what threads found.
constexpr int N_WORDS = 2 * MOST_CELLS;  // lower ones, and as many upper ones
__device__ inline uint32* words() { return reinterpret_cast<uint32*>(shared); }
__device__ inline int64* running_sums() { return reinterpret_cast<int64*>(words() + 2 * N_WORDS); }
__device__ inline double* scores_of_cuts() {
  return reinterpret_cast<double*>(running_sums() + 2 * MOST_CELLS);
}

__device__ inline int quadrant_of(const uint8* first, const uint8* second, int64 cut,
                                  int64 other_cut, int64 i) {
  return 2 * (first[i] >= cut) + (second[i] >= other_cut);
}

// Change what the loss keeps of a sample by the votes of its region.
__device__ inline void make_step(const PairSamples& samples, const PairMotion& motion,
                                 const PairStep& step, int64 i) {
  const LossSamples& own = samples.own;
  const uint8* first = samples.bins + step.first * own.n_samples;
  const uint8* second = samples.bins + step.second * own.n_samples;
  const int region = quadrant_of(first, second, step.cut, step.other_cut, i);
  const int64 n_outputs = own.n_outputs;
  double* number = own.numbers + i;
  const double* factors = motion.factors + region * n_outputs * 2;
  if (own.loss == SQUARED) {
    *number -= motion.votes[region];
  } else if (own.loss == LOGISTIC) {
    *number = moved_odds(*number, factors[*number > 0.0]);
  } else if (own.loss == SOFTMAX) {
    double total = 0.0;
    for (int64 k = 0; k < n_outputs; k++) {
      double grown = grown_probability(number[k * own.n_samples], factors[2 * k + 1]);
      number[k * own.n_samples] = grown;
      total += fabs(grown);
    }
    for (int64 k = 0; k < n_outputs; k++)
      number[k * own.n_samples] = share_of(number[k * own.n_samples], total);
  } else {
    *number = moved_amount(*number, factors[own.loss == GAMMA]);
  }
}

__device__ inline void clear_words() {
  FOR_BLOCK(i, 0, 2 * N_WORDS) words()[i] = 0;
  __syncthreads();
}

// Add a number to a cell of the words in shared memory, in two halves: there are no atomic additions
// of 64 bits to shared memory.
__device__ inline void add_to_cell(uint32 base, int64 cell, int64 by) {
  uint32 at = base + 4 * uint32(cell);
  uint32 before = fetch_and_add(at, uint32(by));
  add_only(at + 4 * N_WORDS, uint32((uint64(by) + before) >> 32));
}

// Add a sample's integers of an output.
__device__ inline void add_sample(const PairSamples& samples, const int64* pair, int64 n_columns,
                                  int64 k, int64 i, uint32 base) {
  const int64 n = samples.own.n_samples;
  int64 cell = samples.bins[pair[0] * n + i] * n_columns + samples.bins[pair[1] * n + i];
  Integers own = integers_of(samples.own, k, i);
  add_to_cell(base, cell, own.is_positive ? own.gradient : -own.gradient);
  add_to_cell(base, MOST_CELLS + cell, own.hessian);
}

__device__ inline int64 sum_at(int64 i) {
  return int64(uint64(words()[N_WORDS + i]) << 32 | words()[i]);
}

// Change all samples by the step that is made next, and add their integers to the cells of pair
// `number`. For NO_PAIR the step is all.
KERNEL_OF_80_REGISTERS pass_pairs(const PairSamples samples, const PairMotion motion,
                                  const PairTurn turn, int64 number) {
  if (number != NO_PAIR && *turn.n_made <= number) return;
  const LossSamples& own = samples.own;
  const PairStep step = *motion.step;
  if (number == NO_PAIR) {
    if (step.cut > 0) FOR_GRID(i, 0, own.n_samples) make_step(samples, motion, step, i);
    return;
  }
  const int64* pair = turn.pairs + 2 * number;
  const Shape shape = shape_of(samples, pair);
  const uint32 base = address_of_shared();
  for (int64 k = 0; k < own.n_outputs; k++) {
    clear_words();
    FOR_GRID(i, 0, own.n_samples) {
      if (step.cut > 0 && k == 0) make_step(samples, motion, step, i);
      add_sample(samples, pair, shape.n_columns, k, i, base);
    }
    end_of_additions();
    __syncthreads();
    int64* cells = turn.cells + 2 * k * MOST_CELLS;
    FOR_BLOCK(i, 0, 2 * MOST_CELLS) {
      int64 sum = sum_at(i);
      if (sum) add_to(&cells[i], sum);
    }
    __syncthreads();
  }
}

// Add up along both axes, so that cell (a, b) has the sums over all cells up to it.
__device__ void run_up(const Shape& shape) {
  int64* sums = running_sums();
  FOR_BLOCK(line, 0, 2 * shape.n_rows) {
    int64* row = sums + line / shape.n_rows * MOST_CELLS + line % shape.n_rows * shape.n_columns;
    for (int64 b = 1; b < shape.n_columns; b++) row[b] += row[b - 1];
  }
  __syncthreads();
  FOR_BLOCK(line, 0, 2 * shape.n_columns) {
    int64* column = sums + line / shape.n_columns * MOST_CELLS + line % shape.n_columns;
    for (int64 at = shape.n_columns; at < shape.n_cells(); at += shape.n_columns)
      column[at] += column[at - shape.n_columns];
  }
  __syncthreads();
}

// The sums over the regions of a cut, from running sums of gradients or of Hessians.
struct Quadrants {
  int64 both, below, beside, rest;
};

__device__ inline Quadrants quadrants_at(const int64* sums, const Shape& shape, int64 a, int64 b) {
  int64 both = sums[(a - 1) * shape.n_columns + b - 1];
  int64 one = sums[a * shape.n_columns - 1];
  int64 other = sums[(shape.n_rows - 1) * shape.n_columns + b - 1];
  int64 all = sums[shape.n_cells() - 1];
  return {both, one - both, other - both, all - one - other + both};
}

__device__ inline double gain_of(int64 gradient, int64 hessian, double l2) {
  double divisor = double(hessian) + l2, size = double(gradient);
  return (size * size) / (divisor > 1.0 ? divisor : 1.0);
}

// The cuts that a pair chooses from.
struct Cuts {
  Shape shape;
  const int64* candidates;
  int64 n_candidates;
  __device__ int64 n() const { return n_candidates ? n_candidates : shape.n_cuts(); }
  __device__ int64 first(int64 i) const {
    return n_candidates ? candidates[2 * i] : i / (shape.n_columns - 1) + 1;
  }
  __device__ int64 second(int64 i) const {
    return n_candidates ? candidates[2 * i + 1] : i % (shape.n_columns - 1) + 1;
  }
};

// Add an output's part of all scores, from the running sums; the first output sets them. A thread
// takes the same cuts each time, and compares them in `best_of`.
__device__ void add_scores(const Cuts& cuts, double l2, bool is_first) {
  double* scores = scores_of_cuts();
  FOR_BLOCK(i, 0, cuts.n()) {
    Quadrants g = quadrants_at(running_sums(), cuts.shape, cuts.first(i), cuts.second(i));
    Quadrants h =
        quadrants_at(running_sums() + MOST_CELLS, cuts.shape, cuts.first(i), cuts.second(i));
    double across = gain_of(g.both, h.both, l2) + gain_of(g.rest, h.rest, l2);
    double own = across + (gain_of(g.below, h.below, l2) + gain_of(g.beside, h.beside, l2));
    scores[i] = is_first ? own : scores[i] + own;
  }
}

// The best score, and the first cut that has it.
struct BestCut {
  double score;
  int64 number;
  __device__ void append(const BestCut& other) {
    bool is_better = other.score > score;
    if (is_better || (other.score == score && other.number < number)) *this = other;
  }
};

// All threads return the best cut.
__device__ BestCut best_of(int64 n_cuts) {
  const double* scores = scores_of_cuts();
  BestCut mine = {-1.0, 0};
  FOR_BLOCK(i, 0, n_cuts) mine.append({scores[i], i});
  BestCut* room = reinterpret_cast<BestCut*>(scores_of_cuts() + MOST_CELLS);
  combine(mine, room);
  return room[0];
}

// Set a region's vote. Returns whether it is certain; see `engines.cpu.rounds.certain_votes`.
__device__ inline bool set_vote(int64 gradient, int64 hessian, const VoteRule& rule, double* vote) {
  *vote = 0.0;
  if (hessian == 0) return true;
  double step = double(gradient) / (double(hessian) + rule.l2);
  step = step > -rule.largest_step ? step : -rule.largest_step;
  step = step < rule.largest_step ? step : rule.largest_step;
  double units = step * rule.scale, size = fabs(units), nearest = rint(units);
  bool is_certain = size < MOST_UNITS && fabs(units - nearest) + size * rule.doubt < 0.5;
  if (is_certain) *vote = nearest * VOTE_UNIT + 0.0;
  return is_certain;
}

// Set what a region's vote for an output multiplies the numbers by, for one of the two labels.
// Returns whether it is certain.
__device__ bool set_factor(const double* votes, int64 n_outputs, int64 k, bool positive,
                           const VoteRule& rule, const Powers& tables, double* factor) {
  double vote = votes[k];
  if (rule.loss == SQUARED) return true;
  if (rule.loss == LOGISTIC) return set_power(positive ? -2.0 * vote : 2.0 * vote, tables, factor);
  if (rule.loss == SOFTMAX) {
    double largest = votes[0];
    for (int64 other = 1; other < n_outputs; other++)
      largest = votes[other] > largest ? votes[other] : largest;
    return set_power(2.0 * (vote - largest), tables, factor);
  }
  return set_power(rule.loss == POISSON ? vote : -vote, tables, factor);
}

// Find the best cut of pair `number`, and write its step; one block. The cells become zeros.
KERNEL_OF_128_REGISTERS decide_pair(const PairSamples samples, const VoteRule rule,
                                    const Powers tables, const PairMotion motion,
                                    const PairTurn turn, int64 number) {
  if (*turn.n_made <= number) return;
  const int64 n_outputs = samples.own.n_outputs, n_votes = N_QUADRANTS * n_outputs;
  const int64* pair = turn.pairs + 2 * number;
  const Shape shape = shape_of(samples, pair);
  const int64 n_candidates = *turn.n_candidates;
  const Cuts cuts = {shape, turn.candidates + 2 * n_candidates * number, n_candidates};
  for (int64 k = 0; k < n_outputs; k++) {
    int64* cells = turn.cells + 2 * k * MOST_CELLS;
    FOR_BLOCK(i, 0, 2 * MOST_CELLS) running_sums()[i] = cells[i];
    __syncthreads();
    run_up(shape);
    add_scores(cuts, rule.l2, k == 0);
    FOR_BLOCK(i, 0, 2 * MOST_CELLS) cells[i] = running_sums()[i];
    __syncthreads();
  }
  const BestCut best = best_of(cuts.n());
  const int64 a = cuts.first(best.number), b = cuts.second(best.number);
  uint32 *is_any = words(), *is_in_doubt = words() + 1;
  if (threadIdx.x == 0) *is_any = *is_in_doubt = 0;
  __syncthreads();
  FOR_BLOCK(k, 0, n_outputs) {
    const int64* cells = turn.cells + 2 * k * MOST_CELLS;
    Quadrants g = quadrants_at(cells, shape, a, b);
    Quadrants h = quadrants_at(cells + MOST_CELLS, shape, a, b);
    const int64 gradients[] = {g.both, g.below, g.beside, g.rest};
    const int64 hessians[] = {h.both, h.below, h.beside, h.rest};
    for (int region = 0; region < N_QUADRANTS; region++) {
      double* vote = motion.votes + region * n_outputs + k;
      bool is_certain = set_vote(gradients[region], hessians[region], rule, vote);
      if (!is_certain) atomicMax(is_in_doubt, 1u);
      if (*vote != 0.0) atomicMax(is_any, 1u);
    }
  }
  __syncthreads();
  FOR_BLOCK(i, 0, 2 * n_votes) {
    const double* votes = motion.votes + i / 2 / n_outputs * n_outputs;
    double* factor = motion.factors + i;
    if (!set_factor(votes, n_outputs, i / 2 % n_outputs, i % 2, rule, tables, factor))
      atomicMax(is_in_doubt, 1u);
  }
  FOR_BLOCK(i, 0, 2 * n_outputs * MOST_CELLS) turn.cells[i] = 0;
  __syncthreads();
  const bool is_made = *is_any && !*is_in_doubt;
  FOR_BLOCK(i, 0, n_votes) turn.votes[number * n_votes + i] = is_made ? motion.votes[i] : 0.0;
  if (threadIdx.x == 0) {
    *motion.step = {pair[0], pair[1], is_made ? a : 0, is_made ? b : 0};
    turn.places[2 * number] = is_made ? a : 0;
    turn.places[2 * number + 1] = is_made ? b : 0;
    if (*is_in_doubt) *turn.n_made = number;
  }
}

// Write the score of each pair's best cut; a block takes a pair at a time.
KERNEL_OF_80_REGISTERS score_pairs(const PairSamples samples, const int64* pairs, int64 n_pairs,
                                   double l2, double* found) {
  const uint32 base = address_of_shared();
  for (int64 number = blockIdx.x; number < n_pairs; number += gridDim.x) {
    const int64* pair = pairs + 2 * number;
    const Cuts cuts = {shape_of(samples, pair), nullptr, 0};
    for (int64 k = 0; k < samples.own.n_outputs; k++) {
      clear_words();
      FOR_BLOCK(i, 0, samples.own.n_samples)
        add_sample(samples, pair, cuts.shape.n_columns, k, i, base);
      end_of_additions();
      __syncthreads();
      FOR_BLOCK(i, 0, 2 * MOST_CELLS) running_sums()[i] = sum_at(i);
      __syncthreads();
      run_up(cuts.shape);
      add_scores(cuts, l2, k == 0);
    }
    const BestCut best = best_of(cuts.n());
    if (threadIdx.x == 0) found[number] = best.score;
  }
}

// Add what the steps of a turn vote to the scores (n_outputs, n_samples) of other samples.
KERNEL vote_by_pairs(const uint8* bins, int64 n_samples, const PairTurn turn, int64 n_pairs,
                 int64 n_outputs, double* scores) {
  for (int64 k = 0; k < n_outputs; k++, scores += n_samples) {
    FOR_GRID(i, 0, n_samples) {
      double score = scores[i];
      for (int64 number = 0; number < n_pairs; number++) {
        const int64 *pair = turn.pairs + 2 * number, *place = turn.places + 2 * number;
        if (place[0] == 0) continue;
        int region = quadrant_of(bins + pair[0] * n_samples, bins + pair[1] * n_samples, place[0],
                                 place[1], i);
        score += turn.votes[(number * N_QUADRANTS + region) * n_outputs + k];
      }
      scores[i] = score;
    }
  }
}
