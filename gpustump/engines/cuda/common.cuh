// What all kernels share: names of types, loops over a block or a grid, sums over a block.
//
// Every kernel gives the same result for any launch shape, even for a single thread: blocks stride
// over the grid's work and threads over the block's. Only in `add_staged` do threads work in warps;
// a block with fewer threads than a warp counts as one warp. So an ordinary C++ compiler can build
// the same files for the CPU, where they are tested.
//
// A block adds up integers only, so the order does not matter. The only floating-point sum is
// `score + vote`, one term at a time.

#ifndef GPUSTUMP_COMMON
#define GPUSTUMP_COMMON

using int8 = signed char;
using uint8 = unsigned char;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

// A block has 256 threads, or as many as a device allows.
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define KERNEL_OF_FULL_BLOCKS extern "C" __global__ void __launch_bounds__(1024)
#define KERNEL_OF_HALF_BLOCKS extern "C" __global__ void __launch_bounds__(512, 1)

// Bounds for few blocks on a processor let the compiler use up to 64, 80, 128 or all registers, so
// that it spills none.
#define KERNEL_OF_64_REGISTERS extern "C" __global__ void __launch_bounds__(256, 4)
#define KERNEL_OF_80_REGISTERS extern "C" __global__ void __launch_bounds__(256, 3)
#define KERNEL_OF_128_REGISTERS extern "C" __global__ void __launch_bounds__(256, 2)
#define KERNEL_OF_ALL_REGISTERS extern "C" __global__ void __launch_bounds__(256, 1)

// A block's shared memory; its size is an argument of the launch.
extern __shared__ __align__(16) unsigned char shared[];

// Atomic additions to shared memory, at an address in bytes. The compiler generates better code for
// these than for `atomicAdd` on `shared`, where it computes the array's address again for each one.
#ifdef __CUDA_ARCH__
__device__ __forceinline__ uint32 address_of_shared() {
  uint32 address = uint32(__cvta_generic_to_shared(shared)), opaque;
  asm volatile("mov.u32 %0, %1;" : "=r"(opaque) : "r"(address));
  return opaque;
}
__device__ __forceinline__ uint32 fetch_and_add(uint32 at, uint32 by) {
  uint32 before;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(at), "r"(by));
  return before;
}
__device__ __forceinline__ void add_only(uint32 at, uint32 by) {
  asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(at), "r"(by));
}
__device__ __forceinline__ void end_of_additions() { asm volatile("" ::: "memory"); }

// A word made of bytes of two words, by a selector: four bits for each byte of the result. Bytes 0
// to 3 are those of `low`, 4 to 7 those of `high`; 8 more means the byte's highest bit repeated.
__device__ __forceinline__ uint32 bytes_of(uint32 low, uint32 high, uint32 selector) {
  uint32 found;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(found) : "r"(low), "r"(high), "r"(selector));
  return found;
}
#else
__device__ __forceinline__ uint32 address_of_shared() { return 0; }
__device__ __forceinline__ uint32 fetch_and_add(uint32 at, uint32 by) {
  return atomicAdd(reinterpret_cast<uint32*>(shared + at), by);
}
__device__ __forceinline__ void add_only(uint32 at, uint32 by) { fetch_and_add(at, by); }
__device__ __forceinline__ void end_of_additions() {}
__device__ __forceinline__ uint32 bytes_of(uint32 low, uint32 high, uint32 selector) {
  uint64 both = uint64(high) << 32 | low;
  uint32 found = 0;
  for (int k = 0; k < 4; k++) {
    uint32 wanted = selector >> 4 * k & 15, byte = uint32(both >> 8 * (wanted & 7)) & 255;
    found |= (wanted < 8 ? byte : byte < 128 ? 0u : 255u) << 8 * k;
  }
  return found;
}
#endif

// The term that is added to a histogram: a number, with the highest bit set if the label is
// positive. Sums of such terms are right in all other bits.
__device__ inline int64 labelled(int64 by, bool is_positive) {
  return int64((uint64(by) & ~(1ull << 63)) | uint64(is_positive) << 63);
}
__device__ inline int64 without_label(uint64 sum) { return int64(sum << 1) >> 1; }

// Copies of 16 bytes to shared memory that run while the thread continues. Each call of
// `next_copies` begins a new batch; `wait_for_copies<N>` waits until all batches but the last N
// have arrived.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ void copy_16(uint32 to, const void* from) {
  uint32 at = uint32(__cvta_generic_to_shared(shared)) + to;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void next_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
#else
__device__ __forceinline__ void copy_16(uint32 to, const void* from) {
  *reinterpret_cast<uint4*>(shared + to) = *static_cast<const uint4*>(from);
}
__device__ __forceinline__ void next_copies() {}
template <int N>
__device__ __forceinline__ void wait_for_copies() {}
#endif

// Threads of this block, or of the whole grid, take turns.
#define FOR_BLOCK(i, begin, end) \
  for (int64 i = (begin) + threadIdx.x; i < (end); i += blockDim.x)
#define FOR_GRID(i, begin, end)                                              \
  for (int64 i = (begin) + int64(blockIdx.x) * blockDim.x + threadIdx.x; i < (end); \
       i += int64(gridDim.x) * blockDim.x)

