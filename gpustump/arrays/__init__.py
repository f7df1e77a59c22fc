"""Arrays of any library on any device.

    libraries     the library, device and dtype of an array, and what the array API lacks or
                  computes differently: square roots
    order_keys    integers that sort as floats do: all values are compared by them
    devices       which devices can be used on this machine, and why others cannot
    sparse        tables most of whose values are 0
    moving        the same values in another library or on another device

The names of `libraries`, `order_keys` and `sparse` can be imported from this package as well.
Nothing here depends on what the arrays hold.
"""

from gpustump.arrays.libraries import (
    Array,
    computing_on,
    device_name,
    device_of,
    dtype_name,
    integers,
    is_array,
    library_name,
    namespace_of,
    on_host,
    picked,
    plain,
    running_minimum,
    scalar,
    to_host,
)
from gpustump.arrays.order_keys import as_working, missing_key, order_keys, working_dtype
from gpustump.arrays.sparse import SparseTable, is_sparse

__all__ = [
    "Array",
    "SparseTable",
    "as_working",
    "computing_on",
    "device_name",
    "device_of",
    "dtype_name",
    "integers",
    "is_array",
    "is_sparse",
    "library_name",
    "missing_key",
    "namespace_of",
    "on_host",
    "order_keys",
    "picked",
    "plain",
    "running_minimum",
    "scalar",
    "to_host",
    "working_dtype",
]
