"""The CPU that stands in for a CUDA device notices what kernels must not do."""

from __future__ import annotations

import ctypes
import sys

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

takes_turns = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the threads are those of the operating system"
)

SOURCE = """
extern __shared__ __align__(16) unsigned char shared[];

// One thread waits for others that never come.
__global__ void waits_alone(long long* found) { if (threadIdx.x == found[0]) __syncthreads(); }

// Writes a byte at an offset into shared memory.
__global__ void writes(long long* found) { shared[found[0]] ^= 1; }

// Each thread adds a digit, its number: they say in which order the threads came.
__global__ void comes(long long* found) {
  for (int i = 0; i < 20; i++) {
    found[i] = found[i] * 10 + threadIdx.x + 1;
    __syncthreads();
  }
}

// Two copies of what is left in shared memory.
__global__ void looks(long long* found) { std::memcpy(found, shared, 64); }
"""


@pytest.fixture(scope="module")
def device():
    kernels = ("waits_alone", "writes", "comes", "looks")
    made = OnCpu(threads=3)
    made._library = ctypes.CDLL(str(cuda_on_cpu.compiled(cuda_on_cpu.program(SOURCE, kernels))))
    return made


@takes_turns
@pytest.mark.parametrize("thread", [0, 1, 2])
def test_a_barrier_that_only_some_threads_reach_is_an_error(device, thread):
    with pytest.raises(AssertionError, match="waits_alone has a barrier at which only some"):
        device.launch("waits_alone", 1, 3, np.array([thread]))
    device.launch("waits_alone", 1, 3, np.array([3]))  # none waits, and the device still works


def test_a_byte_behind_the_shared_memory_is_noticed(device):
    device.launch("writes", 2, 1, np.array([63]), shared=64)
    with pytest.raises(AssertionError, match="writes takes more than 64 bytes of shared memory"):
        device.launch("writes", 2, 1, np.array([64]), shared=64)


@takes_turns
def test_threads_come_in_many_orders(device):
    found = np.zeros(20, dtype=np.int64)
    device.launch("comes", 1, 3, found)
    orders = set(found.tolist())
    assert orders <= {123, 132, 213, 231, 312, 321}
    assert len(orders) >= 4


def test_shared_memory_holds_other_noise_in_every_launch(device):
    seen = np.zeros((4, 8), dtype=np.int64)
    for found in seen:
        device.launch("looks", 1, 1, found, shared=64)
    assert len(np.unique(seen)) == seen.size
