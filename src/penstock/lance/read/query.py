"""Queries of one version of a table: scans, vector search, text search, and both together.

- Several query vectors on a column of vectors are several searches: each has its own k and offset,
  and the rows say in `query_index` whose they are. On a column of lists of vectors they are one
  search (late interaction), as the column's type says.
- Vector and text search together are fused by reciprocal rank: a row's `_relevance_score` is the
  sum of 1 / (60 + its rank, from 1) over the searches that found it, among the k + offset best of
  each. `_distance` and `_score` are null where that search did not find the row.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import ColumnNotFound, InvalidRequest
from penstock.lance.doors import lance, ordering, pa
from penstock.lance.read import fulltext
from penstock.lance.read.first_rows import take_first
from penstock.lance.read.fulltext import TextSearch
from penstock.lance.read.ranking import add_scores, bound_ranking, check_vectors, is_small

RANK_CONSTANT, MAX_FUSED, MAX_LIMIT = 60, 100_000, 2**63 - 1
# What a scan holds in memory: Lance reads ahead until this much waits to be decoded, by whole
# pages, from so many fragments.
SCAN: dict[str, Any] = {
    "io_buffer_size": 2**25,
    "batch_size_bytes": 2**22,
    "batch_readahead": 2,
    "fragment_readahead": 2,
}
# The element types of vectors, by pyarrow's names.
ELEMENTS = ("halffloat", "float", "double", "uint8")
SCORES = ("_distance", "_score", "_relevance_score")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSearch:
    vectors: Sequence[Sequence[float]]
    # The client asked for several result sets, even if it sent one vector.
    batch: bool = False
    column: str | None = None
    metric: str | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    # Parameters that Lance knows by the same names.
    tuning: Mapping[str, int] = field(default_factory=dict)
    use_index: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    columns: list[str] | dict[str, str] | None = None
    filter: str | None = None
    prefilter: bool = False
    k: int | None = None
    offset: int = 0
    vector: VectorSearch | None = None
    text: TextSearch | None = None
    fast_search: bool = False
    with_row_id: bool = False
    # Each a column's path, whether ascending, and whether nulls come first.
    order_by: Sequence[tuple[str, bool, bool]] = ()
    # So many rows at random, and a number that they follow from.
    sample: tuple[int, int] | None = None


def search(dataset: "lance.LanceDataset", query: Query) -> "pa.RecordBatchReader | pa.Table":
    """Run a checked query; yields rows as they are found, a few at a time."""
    if query.vector is not None and query.text is not None:
        return _fuse(dataset, query).to_reader()
    if query.sample is not None:
        return _sample(dataset, query, *query.sample)
    if (first := _take_first(dataset, query)) is not None:
        return first
    reader = _scan(dataset, query).to_reader()
    if query.order_by and not query.with_row_id:
        return ordering.drop_row_ids(reader)
    if query.vector is not None and query.offset and "query_index" in reader.schema.names:
        return pa.RecordBatchReader.from_batches(reader.schema, _skip_of_each(reader, query.offset))
    return reader


def count(dataset: "lance.LanceDataset", predicate: str | None) -> int:
    """The number of rows, or of those that match a predicate."""
    return int(dataset.count_rows(predicate))


def explain(dataset: "lance.LanceDataset", query: Query, verbose: bool) -> str:
    """How Lance would run a query; verbosely, also the result's schema."""

    def show(scanner: "lance.LanceScanner") -> str:
        # Lance's own verbose form says no more.
        schema = f"\nOutput:\n{scanner.projected_schema}\n" if verbose else ""
        return scanner.explain_plan(verbose) + schema

    return _each_plan(dataset, query, show)


def analyze(dataset: "lance.LanceDataset", query: Query) -> str:
    """Run a query, and report how it went."""
    return _each_plan(dataset, query, lambda scanner: scanner.analyze_plan())


def check_query(query: Query) -> None:
    """Refuse queries that no table could answer."""
    if query.sample is not None:
        _check_sample(query)
    if query.vector is not None:
        check_vectors(len(query.vector.vectors))
    if query.vector is not None and query.k is None:
        raise InvalidRequest("k is missing", detail="say how many nearest rows to return")
    if query.order_by and query.vector is not None and (query.text or query.vector.batch):
        raise InvalidRequest(
            "order_by cannot be combined with several rankings",
            detail="send one query per vector, or search by vector or text alone",
        )
    if query.vector is not None and query.text is not None:
        if query.vector.batch:
            raise InvalidRequest(
                "several query vectors cannot be combined with full_text_query",
                detail="send one query per vector",
            )
        if _most(query) > MAX_FUSED:
            raise InvalidRequest(
                f"k + offset is {_most(query)}; a search by vector and text ranks {MAX_FUSED}",
                detail="ask for fewer rows",
            )


