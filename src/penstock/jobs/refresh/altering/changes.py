"""Compare two definitions of a view: which columns stay right, and whether rows can stay. Pure."""

from dataclasses import dataclass
from typing import Any

from penstock.jobs.specs import RefreshSpec
from penstock.lance.columns.schemas import decode_schema
from penstock.model.functions import Function
from penstock.model.views import SYSTEM_COLUMNS, Column, Definition, Rows


@dataclass(frozen=True, slots=True)
class DefinitionChanges:
    """What an alteration means for the view's own columns and rows.

    Rows of the view that stay keep their ids, their values in `kept`, and all columns that users
    added; they get values in `computed`.
    """

    kept: tuple[str, ...]
    # New columns, and those that are made in another way than before.
    computed: tuple[str, ...]
    # Columns that the view no longer has.
    dropped: tuple[str, ...]
    # Why no row can stay; "" when some can.
    rebuild: str = ""

    @property
    def replaced(self) -> tuple[str, ...]:
        """Columns whose old values are gone, even if the view has one of that name again."""
        return (*self.dropped, *self.computed)


def find_changes(spec: RefreshSpec) -> DefinitionChanges:
    """What the alteration of a spec changes."""
    return compare_definitions(spec.made_by, spec.definition)


def compare_definitions(before: Definition, after: Definition) -> DefinitionChanges:
    """What changes when one definition of a view takes the place of another."""
    old, new = decode_schema(before.schema), decode_schema(after.schema)
    dropped = tuple(name for name in old.names if name not in new.names)
    same_type = [n for n in new.names if n in old.names and old.field(n).type == new.field(n).type]
    if rebuild := _why_rebuild(before, after):
        # All rows are new, so a column of the same type can take the values of another query.
        computed = tuple(name for name in new.names if name not in same_type)
        return DefinitionChanges(tuple(same_type), computed, dropped, rebuild)
    kept = tuple(name for name in same_type if _is_made_alike(before, after, name))
    computed = tuple(name for name in new.names if name not in kept)
    return DefinitionChanges(kept, computed, dropped)


def find_broken(before: Definition, after: Definition) -> list[str]:
    """Columns that go, or get another type, so that what reads them cannot go on."""
    old, new = decode_schema(before.schema), decode_schema(after.schema)
    return [n for n in old.names if n not in new.names or new.field(n).type != old.field(n).type]


def list_new_functions(before: Definition, after: Definition) -> tuple[Function, ...]:
    """The functions of the new definition that have not filled these columns from these inputs."""
    functions = (*after.column_functions, *filter(None, [after.function]))
    if before.rows is None or after.rows is None:
        # Nobody knows what inputs were made of, beyond the query's single rows.
        return functions
    return tuple(each for each in functions if not is_same_function(before, after, each))


def is_same_function(before: Definition, after: Definition, function: Function) -> bool:
    """Whether a function of the new definition filled the same columns, from the same inputs."""
    outputs = [each.column for each in function.outputs]
    for old in (*before.column_functions, *filter(None, [before.function])):
        if [each.column for each in old.outputs] == outputs:
            is_same = (old.identity, old.inputs) == (function.identity, function.inputs)
            return is_same and all(_is_same_column(before, after, n) for n in function.inputs)
    return False


def has_same_filter(before: Definition, after: Definition) -> bool:
    """Whether both definitions take the same rows of their source."""
    old, new = _rows_of(before), _rows_of(after)
    return old.filter == new.filter and (old.filter is None or old.engine == new.engine)


def list_reads(before: Definition, names: tuple[str, ...]) -> tuple[str, ...]:
    """The source's fields that these columns of the old definition were made from."""
    columns = {column.name: column for column in _rows_of(before).columns}
    everything = before.sources[0].reads
    filled = {out.column: f for f in before.column_functions for out in f.outputs}
    inputs = list(before.function.inputs) if before.function is not None else []
    for name in names:
        inputs += filled[name].inputs if name in filled else [name]
    found = dict[str, None]()
    for name in inputs:
        column = columns.get(name)
        if column is not None:
            reads = (column.path,) if column.path is not None else column.reads or everything
            found |= dict.fromkeys(reads)
    return tuple(found)


def _why_rebuild(before: Definition, after: Definition) -> str:
    if [each.id for each in before.sources] != [each.id for each in after.sources]:
        return "the altered view reads other tables"
    if before.rows is None or after.rows is None:
        if _query_of(before) != _query_of(after):
            return "the query changed, and it does not go over the single rows of one table"
        return _why_function(before, after)
    if before.rows.limit is not None or after.rows.limit is not None:
        return "the query changed, and it has a limit"
    if after.function is not None and not is_same_function(before, after, after.function):
        if after.kind != "chunker":
            return "the function is another one, or reads something else"
        if _types_of(before) != _types_of(after):
            return "the function is another one, and makes other columns"
    if _partitions(before) != _partitions(after):
        return "the rows are divided into other partitions"
    return ""


def _query_of(definition: Definition) -> tuple[object, ...]:
    return definition.sql, definition.rows, definition.keys


def _why_function(before: Definition, after: Definition) -> str:
    """Why no row can stay of a query that is whole and stays: nobody follows its rows."""
    old, new = before.function, after.function
    if old is not None and new is not None and old.identity != new.identity:
        return "the function is another one"
    if old is not None and new is not None and old.inputs != new.inputs:
        return "the function reads something else"
    if before.partition_by != after.partition_by:
        return "the rows are divided into other partitions"
    return "the columns changed, and the query does not go over the single rows of one table"


def _types_of(definition: Definition) -> dict[str, Any]:
    """The columns that the function makes, with their types."""
    outputs = () if definition.function is None else definition.function.outputs
    schema = decode_schema(definition.schema)
    return {each.column: schema.field(each.column).type for each in outputs}


def _partitions(definition: Definition) -> object:
    rows = _rows_of(definition)
    name = definition.partition_by or definition.partition_by_indexed_column
    column = _find(definition, name) if name else None
    text = None if column is None else column.path or (rows.engine, column.expression)
    return definition.partition_by is None, text


def _is_made_alike(before: Definition, after: Definition, name: str) -> bool:
    if name in SYSTEM_COLUMNS:
        return True
    for function in (*after.column_functions, *filter(None, [after.function])):
        if name in [each.column for each in function.outputs]:
            # Children of another chunker are compared: those that stay have its values.
            is_compared = after.kind == "chunker" and function is after.function
            return is_compared or is_same_function(before, after, function)
    if any(name == out.column for each in before.column_functions for out in each.outputs):
        return False
    return _is_same_column(before, after, name)


def _is_same_column(before: Definition, after: Definition, name: str) -> bool:
    old, new = _find(before, name), _find(after, name)
    if old is None or new is None or old.reads_clock or new.reads_clock:
        return False
    if old.path is not None or new.path is not None:
        return old.path == new.path
    engines = _rows_of(before).engine, _rows_of(after).engine
    return old.expression == new.expression and engines[0] == engines[1]


def _find(definition: Definition, name: str) -> Column | None:
    return next((each for each in _rows_of(definition).columns if each.name == name), None)


def _rows_of(definition: Definition) -> Rows:
    assert definition.rows is not None
    return definition.rows
