// The parts of CUDA that the kernels use, for an ordinary C++ compiler.
//
// Blocks run one after another. The threads of a block are threads of the operating system, with
// real barriers and atomics, so the thread sanitizer can find races between them. Shared memory is
// filled with noise before each block, and the bytes behind it are checked afterwards.

#pragma once

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Dimension {
  unsigned int x;
};

struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};

struct alignas(16) longlong2 {
  long long x, y;
};

inline thread_local Dimension threadIdx, blockIdx;
inline Dimension blockDim, gridDim;

constexpr std::size_t MOST_SHARED = 256 * 1024;
constexpr std::size_t GUARD = 4096;  // bytes behind a block's shared memory, which must not change

namespace emulator {

inline std::unique_ptr<std::barrier<>> barrier;
inline std::size_t shared_size;
inline unsigned int noise = 1;

void fill_with_noise();
bool guard_is_whole();

}  // namespace emulator

inline void __syncthreads() {
#ifndef WITHOUT_BARRIERS
  emulator::barrier->arrive_and_wait();
#endif
}

// All threads of a block are one warp here.
inline void __syncwarp() { __syncthreads(); }

template <class Number>
Number atomicAdd(Number* at, Number by) {
  return std::atomic_ref<Number>(*at).fetch_add(by, std::memory_order_relaxed);
}

template <class Number>
Number atomicExch(Number* at, Number value) {
  return std::atomic_ref<Number>(*at).exchange(value, std::memory_order_relaxed);
}

template <class Number>
Number atomicMin(Number* at, Number value) {
  std::atomic_ref<Number> here(*at);
  Number before = here.load(std::memory_order_relaxed);
  while (value < before && !here.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
  return before;
}

template <class Number>
Number atomicMax(Number* at, Number value) {
  std::atomic_ref<Number> here(*at);
  Number before = here.load(std::memory_order_relaxed);
  while (value > before && !here.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
  return before;
}

inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline long long __double_as_longlong(double x) {
  long long bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

namespace emulator {

template <class... Arguments, std::size_t... Index>
void call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Index...>) {
  kernel(*static_cast<std::remove_cv_t<Arguments>*>(arguments[Index])...);
}

// Run a kernel as cuLaunchKernel does: `arguments` point to the values that it takes. Returns
// whether the kernel wrote only to the shared memory that it was given.
template <class... Arguments>
bool launch(void (*kernel)(Arguments...), unsigned int grid, unsigned int block,
            std::size_t shared, void** arguments) {
  gridDim.x = grid;
  blockDim.x = block;
  shared_size = shared;
  barrier = std::make_unique<std::barrier<>>(block);
  bool is_whole = true;
  auto run = [&](unsigned int t) {
    threadIdx.x = t;
    for (unsigned int b = 0; b < grid; b++) {
      blockIdx.x = b;
      if (t == 0) fill_with_noise();
      barrier->arrive_and_wait();
      call(kernel, arguments, std::index_sequence_for<Arguments...>{});
      barrier->arrive_and_wait();
      if (t == 0) is_whole = is_whole && guard_is_whole();
    }
  };
  std::vector<std::thread> others;
  for (unsigned int t = 1; t < block; t++) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
  return is_whole;
}

}  // namespace emulator
