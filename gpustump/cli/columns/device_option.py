"""The option --device, checked before a table is read."""

from __future__ import annotations


def check_device_option(name: str) -> None:
    """Refuse a GPU that cannot be used.

    Raises
    ------
    DeviceError
    """
    from gpustump.arrays.devices import DeviceError, check_usable

    try:
        check_usable(name)
    except DeviceError as error:
        raise DeviceError(f"--device {name}: {error}") from error
