"""Rows that are null because an input is, so that the function is not called for them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.functions import Function


def find_called(inputs: Sequence[pa.Array], function: Function) -> Any:
    """Which rows the function is called for, given its inputs; None for all of them."""
    called = None
    for place in function.required:
        if inputs[place].null_count:
            there = np.asarray(inputs[place].is_valid())
            called = there if called is None else called & there
    return called


def spread(values: pa.RecordBatch, called: Any) -> pa.RecordBatch:
    """The values of the rows that the function was called for, with null for the others."""
    places = np.cumsum(called) - 1
    return values.take(pa.array(places, pa.int64(), mask=~called))
