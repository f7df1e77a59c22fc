// F(x) on the device: a thread takes a row, looks its features up in the step tables, and adds the
// values of the steps that it finds, one for each output.
//
// A feature's values and thresholds are compared as integers that sort as they do
// (`arrays.order_keys`), in the dtype of the rows; integers are first converted to the floats of
// `arrays.as_working`. Values are added table by table, as the reference does. So the sums have the
// same bits even for a model whose votes are not whole multiples of one unit.

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

// A model's step tables, one after the other.
template <class Key>
struct StepTables {
  const int64* features;  // (n_tables)
  const int64* starts;    // (n_tables + 1) where each table's thresholds begin
  const Key* thresholds;  // keys, increasing within a table
  const double* values;   // (n_thresholds + n_tables, n_outputs): each table's steps, then missing
  const double* constant;  // (n_outputs)
  int64 n_tables, n_outputs;
};

// The rows of the caller's table.
struct Rows {
  const unsigned char* values;
  int64 row_stride, column_stride;  // in bytes
  int64 n_rows;
};

// Write the scores of one row for `n` outputs from `first` on, at most MOST.
template <class Value, class Key, int MOST>
__device__ void predict_row(const unsigned char* row, int64 column_stride,
                            const StepTables<Key>& tables, int64 first, int n, double* scores) {
  double sums[MOST];
#pragma unroll
  for (int k = 0; k < MOST; k++)
    if (MOST == 1 || k < n) sums[k] = tables.constant[first + k];
  for (int64 t = 0; t < tables.n_tables; t++) {
    const unsigned char* at = row + tables.features[t] * column_stride;
    Key key = key_of(*reinterpret_cast<const Value*>(at));
    int64 low = tables.starts[t], high = tables.starts[t + 1];
    while (low < high) {  // find the number of thresholds below the value
      int64 middle = (low + high) / 2;
      if (tables.thresholds[middle] < key) low = middle + 1;
      else high = middle;
    }
    const double* step = tables.values + (low + t) * tables.n_outputs + first;
#pragma unroll
    for (int k = 0; k < MOST; k++)
      if (MOST == 1 || k < n) sums[k] += step[k];
  }
#pragma unroll
  for (int k = 0; k < MOST; k++)
    if (MOST == 1 || k < n) scores[first + k] = sums[k];
}

// Write the scores of all rows, (n_rows, n_outputs): first those of AT_ONCE outputs, whose sums a
// thread keeps in registers, then those of the next ones, for which the rows are looked up again.
template <class Value, class Key, int AT_ONCE>
__device__ void predict(const Rows& rows, const StepTables<Key>& tables, double* scores) {
  FOR_GRID(i, 0, rows.n_rows) {
    const unsigned char* row = rows.values + i * rows.row_stride;
    double* own = scores + i * tables.n_outputs;
    for (int64 first = 0; first < tables.n_outputs; first += AT_ONCE) {
      int64 left = tables.n_outputs - first;
      int n = left < AT_ONCE ? int(left) : AT_ONCE;
      predict_row<Value, Key, AT_ONCE>(row, rows.column_stride, tables, first, n, own);
    }
  }
}

// Models of one output have kernels of their own, which need fewer registers, so that more threads
// run at once.
#define PREDICT(dtype, Value, Key)                                                                \
  KERNEL predict_##dtype(const Rows rows, const StepTables<Key> tables, double* scores) {         \
    predict<Value, Key, 1>(rows, tables, scores);                                                 \
  }                                                                                               \
  KERNEL_OF_64_REGISTERS predict_outputs_##dtype(                                               \
      const Rows rows, const StepTables<Key> tables, double* scores) {                            \
    predict<Value, Key, 8>(rows, tables, scores);                                                 \
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
