// Exponentials of votes: the nearest float64, or that it is in doubt.
//
// The operations are those of `engines.cpu.rounds.exact_powers`, which says why their results are
// right; the tables come from the host (`engines.powers`).

#ifndef GPUSTUMP_POWERS
#define GPUSTUMP_POWERS

// The tables; each entry is the nearest float and the rounding error.
struct Powers {
  const double* whole;  // (2 * LARGEST + 1, 2): exp(i) for i from -LARGEST on
  const double* parts;  // (256, 2): exp(k/256)
  double doubt;         // bound of the relative error of results
};

constexpr double VOTE_UNIT = 0x1p-36, UNITS = 0x1p36;
constexpr int LARGEST = 16;    // the largest absolute value of an exponent
constexpr int STEP_BITS = 28;  // 1/256 is 2**28 units of votes
constexpr double SPLITTER = 0x1p27 + 1;

// The sum of two floats; the first one is the nearest to it.
struct TwoFloats {
  double nearest, rest;
};

__device__ inline TwoFloats normal(double found, double rest) {
  double nearest = found + rest;
  return {nearest, rest - (nearest - found)};
}

__device__ inline double upper_half(double x) {
  double scaled = SPLITTER * x;
  return scaled - (scaled - x);
}

__device__ inline TwoFloats product(const TwoFloats& x, const TwoFloats& y) {
  double found = x.nearest * y.nearest;
  double x_upper = upper_half(x.nearest), x_lower = x.nearest - x_upper;
  double y_upper = upper_half(y.nearest), y_lower = y.nearest - y_upper;
  double lost = x_upper * y_upper - found;
  lost = ((lost + x_upper * y_lower) + x_lower * y_upper) + x_lower * y_lower;
  return normal(found, lost + (x.nearest * y.rest + x.rest * y.nearest));
}

// exp(t) for t = rest * VOTE_UNIT below 2**-8.
__device__ inline TwoFloats exponential_of_rest(int64 rest) {
  constexpr double HALF_SQUARE = VOTE_UNIT * VOTE_UNIT / 2;
  double t = double(rest) * VOTE_UNIT;
  int64 square = rest * rest, upper = square >> 28 << 28;
  double half_upper = double(upper) * HALF_SQUARE, half_lower = double(square - upper) * HALF_SQUARE;
  double series = (t * t * t) *
                  (1.0 / 6 + t * (1.0 / 24 + t * (1.0 / 120 + t * (1.0 / 720 + t / 5040))));
  double first = 1.0 + t, found = first + half_upper;
  double lost = half_upper - (found - first);
  return normal(found, lost + (half_lower + series));
}

// Set the float64 nearest to exp(x), for a multiple x of the unit of votes. Returns whether it is
// certain.
__device__ inline bool set_power(double x, const Powers& tables, double* power) {
  if (!(x >= -LARGEST && x <= LARGEST)) return false;
  int64 units = int64(x * UNITS), step = units >> STEP_BITS;
  const double* whole = tables.whole + 2 * ((step >> 8) + LARGEST);
  const double* part = tables.parts + 2 * (step & 255);
  TwoFloats first = product({whole[0], whole[1]}, {part[0], part[1]});
  TwoFloats last = exponential_of_rest(units & ((1ll << STEP_BITS) - 1));
  TwoFloats found = product(first, last);
  double by = found.nearest * tables.doubt;
  double lowest = found.nearest + (found.rest - by), highest = found.nearest + (found.rest + by);
  *power = lowest;
  return lowest == highest;
}

#endif