[[maybe_unused]] constexpr int64 TOP = 1ll << 62;  // above all sums: integer_weights.TOP
[[maybe_unused]] constexpr double FLOOR = 0x1p-900;  // integer_weights.FLOOR
[[maybe_unused]] constexpr int MISSING = 255;  // the code of a missing value
[[maybe_unused]] constexpr int SLOTS = 512;  // of a feature's histogram: 256 codes, two labels
constexpr int LANE_BITS = 5;
constexpr int LANES = 1 << LANE_BITS;  // features, or copies of them, that a tile of codes holds
constexpr int RUN = 16;                // samples of a feature that are neighbours in a tile

// The sample at a sorted position. The sign bit says whether the next one has the same value.
__device__ inline int sample_of(int marked) { return marked & 0x7fffffff; }

// Where a sample's code is, in bytes from the beginning of its group of 2**width_bits features;
// `feature` is its number within the group.
__device__ inline int64 code_at(int64 sample, int width_bits, int64 feature) {
  int copy_bits = LANE_BITS - width_bits;
  int64 run = sample / RUN, tile = run >> copy_bits, copy = run & ((1 << copy_bits) - 1);
  return (tile * LANES + (copy << width_bits) + feature) * RUN + sample % RUN;
}

__device__ inline int64 units_of(double weight) { return int64(ceil(weight)); }

__device__ inline void add_to(int64* sum, int64 by) {
  atomicAdd(reinterpret_cast<uint64*>(sum), uint64(by));
}

// Sums over all samples and outputs, in the units of the current integers.
struct Sums {
  int64 signed_weight;  // the gradients, each with the sign of its label
  int64 weight;         // the Hessians: the same without the sign, except for Newton votes
  int64 error;          // see `contract.Totals`
  int64 smallest;       // the smallest Hessian
  __device__ void append(const Sums& other) {
    signed_weight += other.signed_weight;
    weight += other.weight;
    error += other.error;
    if (other.smallest < smallest) smallest = other.smallest;
  }
};

[[maybe_unused]] constexpr Sums NO_SUMS = {0, 0, 0, TOP};

// Add a block's sums to those of all blocks.
__device__ inline void add_to(Sums* all, const Sums& own) {
  add_to(&all->signed_weight, own.signed_weight);
  add_to(&all->weight, own.weight);
  add_to(&all->error, own.error);
  atomicMin(&all->smallest, own.smallest);
}

// How a step's hypothesis divides the samples into regions.
struct Step {
  const uint8* codes;  // tiles of the cut's group, for `n_samples` samples from `first_sample` on
  int64 width_bits;    // the group has 2**width_bits features
  int64 feature;       // the cut's feature, numbered within the group
  int64 first_sample, n_samples;
  const uint8* regions;  // of each sample if cut_bin is -1, of each code if it is -2, or null
  int64 cut_bin;         // the bin that holds the cut, or that ends with it; 256: all are left
  int64 is_inside;       // whether the cut lies inside the bin; then marked samples are on the left
  int64 low_bin;         // for an interval, the bin of its first sample; 0 for a stump
  int64 is_low_inside;   // whether only the marked samples of that bin lie in the interval
  int64 round;           // the number that marks them
  uint32* marks;
  const int* order;  // the feature's sorted order
  int64 begin, end;  // the sorted positions of the samples that are marked
  int64 low_begin, low_end;  // and those in the bin `low_bin`, if it is another one
  int64 clears;  // whether the histograms are cleared first
};

[[maybe_unused]] constexpr int FIRST_REGION = 0, SECOND_REGION = 1, MISSING_REGION = 2;

[[maybe_unused]] constexpr int64 OF_SAMPLES = -1, OF_CODES = -2, ALL_LEFT = 256;

__device__ inline int region_of(const Step& step, int64 sample) {
  if (step.cut_bin == OF_SAMPLES) return step.regions[sample];
  if (step.cut_bin == ALL_LEFT) return FIRST_REGION;
  int64 here = sample - step.first_sample;
  int code = step.codes[code_at(here, int(step.width_bits), step.feature)];
  if (step.cut_bin == OF_CODES) return step.regions[code];
  if (code == MISSING) return MISSING_REGION;
  if (code < step.low_bin || code > step.cut_bin) return SECOND_REGION;
  bool is_cut = (code == step.cut_bin && step.is_inside) ||
                (code == step.low_bin && step.is_low_inside);
  bool is_first = !is_cut || step.marks[sample] == uint32(step.round);
  return is_first ? FIRST_REGION : SECOND_REGION;
}

// What is added up: one layer for each output, two with Newton votes, each with its histograms.
struct Layers {
  int64* change;      // (n_layers, n_padded) for all samples, `labelled`; zeros up to a whole tile
  int64* histograms;  // (n_layers, n_features, 2, 256): by label and code
  int64 n_padded, n_features, n_layers;
};

// Clear the histograms, if the step asks for it.
__device__ inline void clear(const Layers& layers, const Step& step) {
  if (!step.clears) return;
  FOR_GRID(i, 0, layers.n_layers * layers.n_features * SLOTS) layers.histograms[i] = 0;
}

// Combine all threads' values in the threads' order, through `found` (blockDim.x values). The
// result is in its first element, and in the first thread's `mine`.
template <class Value>
__device__ void combine(Value& mine, Value* found) {
  uint32 t = threadIdx.x;
  found[t] = mine;
  __syncthreads();
  for (uint32 step = 1; step < blockDim.x; step *= 2) {
    if (t % (2 * step) == 0 && t + step < blockDim.x) found[t].append(found[t + step]);
    __syncthreads();
  }
  if (t == 0) mine = found[0];
}

#endif
