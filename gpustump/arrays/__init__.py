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

from gpustump.arrays.libraries import Array as Array
from gpustump.arrays.libraries import computing_on as computing_on
from gpustump.arrays.libraries import device_name as device_name
from gpustump.arrays.libraries import device_of as device_of
from gpustump.arrays.libraries import dtype_name as dtype_name
from gpustump.arrays.libraries import integers as integers
from gpustump.arrays.libraries import is_array as is_array
from gpustump.arrays.libraries import library_name as library_name
from gpustump.arrays.libraries import namespace_of as namespace_of
from gpustump.arrays.libraries import on_host as on_host
from gpustump.arrays.libraries import picked as picked
from gpustump.arrays.libraries import plain as plain
from gpustump.arrays.libraries import running_minimum as running_minimum
from gpustump.arrays.libraries import scalar as scalar
from gpustump.arrays.libraries import to_host as to_host
from gpustump.arrays.order_keys import as_working as as_working
from gpustump.arrays.order_keys import floats_of as floats_of
from gpustump.arrays.order_keys import missing_key as missing_key
from gpustump.arrays.order_keys import order_keys as order_keys
from gpustump.arrays.order_keys import working_dtype as working_dtype
from gpustump.arrays.sparse import SparseTable as SparseTable
from gpustump.arrays.sparse import is_sparse as is_sparse
