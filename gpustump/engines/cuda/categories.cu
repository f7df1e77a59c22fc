// The sums over the categories, gathered for the host.
//
// The code of a categorical feature's value is the number of its category, so `add` in
// `update_pass.cu` adds up the categories like bins. The host finds the best sets from these sums.

#include "common.cuh"

// Write the sums of both integers over some codes, (n_outputs, 2, n_places).
//
// places        (n_places) where the sums of a feature and code are, counted from a layer's first sum
// has_hessians  whether an output has a layer of its own for its Hessians
KERNEL gather_categories(const Layers layers, const int64* places, int64 n_places,
                         int64 has_hessians, int64* found) {
  const int64 layer = layers.n_features * SLOTS, n_each = has_hessians ? 2 : 1;
  FOR_GRID(p, 0, n_places) {
    const int64* gradient = layers.histograms + places[p];
    int64* to = found + p;
#pragma unroll 1
    for (int64 done = 0; done < layers.n_layers; done += n_each) {
      const int64* hessian = has_hessians ? gradient + layer : gradient;
      to[0] = gradient[SLOTS / 2] - gradient[0];
      to[n_places] = hessian[SLOTS / 2] + hessian[0];
      gradient += n_each * layer;
      to += 2 * n_places;
    }
  }
}
