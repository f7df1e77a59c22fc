// Preparation: write each sample's bin as a byte, in the tiles that `add` in `update_pass.cu` reads.
//
// Features are in groups, whose width is a power of two up to 32. A tile is 512 bytes: 32 lanes of
// 16 samples. Lane l holds feature l % width. If a group has fewer features than a tile has lanes,
// the other lanes hold the samples that follow. So a warp reads whole cache lines, and each of its
// threads reads one feature only.

#include "common.cuh"

// Write the codes of one feature.
//
// order     (n_samples) samples by increasing value, missing ones last
// offset    (n_bins + 1) sorted positions at which bins begin, and the end of the last bin
KERNEL code_feature(const int* order, const int64* offset, int64 n_bins, int64 n_samples,
                    int64 width_bits, int64 feature, uint8* codes) {
  FOR_GRID(k, 0, n_samples) {
    int64 low = 0, high = n_bins;  // find the number of bins that end at k or before
    while (low < high) {
      int64 middle = (low + high) / 2;
      if (offset[middle + 1] <= k) low = middle + 1;
      else high = middle;
    }
    codes[code_at(sample_of(order[k]), int(width_bits), feature)] = low < n_bins ? low : MISSING;
  }
}
