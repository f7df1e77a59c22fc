// Held-out samples after a round: its votes are added to their scores, and what early stopping needs
// is added up in the same pass.
//
// The integers are those of `boosting.held_out.losses` and `engines.cpu.predict.held_out_sums`: losses
// are interpolated in a table by integer arithmetic, and a product of floats is rounded to a whole
// number before it is added.

#include "common.cuh"
#include "integers.cuh"

constexpr int UNIT_BITS = 36, LOSS_BITS = 32;       // of scores, and of losses
constexpr double LARGEST_SQUARE = 0x1p20, UPPER_UNIT = 0x1p30;
constexpr double LARGEST_SCORE = 0x1p10;
constexpr int64 LARGEST_EXPONENT = 64;
constexpr int PLACE_BITS_OF_EXPONENT = 12;

struct HeldOut {
  const void* keys;  // (n_features, n_samples), `arrays.order_keys` of 4 or 8 bytes
  double* scores;    // (n_outputs, n_samples)
  const int64 *classes, *units;       // of classes
  const double *weights, *targets;    // as `engines.batched_rounds.ValidationLoss`
  const int64 *nodes, *drops;         // of logarithmic losses: the table
  const double* exponentials;         // of Poisson and gamma loss
  double most;                        // the bound of an amount
  int64 n_samples, n_outputs, n_nodes, node_bits, bits;
  int64 loss;  // `Loss`
};

// A round's hypothesis: the slices of a feature, and the votes of each.
struct Votes {
  const int64* ends;    // (n_ends) keys of the largest values of the slices
  const double* votes;  // (n_ends + 2, n_outputs); the last ones are for missing values
};

// What is added up: the weight of the samples that are classified right, and losses in two parts. A
// logarithmic loss has 32 bits in the second part, so that the outputs' losses do not overflow.
struct Judged {
  int64 right, first, second;
  __device__ void append(const Judged& other) {
    right += other.right;
    first += other.first;
    second += other.second;
  }
  __device__ void add(int64 loss) {
    first += loss >> 32;
    second += loss & 0xffffffffll;
  }
};

__device__ inline int64 in_units_of_votes(double score) { return int64(score * 0x1p36); }

__device__ inline int64 weighted(double weight, int64 loss) {
  return int64(rint(weight * double(loss)));
}

// ln(1 + exp(-x)) for x = size * 2**-bits, not negative.
__device__ inline int64 log_added(const HeldOut& own, int64 size) {
  int step_bits = int(own.bits - own.node_bits);
  int64 place = size >> step_bits, rest = size & ((1ll << step_bits) - 1);
  place = place < own.n_nodes ? place : own.n_nodes - 1;
  return own.nodes[place] - ((own.drops[place] * rest) >> step_bits);
}

// Add the logistic losses of a sample's outputs, each weighted.
__device__ inline void add_logistic_losses(const HeldOut& own, int64 i, Judged* found) {
  for (int64 k = 0; k < own.n_outputs; k++) {
    int64 units = in_units_of_votes(own.scores[k * own.n_samples + i]);
    int64 margin = own.classes[i] == (own.n_outputs == 1 ? 1 : k) ? units : -units;
    int64 size = margin < 0 ? -margin : margin;
    int64 loss = log_added(own, size) + ((size - margin) >> (own.bits - LOSS_BITS + 1));
    found->add(weighted(own.weights[i], loss));
  }
}

__device__ inline int64 softmax_loss(const HeldOut& own, int64 i) {
  int64 log = in_units_of_votes(own.scores[i]), of_class = log;
  for (int64 k = 1; k < own.n_outputs; k++) {
    int64 term = in_units_of_votes(own.scores[k * own.n_samples + i]);
    int64 apart = log - term, size = apart < 0 ? -apart : apart;
    log = (log > term ? log : term) + (log_added(own, size) << (own.bits - LOSS_BITS));
    if (own.classes[i] == k) of_class = term;
  }
  return weighted(own.weights[i], (log - of_class) >> (own.bits - LOSS_BITS));
}

