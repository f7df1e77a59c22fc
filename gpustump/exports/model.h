/* The functions of an exported model. `c.py` takes the parts that a model needs, each from the
   line that names it to the next such line, and puts numbers and names of the model in place of
   what stands between two @. */
/* part: top */
#ifndef @NAME@_H
#define @NAME@_H

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "-ffast-math assumes that no value is missing (NaN); compile without it"
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define @NAME@_DIGEST "@digest@"
#define @NAME@_N_COLUMNS @n_columns@
#define @NAME@_N_SCORES @n_scores@
/* part: step */

/* The first of the steps from low on that ends at the value or above it; last if it is missing. */
static inline int32_t @name@_step(double value, const double *ends, int32_t low, int32_t last)
{
  int32_t high = last - 1;
  if (value != value)
    return last;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (value <= ends[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
/* part: pairs */

/* Adds to the scores what pairs of columns add. */
static inline void @name@_add_pairs(const double *row, int64_t *scores)
{
  static const int columns[] = { /* two of each pair */
    @pair_columns@};
  static const int32_t first_steps[] = {
    @pair_first_steps@};
  static const double ends[] = {
    @pair_ends@};
  static const int32_t numbers[] = { /* whose sum for both columns is the number of a cell */
    @pair_numbers@};
  static const int64_t cells[] = {
    @pair_cells@};
  for (int axis = 0; axis < 2 * @n_pairs@; axis += 2) {
    int32_t cell = 0;
    for (int own = axis; own < axis + 2; own++)
      cell += numbers[@name@_step(
        row[columns[own]], ends, first_steps[own], first_steps[own + 1] - 1)];
    for (int output = 0; output < @n_scores@; output++)
      scores[output] += cells[(ptrdiff_t)cell * @n_scores@ + output];
  }
}
/* part: scores */

/* The scores of a row of @NAME@_N_COLUMNS values, in units of 2**@exponent@. NaN is missing. */
static inline void @name@_scores(const double *row, int64_t *scores)
{
  static const int64_t constant[] = {
    @constant@};
  static const int columns[] = {
    @columns@};
  static const int32_t first_steps[] = {
    @first_steps@};
  static const double ends[] = { /* upper ends of steps; the last step is for missing values */
    @ends@};
  static const int64_t votes[] = {
    @votes@};
  for (int output = 0; output < @n_scores@; output++)
    scores[output] = constant[output];
  for (int used = 0; used < @n_used@; used++) {
    const int32_t step = @name@_step(
      row[columns[used]], ends, first_steps[used], first_steps[used + 1] - 1);
    for (int output = 0; output < @n_scores@; output++)
      scores[output] += votes[(ptrdiff_t)step * @n_scores@ + output];
  }@and_pairs@
}
/* part: binary */

/* The index of the class with these scores. */
static inline int @name@_class_of(const int64_t *scores)
{
  return scores[0] > 0;
}

/* The probabilities that belong to scores; their last bits may differ from the model's own. */
static inline void @name@_probabilities(const int64_t *scores, double *probabilities)
{
  const double twice = (double)scores[0] / 34359738368.0; /* 2**35 */
  const double small = exp(-fabs(twice));
  probabilities[scores[0] >= 0] = 1.0 / (1.0 + small);
  probabilities[scores[0] < 0] = small / (1.0 + small);
}
/* part: classes */

/* The index of the class with these scores: the first of the largest. */
static inline int @name@_class_of(const int64_t *scores)
{
  int best = 0;
  for (int index = 1; index < @n_classes@; index++)
    if (scores[index] > scores[best])
      best = index;
  return best;
}

/* The probabilities that belong to scores; their last bits may differ from the model's own. */
static inline void @name@_probabilities(const int64_t *scores, double *probabilities)
{
  double largest = -HUGE_VAL, total = 0.0;
  for (int index = 0; index < @n_classes@; index++) {
    const double score = (double)scores[index] / 68719476736.0; /* 2**36 */
    probabilities[index] = @log@;
    largest = fmax(largest, probabilities[index]);
  }
  for (int index = 0; index < @n_classes@; index++) {
    probabilities[index] = exp(probabilities[index] - largest);
    total += probabilities[index];
  }
  for (int index = 0; index < @n_classes@; index++)
    probabilities[index] /= total;
}
/* part: predict */

#define @NAME@_N_CLASSES @n_classes@

/* The index of the predicted class. */
static inline int @name@_predict(const double *row)
{
  int64_t scores[@n_scores@];
  @name@_scores(row, scores);
  return @name@_class_of(scores);
}

/* The probability of each class. */
static inline void @name@_predict_proba(const double *row, double *probabilities)
{
  int64_t scores[@n_scores@];
  @name@_scores(row, scores);
  @name@_probabilities(scores, probabilities);
}

/* The label of the class with an index, as text in UTF-8. */
static inline const char *@name@_label(int index)
{
  static const char *const labels[] = {
    @labels@};
  return labels[index];
}
/* part: quantity */

/* The prediction that belongs to a score. */
static inline double @name@_prediction_of(const int64_t *scores)
{
  return @link@(ldexp((double)scores[0], @exponent@));
}

/* The prediction for a row. */
static inline double @name@_predict(const double *row)
{
  int64_t scores[1];
  @name@_scores(row, scores);
  return @name@_prediction_of(scores);
}
/* part: text */

/* The number that stands for text, in UTF-8, in a row. NULL is missing. */
static inline double @name@_text(int column, const char *text)
{
  static const char *const texts[] = { /* of each column, sorted */
    @texts@};
  static const double codes[] = {
    @codes@};
  int low, high;
  switch (column) {
@cases@
  default: /* no column of text */
    return NAN;
  }
  if (text == NULL)
    return NAN;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int order = strcmp(text, texts[middle]);
    if (order == 0)
      return codes[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return -1.0;
}
/* part: end */

#endif
