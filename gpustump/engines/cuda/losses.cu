// A round's pass over the samples for real, Newton and shared votes: what a step does to weights,
// odds, probabilities, residuals or amounts and to scores, and the integers that follow from them.
//
// Operations and their order are those of `engines.reference`. A step changes the integers of
// nearly all samples, so `add` gets the whole integers in every round, not their changes.

#include "common.cuh"
#include "integers.cuh"

// A step: what each region adds to the scores, and multiplies the numbers by.
struct Motion {
  const double* votes;    // (3, n_outputs)
  const double* factors;  // (3, n_outputs, 2), for samples with the label -1, and with +1
};

__device__ inline double factor_of(const Motion& motion, int64 n_outputs, int region, int64 k,
                                   bool positive) {
  return motion.factors[(region * n_outputs + k) * 2 + positive];
}

// The numbers of a sample's first output. They are loaded before the sample's region is computed,
// which takes about as long, so that both waits overlap.
struct First {
  double number, score;
};

// Add the votes of a sample's region to its scores. Returns its weight if the scores misclassify
// it, otherwise 0. With one output, a score above 0 predicts the positive label; with several, the
// first of the largest scores predicts its class.
template <bool IS_ONE>
__device__ int64 vote(const LossSamples& samples, const Motion& motion, int region, int64 i,
                      const First& known) {
  const int64 n_outputs = IS_ONE ? 1 : samples.n_outputs;
  double best = 0.0;
  bool is_right = false;
  for (int64 k = 0; k < n_outputs; k++) {
    int64 at = k * samples.n_samples + i;
    double before = k == 0 ? known.score : samples.scores[at];
    double score = before + motion.votes[region * n_outputs + k];
    samples.scores[at] = score;
    bool positive = (k == 0 ? known.number : samples.numbers[at]) > 0.0;
    if (n_outputs == 1) {
      is_right = (score > 0.0) == positive;
    } else if (k == 0 || score > best) {
      best = score;
      is_right = positive;
    }
  }
  return is_right ? 0 : weight_of(samples, i);
}

// Write a sample's integers of an output for `add`. Returns their sums.
__device__ inline Sums write(const LossSamples& samples, int64 k, int64 i, const Integers& own) {
  const Layers& layers = samples.layers;
  if (samples.loss == EXPONENTIAL) {
    layers.change[k * layers.n_padded + i] = labelled(own.gradient, own.is_positive);
  } else {
    layers.change[2 * k * layers.n_padded + i] = labelled(own.gradient, own.is_positive);
    layers.change[(2 * k + 1) * layers.n_padded + i] = labelled(own.hessian, own.is_positive);
  }
  return {own.is_positive ? own.gradient : -own.gradient, own.hessian, 0, own.hessian};
}

// Losses of classes: the error is the weight of the samples that the scores get wrong.
struct OfClasses {
  template <bool IS_ONE>
  static __device__ int64 error(const LossSamples& samples, const Motion& motion, int region,
                                int64 i, const First& known) {
    return vote<IS_ONE>(samples, motion, region, i, known);
  }
};

template <bool IS_ONE>
struct ExponentialLoss : OfClasses {
  static __device__ Sums move(const LossSamples& samples, const Motion& motion, int region,
                              int64 i, const First& known) {
    const int64 n_outputs = IS_ONE ? 1 : samples.n_outputs;
    Sums own = NO_SUMS;
    for (int64 k = 0; k < n_outputs; k++) {
      double* number = &samples.numbers[k * samples.n_samples + i];
      double before = k == 0 ? known.number : *number;
      bool positive = before > 0.0;
      double after = fabs(before) * factor_of(motion, n_outputs, region, k, positive);
      after = after > FLOOR ? after : FLOOR;
      after = positive ? after : -after;
      *number = after;
      own.append(write(samples, k, i, of_weight(after)));
    }
    return own;
  }
};

struct LogisticLoss : OfClasses {
  static __device__ Sums move(const LossSamples& samples, const Motion& motion, int region,
                              int64 i, const First& known) {
    double factor = factor_of(motion, 1, region, 0, known.number > 0.0);
    double odds = moved_odds(known.number, factor);
    samples.numbers[i] = odds;
    return write(samples, 0, i, of_odds(odds, double(weight_of(samples, i))));
  }
};

struct SoftmaxLoss : OfClasses {
  static __device__ Sums move(const LossSamples& samples, const Motion& motion, int region,
                              int64 i, const First& known) {
    double total = 0.0;  // adding to 0 changes no product
    for (int64 k = 0; k < samples.n_outputs; k++) {
      double* number = &samples.numbers[k * samples.n_samples + i];
      double before = k == 0 ? known.number : *number;
      double factor = factor_of(motion, samples.n_outputs, region, k, true);
      double grown = grown_probability(before, factor);
      *number = grown;
      total += fabs(grown);
    }
    for (int64 k = 0; k < samples.n_outputs; k++) {
      double* number = &samples.numbers[k * samples.n_samples + i];
      *number = share_of(*number, total);
    }
    return integers(samples, i);
  }

