"""Parameters that are sizes: in bytes, as numbers or as text."""

from __future__ import annotations

import pytest

from gpustump.data.parameters import check_bytes


@pytest.mark.parametrize(
    ("given", "found"),
    [(1000, 1000), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), (" 10 kb ", 10_000), ("7", 7)],
)
def test_sizes_may_be_numbers_or_text(given, found):
    assert check_bytes(given, "max_memory") == found


@pytest.mark.parametrize("bad", ["", "GB", "2 parsecs", "-1GB", "nanGB", "1e999", 0, -5])
def test_other_sizes_are_refused(bad):
    with pytest.raises(ValueError, match="max_memory must be"):
        check_bytes(bad, "max_memory")
