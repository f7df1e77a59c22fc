// F(x) on the device: every row looks its features up in the step tables, and adds their values.
//
// Values are compared as integers that sort as they do (`arrays.order_keys`), in the dtype of the
// table; integers as the floats that `arrays.as_working` makes of them. Votes are added in the order
// of the tables, as the reference does, so the sum is the same even for a model whose votes are no
// whole multiples of one unit.

#include "common.cuh"

struct Half {
  short bits;
};

template <class Key>
__device__ inline Key key_of_bits(Key bits, Key infinity) {
  const Key lowest = Key(1) << (8 * sizeof(Key) - 1);
  Key key = bits >= 0 ? bits : lowest - bits;
  return key > infinity || key < -infinity ? ~lowest : key;  // NaN is above all
}

__device__ inline int key_of(float x) { return key_of_bits(__float_as_int(x), 0x7f800000); }
__device__ inline int64 key_of(double x) {
  return key_of_bits(int64(__double_as_longlong(x)), 0x7ff0000000000000ll);
}
__device__ inline int key_of(Half x) {  // sorts among keys of float16, widened
  int key = x.bits >= 0 ? x.bits : -32768 - x.bits;
  return key > 0x7c00 || key < -0x7c00 ? 0x7fff : key;
}
__device__ inline int key_of(bool x) { return key_of(float(x)); }
__device__ inline int key_of(signed char x) { return key_of(float(x)); }
__device__ inline int key_of(unsigned char x) { return key_of(float(x)); }
__device__ inline int key_of(short x) { return key_of(float(x)); }
__device__ inline int key_of(unsigned short x) { return key_of(float(x)); }
__device__ inline int64 key_of(int x) { return key_of(double(x)); }
__device__ inline int64 key_of(unsigned int x) { return key_of(double(x)); }
__device__ inline int64 key_of(long long x) { return key_of(double(x)); }
__device__ inline int64 key_of(unsigned long long x) { return key_of(double(x)); }

// Add the tables' values to the scores of all rows.
//
// columns     (n_tables) where a feature's values begin, in bytes from the first feature's
// starts      (n_tables + 1) where each table's thresholds begin
// thresholds  keys, increasing in each table
// values      (n_tables more than thresholds) each table's, and behind them that of what is missing
template <class Value, class Key>
__device__ void predict(const unsigned char* X, int64 row_stride, const int64* columns,
                        const int64* starts, const Key* thresholds, const double* values,
                        int64 n_tables, int64 n_rows, double* scores) {
  FOR_GRID(i, 0, n_rows) {
    const unsigned char* row = X + i * row_stride;
    double score = scores[i];
    for (int64 t = 0; t < n_tables; t++) {
      Key key = key_of(*reinterpret_cast<const Value*>(row + columns[t]));
      int64 begin = starts[t], low = begin, high = starts[t + 1];
      while (low < high) {  // the number of thresholds below the value
        int64 middle = (low + high) / 2;
        if (thresholds[middle] < key) low = middle + 1;
        else high = middle;
      }
      score += values[low + t];
    }
    scores[i] = score;
  }
}

#define PREDICT(dtype, Value, Key)                                                               \
  KERNEL predict_##dtype(const unsigned char* X, int64 row_stride, const int64* columns,         \
                         const int64* starts, const Key* thresholds, const double* values,       \
                         int64 n_tables, int64 n_rows, double* scores) {                         \
    predict<Value, Key>(X, row_stride, columns, starts, thresholds, values, n_tables, n_rows,    \
                        scores);                                                                 \
  }

PREDICT(float16, Half, int)
PREDICT(float32, float, int)
PREDICT(float64, double, int64)
PREDICT(bool, bool, int)
PREDICT(int8, signed char, int)
PREDICT(uint8, unsigned char, int)
PREDICT(int16, short, int)
PREDICT(uint16, unsigned short, int)
PREDICT(int32, int, int64)
PREDICT(uint32, unsigned int, int64)
PREDICT(int64, long long, int64)
PREDICT(uint64, unsigned long long, int64)