def _check_sample(query: Query) -> None:
    others = (query.vector, query.text, query.order_by, query.offset)
    if any(others) or query.k is not None:
        raise InvalidRequest(
            "sample cannot be combined with a search, an order, a limit or an offset",
            detail="send it with columns and a filter only",
        )


def _sample(dataset: "lance.LanceDataset", query: Query, rows: int, seed: int) -> "pa.Table":
    chosen = ordering.sample_ids(dataset, query.filter, rows, seed)
    found = _fetch(dataset, query, chosen)
    if query.with_row_id:
        found = found.append_column("_rowid", pa.array(chosen, pa.uint64()))
    return found


def _scan(dataset: "lance.LanceDataset", query: Query) -> "lance.LanceScanner":
    scores = [name for name, part in zip(SCORES, (query.vector, query.text), strict=False) if part]
    options: dict[str, Any] = {
        "columns": add_scores(query.columns, scores),
        "filter": query.filter,
        "prefilter": query.prefilter,
        "limit": query.k,
        "offset": query.offset or None,
        "fast_search": query.fast_search,
        "with_row_id": query.with_row_id,
    }
    if query.order_by:
        most = MAX_LIMIT if query.k is None else _most(query)
        options["order_by"] = ordering.to_lance_order(dataset, query.order_by, most)
        # Lance fetches the columns of sorted rows by their ids; `search` drops them.
        options["with_row_id"] = True
    if query.text is not None:
        options["full_text_query"] = fulltext.to_lance(dataset, query.text)
    if query.vector is not None:
        options["nearest"], several = _nearest(dataset, query.vector, _most(query))
        if several:
            # Lance would count the rows of all searches together; `search` does it for each.
            options["limit"], options["offset"] = (0 if query.k == 0 else None), None
    return dataset.scanner(**SCAN, **options)


def _take_first(dataset: "lance.LanceDataset", query: Query) -> "pa.Table | None":
    """The result of a query that only counts rows, if no scan is needed."""
    if query.vector or query.text or query.filter is not None or query.with_row_id:
        return None
    if query.order_by:
        return None
    if query.k is None or isinstance(query.columns, dict):
        return None
    return take_first(dataset, query.columns, query.offset, query.k)


def _nearest(
    dataset: "lance.LanceDataset", vector: VectorSearch, most: int
) -> tuple[dict[str, Any], bool]:
    """The vector search in Lance's form, and whether it is several searches."""
    path, kind = find_vector_column(dataset.schema, vector.column)
    one = _one_vector(kind)
    rows = [_to_elements(path, one, found) for found in vector.vectors]
    k, tuning = max(most, 1), dict(vector.tuning)
    if not is_small(k, len(rows), tuning):
        k, tuning = bound_ranking(dataset.count_rows(), len(rows), k, tuning)
    nearest = {
        "column": path,
        "q": rows if vector.batch else rows[0],
        "k": k,
        "metric": vector.metric,
        "distance_range": None if vector.bounds == (None, None) else vector.bounds,
        "use_index": vector.use_index,
        **tuning,
    }
    return nearest, vector.batch and one == kind


def find_vector_column(schema: "pa.Schema", path: str | None) -> "tuple[str, pa.DataType]":
    """The named column of vectors, or the only one, and its type."""
    columns = dict(_all_columns(schema))
    vectors = {path: kind for path, kind in columns.items() if _is_vector(kind)}
    if path is None:
        if len(vectors) != 1:
            raise InvalidRequest(
                f"the table has {len(vectors)} vector columns: {', '.join(vectors) or 'none'}",
                detail="name one as vector_column" if vectors else "leave vector out",
            )
        return next(iter(vectors.items()))
    plain = path.replace("`", "")
    if plain not in columns:
        raise ColumnNotFound(
            f"the table has no column {path}", detail="describe the table to see its columns"
        )
    if plain not in vectors:
        raise InvalidRequest(
            f"column {path} is {columns[plain]}, not a vector",
            detail=f"vector columns are {', '.join(vectors) or 'none'}",
        )
    return path, vectors[plain]


