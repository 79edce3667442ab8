"""Names for the types of arrays, by what they hold; comments beside a field say which shape it has."""

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

    Int: TypeAlias = int | np.integer[Any]  # a whole number as kernels take it
    Float: TypeAlias = float | np.floating[Any]  # a number as kernels take it
else:  # annotations are never evaluated, and importing numpy.typing takes time
    AnyArray = Bools = UInt8s = UInt16s = UInt32s = UInt64s = np.ndarray
    Int8s = Int32s = Int64s = Float32s = Float64s = np.ndarray
    Int = Float = Any
