// The parts of CUDA that the kernels use, for an ordinary C++ compiler.
//
// Blocks run one after another. The threads of a block take turns on one thread of the operating
// system: each runs up to its next barrier, in an order drawn anew after every barrier. That is many
// times faster than threads that wait for each other. With SYSTEM_THREADS, and outside Linux, they
// are threads of the operating system, with real barriers and atomics, so the thread sanitizer can
// find races between them. Shared memory is filled with noise before each block, and the bytes
// behind it are checked afterwards.

#pragma once

#ifndef __linux__
#define SYSTEM_THREADS
#endif

#ifdef SYSTEM_THREADS
#include <condition_variable>
#include <mutex>
#include <thread>
#else
#include <ucontext.h>
#endif

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

#ifdef SYSTEM_THREADS
inline thread_local Dimension threadIdx, blockIdx;
#else
inline Dimension threadIdx, blockIdx;
#endif
inline Dimension blockDim, gridDim;

constexpr std::size_t MOST_SHARED = 256 * 1024;
constexpr std::size_t GUARD = 4096;  // bytes behind a block's shared memory, which must not change

namespace emulator {

// How a launch ended, as Python reads it.
enum Ending { WELL, WROTE_BEYOND_SHARED, BARRIER_MISSED };

inline std::size_t shared_size;

unsigned int next_noise();
void fill_with_noise();
bool guard_is_whole();
void wait_for_the_others();

}  // namespace emulator

inline void __syncthreads() { emulator::wait_for_the_others(); }

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

#ifdef SYSTEM_THREADS

// Unlike std::barrier, whose threads look again and again, it leaves the cores to the thread that all
// wait for: where other tests keep them busy, that takes a fifth of the time.
struct Barrier {
  const unsigned int n_threads;
  unsigned int n_waiting = 0, n_passed = 0;
  std::mutex own;
  std::condition_variable all_are_here;

  explicit Barrier(unsigned int n) : n_threads(n) {}

  void arrive_and_wait() {
    std::unique_lock lock(own);
    if (++n_waiting == n_threads) {
      n_waiting = 0;
      n_passed++;
      all_are_here.notify_all();
    } else {
      all_are_here.wait(lock, [this, before = n_passed] { return n_passed != before; });
    }
  }
};

inline std::unique_ptr<Barrier> barrier;

inline void wait_for_the_others() { barrier->arrive_and_wait(); }

template <class Work>
Ending run_blocks(unsigned int grid, unsigned int block, const Work& work) {
  barrier = std::make_unique<Barrier>(block);
  bool is_whole = true;
  auto run = [&](unsigned int t) {
    threadIdx.x = t;
    for (unsigned int b = 0; b < grid; b++) {
      blockIdx.x = b;
      if (t == 0) fill_with_noise();
      barrier->arrive_and_wait();
      work();
      barrier->arrive_and_wait();
      if (t == 0) is_whole = is_whole && guard_is_whole();
    }
  };
  std::vector<std::thread> others;
  for (unsigned int t = 1; t < block; t++) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
  return is_whole ? WELL : WROTE_BEYOND_SHARED;
}

#else

constexpr std::size_t STACK = 256 * 1024;

// A thread of a block. It lives on from launch to launch; `has_ended` is about the block's work.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK]};
  bool has_ended;
};

inline std::vector<std::unique_ptr<Fiber>> fibers;
inline Fiber* running;
inline ucontext_t launching;
inline void (*work_on)(const void*);
inline const void* work_at;

inline void wait_for_the_others() { swapcontext(&running->context, &launching); }

inline void live() {
  for (;;) {
    work_on(work_at);
    running->has_ended = true;
    wait_for_the_others();
  }
}

inline void make_fibers(unsigned int block) {
  while (fibers.size() < block) {
    Fiber& made = *fibers.emplace_back(std::make_unique<Fiber>());
    getcontext(&made.context);
    made.context.uc_stack.ss_sp = made.stack.get();
    made.context.uc_stack.ss_size = STACK;
    makecontext(&made.context, live, 0);
  }
}

// Let every thread run up to its next barrier, or to the end. Returns how many have come to the end.
inline unsigned int run_to_a_barrier(unsigned int block) {
  unsigned int first = next_noise() % block, n_ended = 0;
  bool is_backwards = next_noise() % 2;
  for (unsigned int i = 0; i < block; i++) {
    unsigned int t = (first + (is_backwards ? block - i : i)) % block;
    threadIdx.x = t;
    running = fibers[t].get();
    swapcontext(&launching, &running->context);
    n_ended += running->has_ended;
  }
  return n_ended;
}

template <class Work>
Ending run_blocks(unsigned int grid, unsigned int block, const Work& work) {
  make_fibers(block);
  work_on = [](const void* at) { (*static_cast<const Work*>(at))(); };
  work_at = &work;
  bool is_whole = true;
  for (unsigned int b = 0; b < grid; b++) {
    blockIdx.x = b;
    fill_with_noise();
    for (unsigned int t = 0; t < block; t++) fibers[t]->has_ended = false;
    unsigned int n_ended = 0;
    while (n_ended == 0) n_ended = run_to_a_barrier(block);
    if (n_ended < block) {
      fibers.clear();  // some are in the middle of their work
      return BARRIER_MISSED;
    }
    is_whole = is_whole && guard_is_whole();
  }
  return is_whole ? WELL : WROTE_BEYOND_SHARED;
}

#endif

// Run a kernel as cuLaunchKernel does: `arguments` point to the values that it takes.
template <class... Arguments>
Ending launch(void (*kernel)(Arguments...), unsigned int grid, unsigned int block,
              std::size_t shared, void** arguments) {
  gridDim.x = grid;
  blockDim.x = block;
  shared_size = shared;
  auto work = [&] { call(kernel, arguments, std::index_sequence_for<Arguments...>{}); };
  return run_blocks(grid, block, work);
}

}  // namespace emulator