__device__ inline Judged squared_error(const HeldOut& own, int64 i) {
  double residual = own.targets[i] - own.scores[i], square = residual * residual;
  double all = (square < LARGEST_SQUARE ? square : LARGEST_SQUARE) * own.weights[i];
  double upper = floor(all * (1.0 / UPPER_UNIT));
  return {0, int64(upper), int64(rint(all - upper * UPPER_UNIT))};
}

__device__ inline double limited(double x, double limit) {
  return x < -limit ? -limit : x > limit ? limit : x;
}

// exp(-x) for x in units of votes.
__device__ inline double exponential_of(const double* table, int64 falling) {
  constexpr int64 LIMIT = LARGEST_EXPONENT << UNIT_BITS, MASK = (1 << PLACE_BITS_OF_EXPONENT) - 1;
  int64 place = (falling < -LIMIT ? -LIMIT : falling > LIMIT ? LIMIT : falling) + LIMIT;
  double found = table[place >> UNIT_BITS];
  table += 2 * LARGEST_EXPONENT + 1;
  for (int shift = UNIT_BITS - PLACE_BITS_OF_EXPONENT; shift >= 0; shift -= PLACE_BITS_OF_EXPONENT) {
    found *= table[(place >> shift) & MASK];
    table += MASK + 1;
  }
  return found;
}

__device__ inline Judged deviance(const HeldOut& own, int64 i) {
  int64 sign = own.loss == POISSON ? 1 : -1;
  double score = own.scores[i];
  double by = exponential_of(own.exponentials, -sign * in_units_of_votes(score));
  double amount = own.weights[i] * by, product = own.targets[i] * limited(score, LARGEST_SCORE);
  return {0, int64(rint(amount < own.most ? amount : own.most)),
          sign * int64(rint(limited(product, own.most)))};
}

// The integer weight of a sample if it is classified right: of equal scores the first class wins.
__device__ inline int64 right_weight(const HeldOut& own, int64 i) {
  int64 best = own.n_outputs == 1 ? own.scores[i] > 0.0 : 0;
  double largest = own.scores[i];
  for (int64 k = 1; k < own.n_outputs; k++) {
    double score = own.scores[k * own.n_samples + i];
    if (score > largest) best = k, largest = score;
  }
  return best == own.classes[i] ? own.units[i] : 0;
}

__device__ inline Judged judged(const HeldOut& own, int64 i) {
  if (own.loss == SQUARED) return squared_error(own, i);
  if (own.loss >= POISSON) return deviance(own, i);
  Judged found = {right_weight(own, i), 0, 0};
  if (own.loss == LOGISTIC) add_logistic_losses(own, i, &found);
  else found.add(softmax_loss(own, i));
  return found;
}

// Add a round's votes to all scores, and add up what follows.
template <class Key>
__device__ void judge(const HeldOut& own, int64 feature, int64 n_ends, const Votes& round,
                      int64* sums) {
  const Key* keys = static_cast<const Key*>(own.keys) + feature * own.n_samples;
  const Key missing = Key(~(Key(1) << (8 * sizeof(Key) - 1)));
  Judged mine = {0, 0, 0};
  FOR_GRID(i, 0, own.n_samples) {
    const Key key = keys[i];
    int64 low = 0, high = n_ends;
    while (low < high) {  // how many slices end below the value
      int64 middle = (low + high) / 2;
      if (round.ends[middle] < key) low = middle + 1;
      else high = middle;
    }
    const double* votes = round.votes + (key == missing ? n_ends + 1 : low) * own.n_outputs;
    for (int64 k = 0; k < own.n_outputs; k++) own.scores[k * own.n_samples + i] += votes[k];
    mine.append(judged(own, i));
  }
  combine(mine, reinterpret_cast<Judged*>(shared));
  if (threadIdx.x == 0) {
    add_to(&sums[0], mine.right);
    add_to(&sums[1], mine.first);
    add_to(&sums[2], mine.second);
  }
}

#define JUDGE(name, Key)                                                                        \
  KERNEL_OF_80_REGISTERS judge_##name(const HeldOut own, int64 feature, int64 n_ends,           \
                                      const Votes round, int64* sums) {                         \
    judge<Key>(own, feature, n_ends, round, sums);                                              \
  }

JUDGE(int32, int)
JUDGE(int64, int64)
