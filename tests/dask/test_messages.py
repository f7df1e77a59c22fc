"""What is sent comes back: arrays of any size, aligned wherever the bytes have arrived."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("distributed")

from gpustump.dask.worker import packed, unpacked


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_an_answer_comes_back_with_aligned_arrays(offset):
    arrays = [np.arange(n, dtype=dtype) for n in (0, 3, 1000) for dtype in ("u1", "i4", "i8", "f8")]
    answer = True, {"arrays": arrays, "planes": np.arange(12).reshape(3, 4), "text": "same"}
    message = packed(answer)
    sent = message["joined"].data
    room = np.empty(len(sent) + 16, dtype=np.uint8)
    start = -room.ctypes.data % 8 + offset
    message["joined"] = room[start : start + len(sent)]
    message["joined"][:] = sent
    (is_answer, found), n_bytes = unpacked(message)
    assert is_answer
    assert found["text"] == "same"
    assert n_bytes >= len(sent)
    pairs = zip([*found["arrays"], found["planes"]], [*arrays, answer[1]["planes"]], strict=True)
    for one, other in pairs:
        assert one.flags.aligned
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
