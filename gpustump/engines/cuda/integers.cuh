// The integers that follow from a sample's weights, odds, probabilities, residual or amounts, and what
// a step's factors make of odds, probabilities and amounts.
//
// The numbers are those of `engines.reference`, bit for bit: every intermediate result is one IEEE
// operation on the same operands.

#ifndef GPUSTUMP_INTEGERS
#define GPUSTUMP_INTEGERS

constexpr double CEILING = 1.0 / FLOOR;       // of the odds
constexpr double LEAST_PRODUCT = 0x1p-1000;   // of a probability and a factor

enum Loss : int64 { EXPONENTIAL, LOGISTIC, SOFTMAX, SQUARED, POISSON, GAMMA };

// The vectors of a run.
struct LossSamples {
  double* numbers;  // (n_outputs, n_samples) weights, odds or probabilities, with the label's sign;
                    // of a quantity the residuals, or the amounts that move
  const double* fixed;  // (n_samples,) for Poisson and gamma loss the amounts that stay
  double* scores;   // (n_outputs, n_samples)
  const int64* first_weights;  // sample weights in units of the integers; null if all are equal
  int64 equal_weight;
  Sums* sums;     // the sums over all samples and outputs are added to these
  Layers layers;  // the integers are written to these
  int64 n_samples, n_outputs;
  int64 loss;  // which one: `Loss`
};

__device__ inline int64 weight_of(const LossSamples& samples, int64 i) {
  return samples.first_weights ? samples.first_weights[i] : samples.equal_weight;
}

// The gradient without its sign, which is that of the label. With the exponential loss both are
// equal.
struct Integers {
  int64 gradient, hessian;
  bool is_positive;
};

__device__ inline Integers of_weight(double number) {
  int64 units = units_of(fabs(number));
  return {units, units, number > 0.0};
}

__device__ inline Integers of_odds(double number, double weight) {
  double odds = fabs(number), below = odds + 1.0;
  double slope = weight * (odds / below), curve = slope * (1.0 / below);
  return {units_of(slope), units_of(curve), number > 0.0};
}

__device__ inline Integers of_probability(double number, double weight) {
  double own = fabs(number), rest = 1.0 - own;
  bool positive = number > 0.0;
  double slope = ceil(weight * (positive ? rest : own)), curve = ceil((weight * own) * rest);
  return {int64(slope > 1.0 ? slope : 1.0), int64(curve > 1.0 ? curve : 1.0), positive};
}

__device__ inline Integers of_residual(double residual, double weight) {
  return {int64(rint(weight * fabs(residual))), int64(weight), residual > 0.0};
}

// Of Poisson and gamma loss, from the amount that moves and the one that stays.
__device__ inline Integers of_amounts(double moving, double fixed, int64 loss) {
  int64 whole = int64(ceil(moving)), stays = int64(fixed);
  int64 gradient = loss == POISSON ? stays - whole : whole - stays;
  return {gradient > 0 ? gradient : -gradient, stays + whole, gradient > 0};
}

__device__ inline Integers integers_of(const LossSamples& samples, int64 k, int64 i) {
  double number = samples.numbers[k * samples.n_samples + i];
  if (samples.loss == EXPONENTIAL) return of_weight(number);
  if (samples.loss >= POISSON) return of_amounts(number, samples.fixed[i], samples.loss);
  double weight = double(weight_of(samples, i));
  if (samples.loss == SQUARED) return of_residual(number, weight);
  return samples.loss == LOGISTIC ? of_odds(number, weight) : of_probability(number, weight);
}

// The number after a step. Numbers of classes keep the sign of the label.
__device__ inline double moved_odds(double number, double factor) {
  double odds = fabs(number) * factor;
  odds = odds < CEILING ? odds : CEILING;
  odds = odds > FLOOR ? odds : FLOOR;
  return number > 0.0 ? odds : -odds;
}

__device__ inline double moved_amount(double amount, double factor) {
  double moved = amount * factor;
  return moved > FLOOR ? moved : FLOOR;
}

// A probability times its factor; then all of a sample are divided by their sum.
__device__ inline double grown_probability(double number, double factor) {
  double grown = fabs(number) * factor;
  grown = grown > LEAST_PRODUCT ? grown : LEAST_PRODUCT;
  return number > 0.0 ? grown : -grown;
}

__device__ inline double share_of(double number, double total) {
  double own = fabs(number) / total;
  own = own > FLOOR ? own : FLOOR;
  return number > 0.0 ? own : -own;
}

#endif