def _all_columns(fields: Any, prefix: str = "") -> "Iterator[tuple[str, pa.DataType]]":
    for column in fields:
        yield prefix + column.name, column.type
        if pa.types.is_struct(column.type):
            yield from _all_columns(column.type, f"{prefix}{column.name}.")


def _is_vector(kind: "pa.DataType") -> bool:
    one = _one_vector(kind)
    return pa.types.is_fixed_size_list(one) and str(one.value_type) in ELEMENTS


def _one_vector(kind: "pa.DataType") -> "pa.DataType":
    """The type of one vector in a column of vectors, or of lists of them."""
    return kind.value_type if pa.types.is_list(kind) else kind


def _to_elements(path: str, kind: "pa.DataType", vector: Sequence[float]) -> list[Any]:
    if len(vector) != kind.list_size:
        raise InvalidRequest(
            f"the query vector has {len(vector)} dimensions, column {path} has {kind.list_size}",
            detail=f"send {kind.list_size} numbers",
        )
    if str(kind.value_type) != "uint8":
        return list(vector)
    if any(not 0 <= number <= 255 or number != int(number) for number in vector):
        raise InvalidRequest(
            f"column {path} holds bytes; the query vector has other numbers",
            detail="send whole numbers from 0 to 255",
        )
    return [int(number) for number in vector]


def _skip_of_each(batches: "Iterable[pa.RecordBatch]", offset: int) -> "Iterator[pa.RecordBatch]":
    """Skip the first rows of each search."""
    seen: Counter[int] = Counter()
    for batch in batches:
        keep = []
        for number in batch.column("query_index").to_pylist():
            seen[number] += 1
            keep.append(seen[number] > offset)
        yield batch.filter(pa.array(keep, pa.bool_()))


def _fuse(dataset: "lance.LanceDataset", query: Query) -> "pa.Table":
    assert query.k is not None
    by_vector = _rank(dataset, replace(query, text=None), "_distance")
    by_text = _rank(dataset, replace(query, vector=None), "_score")
    relevance: dict[int, float] = {}
    for ranked in (by_vector, by_text):
        for rank, row in enumerate(ranked, 1):
            relevance[row] = relevance.get(row, 0.0) + 1 / (RANK_CONSTANT + rank)
    # Python's sort is stable: ties keep the order of the vector search.
    best = sorted(relevance, key=lambda row: -relevance[row])[query.offset :][: query.k]
    found = _fetch(dataset, query, best)
    for name, score in zip(SCORES, (by_vector, by_text, relevance), strict=True):
        found = found.append_column(name, pa.array(map(score.get, best), pa.float32()))
    if query.with_row_id:
        found = found.append_column("_rowid", pa.array(best, pa.uint64()))
    return found


def _rank(dataset: "lance.LanceDataset", query: Query, score: str) -> dict[int, float]:
    """The rows that one search finds, best first, with their scores."""
    alone = replace(query, columns=[], k=_most(query), offset=0, with_row_id=True)
    found = _scan(dataset, alone).to_table()
    return dict(zip(found["_rowid"].to_pylist(), found[score].to_pylist(), strict=True))


def _fetch(dataset: "lance.LanceDataset", query: Query, rows: list[int]) -> "pa.Table":
    """These rows in this order, with the query's columns."""
    columns = query.columns
    if isinstance(columns, list):
        columns = [name for name in columns if name not in (*SCORES, "_rowid")]
    wanted = ",".join(map(str, rows)) or "NULL"
    found = dataset.to_table(columns=columns, filter=f"_rowid IN ({wanted})", with_row_id=True)
    places = {row: place for place, row in enumerate(found["_rowid"].to_pylist())}
    return found.drop_columns(["_rowid"]).take(pa.array([places[row] for row in rows], pa.int64()))


def _each_plan(
    dataset: "lance.LanceDataset", query: Query, show: "Callable[[lance.LanceScanner], str]"
) -> str:
    if query.vector is None or query.text is None:
        return show(_scan(dataset, query))
    alone = replace(query, k=_most(query), offset=0)
    by_vector = show(_scan(dataset, replace(alone, text=None)))
    by_text = show(_scan(dataset, replace(alone, vector=None)))
    return f"Vector search:\n{by_vector}\nText search:\n{by_text}"


def _most(query: Query) -> int:
    """How many rows a ranking needs: k plus the offset."""
    return min((query.k or 0) + query.offset, MAX_LIMIT)
