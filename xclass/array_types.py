"""Define names for array types by dtype; docstrings and comments give the shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    AnyArray: TypeAlias = NDArray[Any]
    Bools: TypeAlias = NDArray[np.bool_]
    UInt8s: TypeAlias = NDArray[np.uint8]
    UInt16s: TypeAlias = NDArray[np.uint16]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[np.uint64]
    Int8s: TypeAlias = NDArray[np.int8]
    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]
    Float32s: TypeAlias = NDArray[np.float32]
    Float64s: TypeAlias = NDArray[np.float64]

    Int: TypeAlias = int | np.integer[Any]  # whole number in a kernel
    Float: TypeAlias = float | np.floating[Any]  # real number in a kernel
else:  # avoid the slow import of numpy.typing: annotations are not evaluated
    AnyArray = Bools = UInt8s = UInt16s = UInt32s = UInt64s = np.ndarray
    Int8s = Int32s = Int64s = Float32s = Float64s = np.ndarray
    Int = Float = Any
