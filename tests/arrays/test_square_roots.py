"""Square roots are correctly rounded in every library: proved with integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import Backend

from gpustump import arrays
from gpustump.arrays.square_roots import square_root

N_RANDOM = 200_000


def random_numbers() -> np.ndarray:
    """Products as the scores have them, and numbers of any size."""
    random = np.random.default_rng(0)
    sizes = random.integers(0, 62, (2, N_RANDOM // 2))
    one, other = (random.integers(0, 2**62, N_RANDOM // 2) >> own for own in sizes)
    anything = np.ldexp(random.uniform(1, 2, N_RANDOM // 2), random.integers(-1000, 1000, 100_000))
    return np.concatenate([one.astype(np.float64) * other.astype(np.float64), anything])


def test_square_roots_are_correctly_rounded_in_every_library(backend: Backend):
    x = random_numbers()
    here = backend.asarray(x)
    with arrays.computing_on(here):
        found = square_root(here)
        assert backend.owns(found)
        root = backend.to_numpy(found)
    assert root.dtype == np.float64
    assert np.array_equal(root, [math.sqrt(one) for one in x.tolist()])


def test_pythons_root_which_the_others_are_compared_with_is_correctly_rounded():
    for x in random_numbers()[::40].tolist():
        root = math.sqrt(x)
        # The root lies within half a step of it: compare squares, exactly, in a common unit.
        top, bottom = x.as_integer_ratio()
        low, high = (math.nextafter(root, to) for to in (0.0, math.inf))
        for other in (low, high):
            a, b = (root.as_integer_ratio(), other.as_integer_ratio())
            middle_top, middle_bottom = a[0] * b[1] + b[0] * a[1], 2 * a[1] * b[1]
            is_below = middle_top**2 * bottom <= top * middle_bottom**2
            assert is_below == (other < root) or x == 0.0


@pytest.mark.parametrize("shape", [(), (0,), (1, 3), (2, 0)])
def test_square_roots_keep_the_shape(backend: Backend, shape: tuple[int, ...]):
    here = backend.asarray(np.full(shape, 2.25))
    with arrays.computing_on(here):
        root = backend.to_numpy(square_root(here))
    assert root.shape == shape
    assert np.array_equal(root, np.full(shape, 1.5))


def test_pytorchs_own_square_roots_on_the_cpu_are_not_all_correctly_rounded():
    """The reason why `square_root` exists; if this test fails, it may no longer be needed."""
    torch = pytest.importorskip("torch")
    x = random_numbers()
    own = torch.sqrt(torch.from_numpy(x)).numpy()
    if np.array_equal(own, np.sqrt(x)):
        pytest.skip("PyTorch's square roots are correctly rounded here")
    assert (own != np.sqrt(x)).mean() > 1e-4
