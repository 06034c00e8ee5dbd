"""Calling conventions: the arguments and results of each kind of function."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from itertools import repeat, starmap
from typing import Any

import pyarrow as pa

from penstock.jobs.functions.children import by_row, rows_to_lists, tables_to_lists, to_partitions
from penstock.jobs.functions.event_loop import Called, Verdict, call_rows, count_at_once
from penstock.jobs.functions.load import ROW_BY_ROW, LoadedFunction
from penstock.jobs.functions.outcomes import Failure, Outcome, to_failure
from penstock.jobs.functions.output import PrintedOutput, captured
from penstock.jobs.functions.results import (
    BadResult,
    WrongLength,
    split_result,
    to_array,
    to_arrays,
)
from penstock.model.functions import Function


class DirectCaller:
    """Calls the function in this process."""

    def __init__(
        self,
        loaded: LoadedFunction,
        function: Function,
        kinds: pa.Schema,
        output: PrintedOutput | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._loaded = loaded
        self._function = function
        self._kinds = kinds
        self._output = output
        self._is_stopped = is_stopped
        self._at_once = count_at_once(function, loaded.kind)
        self._room = asyncio.Semaphore(self._at_once)
        self._fields = tuple(each.struct_field for each in function.outputs)
        # What makes rows has looked at them already.
        self._required = [
            number
            for number, each in enumerate(function.outputs)
            if not each.nullable and function.form != "udtf_spec"
        ]

    @property
    def calls_at_once(self) -> bool:
        return self._loaded.loop is not None and self._loaded.kind in ROW_BY_ROW

    def run(self, batch: pa.RecordBatch, *, go_on: bool, one_by_one: bool = False) -> Outcome:
        with captured(self._output):
            if self.calls_at_once:
                found = self._run_at_once(batch, go_on, 1 if one_by_one else self._at_once)
            elif self._loaded.kind in ROW_BY_ROW:
                found = self._run_rows(batch, go_on)
            elif self._loaded.kind == "batch_chunker":
                found = self._run_chunker(batch)
            else:
                found = self._run_whole(batch)
        return self._check_nulls(found)

    def close(self) -> None: ...

    def _run_at_once(self, batch: pa.RecordBatch, go_on: bool, at_once: int) -> Outcome:
        """Calls of an async function, several at a time."""
        called, rows = Called(), [*self._list_rows(batch)]
        loop, limits = self._loaded.loop, self._function.on_error.rate_limit
        assert loop is not None
        failures: dict[int, Failure] = {}

        def judge(error: BaseException) -> Verdict:
            if to_failure(error, limits).is_rate_limit:
                return Verdict.LET_END
            return Verdict.GO_ON if go_on else Verdict.END

        is_stopped = False
        try:
            loop.run(
                call_rows(
                    self._loaded.call,
                    rows,
                    self._room,
                    called,
                    at_once=at_once,
                    seconds=self._function.timeout_seconds,
                    judge=judge,
                ),
                self._is_stopped,
            )
        except CancelledError:
            is_stopped = True
        failures = {row: to_failure(error, limits) for row, error in called.errors.items()}
        there = called.values.keys() | failures.keys()
        outcome = self._convert_rows([called.values.get(n) for n in range(len(rows))], failures)
        left = tuple(n for n in range(len(rows)) if n not in there)
        return Outcome(outcome.values, outcome.failures, left=left, is_stopped=is_stopped)

    def _list_rows(self, batch: pa.RecordBatch) -> Iterable[Sequence[Any]]:
        """What is given to the calls for each row."""
        if self._loaded.kind == "udtf":
            return ((table,) for table in to_partitions(batch.column(0)))
        if not self._function.inputs:
            return repeat((), batch.num_rows)
        return zip(*(column.to_pylist() for column in self._inputs(batch)), strict=True)

    def _run_rows(self, batch: pa.RecordBatch, go_on: bool) -> Outcome:
        """One call for each row; what was returned before a failure is kept."""
        values: list[Any] = []
        failures: dict[int, Failure] = {}
        rows = batch.num_rows
        # Not a generator of ours, which would end with the first exception.
        calls = starmap(self._loaded.call, self._list_rows(batch))
        while len(values) < rows:
            try:
                # A list that is extended keeps what came before an exception, and `map` goes on
                # with the row after it.
                values.extend(calls)
                if len(values) < rows:
                    raise RuntimeError("the function raised StopIteration")
            # Whatever the function raises is the row's failure: an exit, a panic of a library.
            except BaseException as error:
                failure = to_failure(error, self._function.on_error.rate_limit)
                failures[len(values)] = failure
                values.append(None)
                if failure.is_rate_limit or not go_on:
                    break
        return self._convert_rows(values, failures)

    def _inputs(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns that the function reads; others may follow them."""
        found: list[pa.Array] = batch.columns[: len(self._function.inputs)]
        return found

    def _convert_rows(self, values: list[Any], failures: dict[int, Failure]) -> Outcome:
        try:
            arrays = self._to_arrays(values)
        except BadResult:
            # Rare: now each row is looked at by itself.
            for row, value in enumerate(values):
                if row in failures:
                    continue
                try:
                    self._to_arrays([value])
                except BadResult as error:
                    failures[row] = Failure(exception="TypeError", message=str(error))
                    values[row] = None
            arrays = self._to_arrays(values)
        return Outcome(pa.record_batch(arrays, schema=self._kinds), failures)

    def _to_arrays(self, values: list[Any]) -> list[pa.Array]:
        if self._loaded.kind == "udtf":
            return [tables_to_lists(values, self._kinds.field(0))]
        if self._loaded.kind in ("chunker", "batch_chunker"):
            return [rows_to_lists(values, self._kinds.field(0))]
        return to_arrays(values, self._fields, self._kinds)

    def _run_chunker(self, batch: pa.RecordBatch) -> Outcome:
        try:
            values = by_row(self._loaded.call(self._named(batch)), batch.num_rows)
        except BadResult as error:
            return Outcome(None, whole=Failure(exception="TypeError", message=str(error)))
        # Whatever the function raises is the batch's failure: an exit, a panic of a library.
        except BaseException as error:
            return Outcome(None, whole=to_failure(error, self._function.on_error.rate_limit))
        return self._convert_rows(values, {})

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the function reads, by the names that it knows."""
        return pa.record_batch(self._inputs(batch), names=list(self._function.given_as))

    def _run_whole(self, batch: pa.RecordBatch) -> Outcome:
        try:
            if self._loaded.kind == "batch":
                result = self._loaded.call(self._named(batch))
            else:
                result = self._loaded.call(*self._inputs(batch))
            arrays = [
                to_array(part, field, batch.num_rows)
                for part, field in zip(
                    split_result(result, self._fields, self._kinds), self._kinds, strict=True
                )
            ]
        except BadResult as error:
            is_final = isinstance(error, WrongLength)
            failure = Failure(exception="TypeError", message=str(error), is_final=is_final)
            return Outcome(None, whole=failure)
        # Whatever the function raises is the batch's failure: an exit, a panic of a library.
        except BaseException as error:
            return Outcome(None, whole=to_failure(error, self._function.on_error.rate_limit))
        return Outcome(pa.record_batch(arrays, schema=self._kinds))

    def _check_nulls(self, found: Outcome) -> Outcome:
        """A null where a column takes none is its row's failure."""
        if found.values is None:
            return found
        for number in self._required:
            column = found.values.column(number)
            if not column.null_count:
                continue
            name = self._kinds.names[number]
            for row in column.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                if row in found.left:
                    continue
                found.failures.setdefault(
                    row,
                    Failure(
                        exception="ValueError",
                        message=f"returned None for column {name}, which is not nullable",
                    ),
                )
        return found
