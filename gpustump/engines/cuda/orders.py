"""Sorted orders in the device's memory: those of all features, or as many as there is room for.

An order is a feature's samples by increasing value, four bytes each. The sign bit of a sample is
set if the next one has the same value. An array on the device holds the address of each order. It
is 0 if the order is not on the device; a kernel that needs it then reports the feature to the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from gpustump.arrays.devices import DeviceError
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.device import CudaDevice, OutOfDeviceMemoryError

Made = TypeVar("Made")


class Orders:
    """The orders on a device.

    Parameters
    ----------
    device : CudaDevice
    n_features : int
    capacity : int
        How many orders may be kept, at least one.
    sort : callable
        Makes the order of a feature: an array (n_samples,) of int32 on the device.
    """

    def __init__(
        self, device: CudaDevice, n_features: int, capacity: int, sort: Callable[[int], Array]
    ) -> None:
        self._device = device
        self._capacity = capacity
        self._sort = sort
        self._held: dict[int, Array] = {}  # the most recently used one comes last
        self._addresses = np.zeros(n_features, dtype=np.uint64)
        self.addresses = device.xp.zeros(n_features, dtype=np.uint64)

    def offer(self, feature: int, order: Array) -> None:
        """Keep an order if there is room; call `publish` when all have been offered."""
        if len(self._held) < self._capacity:
            self._held[feature] = order

    def publish(self) -> None:
        """Write the addresses of all orders to the device."""
        self._addresses[:] = 0
        for feature, order in self._held.items():
            self._addresses[feature] = self._device.address(order)
        self.addresses[...] = self._device.array(self._addresses.copy())

    def provide(self, features: Sequence[int]) -> None:
        """Sort these features, as many as can be kept at once, at least the first."""
        wanted = list(features)[: self._capacity]
        missing = [feature for feature in wanted if feature not in self._held]
        for feature in set(wanted) - set(missing):
            self._held[feature] = self._held.pop(feature)
        if not missing:
            return
        try:
            for feature in missing:
                while len(self._held) >= self._capacity:
                    self._forget_oldest()
                self._held[feature] = self.making_room(functools.partial(self._sort, feature))
        finally:  # whatever happens, no address of a forgotten order may stay
            self.publish()

    def hold(self, feature: int) -> bool:
        """Whether a feature's order is on the device."""
        return feature in self._held

    def address(self, feature: int) -> int:
        """The address of a feature's order, which is sorted now if it is not on the device."""
        self.provide([feature])
        return int(self._addresses[feature])

    def of(self, feature: int) -> Array:
        """A feature's order, an array on the device."""
        self.provide([feature])
        return self._held[feature]

    def making_room(self, make: Callable[[], Made]) -> Made:
        """What `make` returns. While memory is too small for it, orders are dropped one by one.

        Raises
        ------
        DeviceError
            If memory is too small even without any order.
        """
        while True:
            try:
                with self._device.active():
                    return make()
            except OutOfDeviceMemoryError as error:
                if not self._held:
                    raise DeviceError(f"{self._device.name} is out of memory: {error}") from error
                self._forget_oldest()
                self._capacity = max(1, len(self._held))
                self.publish()

    def _forget_oldest(self) -> None:
        del self._held[next(iter(self._held))]
