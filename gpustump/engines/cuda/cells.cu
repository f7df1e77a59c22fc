// The sums over cells: equally wide parts of ranges of keys, or single values in them. With these a
// shard of a larger table answers questions about parts of bins (see `engines.cluster.questions`).

#include "common.cuh"
#include "search.cuh"

// The bins whose samples are put into cells, and the cells. Arrays of rows, one below the other.
struct CellSums {
  const int64* bins;   // (5, n_bins) the feature, the sorted position of the first sample, how many
                       // samples there are in all bins up to this one, the bin's first range, and
                       // the one after its last
  int64* ranges;       // (4, n_ranges) the smallest and the largest key, the shift, and the first
                       // place; where each sample is a cell, the next one that is free
  int64* places;       // (3 + n_planes, n_places) a cell's samples, their smallest and their largest
                       // key, and the sums of their integers
  const int64* integers;  // (n_outputs, n_kinds, n_samples) gradients and, if n_kinds is 2, Hessians
  int64 n_bins, n_ranges, n_places, n_samples, n_outputs, n_kinds;
};

// An integer that sorts as the value does; see `arrays.order_keys`.
// A shard's table has all rows of the source.
__device__ inline int64 key_at(const SourceTable& source, int64 sample, int64 feature) {
  const unsigned char* value =
      source.values + sample * source.row_stride + feature * source.column_stride;
  bool is_short = source.item_size == 4;
  int64 bits = is_short ? *reinterpret_cast<const int*>(value)
                        : *reinterpret_cast<const int64*>(value);
  int64 lowest = is_short ? -2147483647ll - 1 : -9223372036854775807ll - 1;
  return bits >= 0 ? bits : lowest - bits;
}

// The index of the last of some increasing numbers that is at most `limit`; `first` if none is.
__device__ inline int64 last_up_to(const int64* numbers, int64 first, int64 end, int64 limit) {
  while (end - first > 1) {
    int64 middle = (first + end) / 2;
    if (numbers[middle] <= limit) first = middle;
    else end = middle;
  }
  return first;
}

// Put `n` samples into cells, and add up their integers. The features' orders are on the device.
KERNEL add_cells(const CellSums cells, const SourceTable source, const uint64* orders, int64 n) {
  const int64 *feature = cells.bins, *start = feature + cells.n_bins, *end = start + cells.n_bins;
  const int64 *first = end + cells.n_bins, *stop = first + cells.n_bins;
  const int64 *lows = cells.ranges, *highs = lows + cells.n_ranges, *shifts = highs + cells.n_ranges;
  int64 *next = cells.ranges + 3 * cells.n_ranges, *size = cells.places;
  int64 *lowest = size + cells.n_places, *highest = lowest + cells.n_places;
  FOR_GRID(i, 0, n) {
    int64 bin = i < end[0] ? 0 : last_up_to(end, 0, cells.n_bins, i) + 1;
    const int* order = reinterpret_cast<const int*>(orders[feature[bin]]);
    int64 sample = sample_of(order[start[bin] + i - (bin ? end[bin - 1] : 0)]);
    int64 key = key_at(source, sample, feature[bin]);
    int64 range = last_up_to(lows, first[bin], stop[bin], key);
    if (key < lows[range] || key > highs[range]) continue;
    int64 place;
    if (shifts[range] < 0) place = int64(atomicAdd(reinterpret_cast<uint64*>(next + range), 1ull));
    else place = next[range] + int64((uint64(key) - uint64(lows[range])) >> shifts[range]);
    add_to(&size[place], 1);
    atomicMin(&lowest[place], key);
    atomicMax(&highest[place], key);
    int64* sums = highest + cells.n_places + place;
    const int64* own = cells.integers + sample;
    for (int64 k = 0; k < cells.n_outputs; k++) {
      int64 gradient = *own;
      add_to(sums + (gradient < 0 ? cells.n_places : 0), absolute(gradient));
      sums += 2 * cells.n_places;
      if (cells.n_kinds > 1) {
        add_to(sums, own[cells.n_samples]);
        sums += cells.n_places;
      }
      own += cells.n_kinds * cells.n_samples;
    }
  }
}