  // The integers of the present probabilities, at least 1.
  static __device__ Sums integers(const LossSamples& samples, int64 i) {
    Sums all = NO_SUMS;
    double weight = double(weight_of(samples, i));
    for (int64 k = 0; k < samples.n_outputs; k++) {
      double number = samples.numbers[k * samples.n_samples + i];
      all.append(write(samples, k, i, of_probability(number, weight)));
    }
    return all;
  }
};

// Of a quantity: a step subtracts a vote from each residual. The error is the weighted square.
struct SquaredLoss {
  static __device__ Sums move(const LossSamples& samples, const Motion& motion, int region,
                              int64 i, const First& known) {
    double residual = known.number - motion.votes[region];
    samples.numbers[i] = residual;
    return write(samples, 0, i, of_residual(residual, double(weight_of(samples, i))));
  }
  template <bool IS_ONE>
  static __device__ int64 error(const LossSamples& samples, const Motion&, int, int64 i,
                                const First&) {
    double residual = samples.numbers[i];
    return int64(rint(double(weight_of(samples, i)) * (residual * residual)));
  }
};

// Poisson and gamma loss: a step multiplies one of a sample's amounts.
struct RatioLoss {
  static __device__ Sums move(const LossSamples& samples, const Motion& motion, int region,
                              int64 i, const First& known) {
    double factor = factor_of(motion, 1, region, 0, samples.loss == GAMMA);
    double moving = moved_amount(known.number, factor);
    samples.numbers[i] = moving;
    return write(samples, 0, i, of_amounts(moving, samples.fixed[i], samples.loss));
  }
  template <bool IS_ONE>
  static __device__ int64 error(const LossSamples& samples, const Motion& motion, int region,
                                int64 i, const First& known) {
    double score = known.score + motion.votes[region];
    samples.scores[i] = score;
    int64 of_score = int64(rint(samples.fixed[i] * score));
    return int64(ceil(samples.numbers[i])) + (samples.loss == POISSON ? -of_score : of_score);
  }
};

// IS_ONE  whether there is one output: then the kernel takes fewer registers.
template <class Followed, bool IS_ONE>
__device__ void follow(const Step& step, const Motion& motion, const LossSamples& samples) {
  clear(samples.layers, step);
  Sums mine = NO_SUMS;
#pragma unroll 1
  FOR_GRID(i, step.first_sample, step.first_sample + step.n_samples) {
    const First known = {samples.numbers[i], samples.scores[i]};
    int region = region_of(step, i);
    Sums own = Followed::move(samples, motion, region, i, known);
    own.error = Followed::template error<IS_ONE>(samples, motion, region, i, known);
    mine.append(own);
  }
  combine(mine, reinterpret_cast<Sums*>(shared));
  if (threadIdx.x == 0) add_to(samples.sums, mine);
}

#define FOLLOW(KIND_OF_KERNEL, loss, Followed, IS_ONE)                                        \
  KIND_OF_KERNEL follow_##loss(const Step* step, const Motion motion,                         \
                               const LossSamples samples) {                                   \
    const Step here = *step;                                                                  \
    follow<Followed, IS_ONE>(here, motion, samples);                                          \
  }

FOLLOW(KERNEL_OF_64_REGISTERS, exponential, ExponentialLoss<true>, true)
FOLLOW(KERNEL_OF_128_REGISTERS, exponentials, ExponentialLoss<false>, false)
FOLLOW(KERNEL_OF_80_REGISTERS, logistic, LogisticLoss, true)
FOLLOW(KERNEL_OF_128_REGISTERS, softmax, SoftmaxLoss, false)
FOLLOW(KERNEL_OF_80_REGISTERS, squared_error, SquaredLoss, true)
FOLLOW(KERNEL_OF_80_REGISTERS, ratio, RatioLoss, true)

// The integers of a softmax before the first step: dividing equal probabilities by their sum could
// change their last bit.
KERNEL_OF_128_REGISTERS begin_softmax(const Step* step, const Motion still,
                                      const LossSamples samples) {
  clear(samples.layers, *step);
  Sums mine = NO_SUMS;
  FOR_GRID(i, 0, samples.n_samples) {
    Sums own = SoftmaxLoss::integers(samples, i);
    own.error = vote<false>(samples, still, 0, i, {samples.numbers[i], samples.scores[i]});
    mine.append(own);
  }
  combine(mine, reinterpret_cast<Sums*>(shared));
  if (threadIdx.x == 0) add_to(samples.sums, mine);
}
