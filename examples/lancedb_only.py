"""A lake by LanceDB's own client alone: no import of ours, and one argument that says where.

    penstock serve &
    PENSTOCK_URL=http://127.0.0.1:2333 python examples/lancedb_only.py

A table that is searched, a function that fills a column on Spark and is called again only for the
rows that changed, a view that is kept, one that holds no rows, and a job that is looked at.
"""

import os
from datetime import timedelta
from typing import Any

import lancedb
from lancedb import col, udf
from lancedb.index import FTS

WAIT = timedelta(minutes=5)
NOTES = [
    {"id": 1, "text": "The wheel turns in the stream.", "vector": [1.0, 0.0]},
    {"id": 2, "text": "The gate is shut for the winter.", "vector": [0.0, 1.0]},
    {"id": 3, "text": "Grease the wheel before the flood.", "vector": [0.9, 0.2]},
]


@udf
def count_words(text: str) -> int:
    return len(text.split())


def main() -> None:
    db = lancedb.connect(
        "db://lake",
        api_key=os.environ.get("PENSTOCK_API_KEY", "none"),
        host_override=os.environ.get("PENSTOCK_URL", "http://127.0.0.1:2333"),
    )
    notes = db.create_table("mill_notes", NOTES)
    notes.add([{"id": 4, "text": "Nobody is at the mill.", "vector": [0.5, 0.5]}])

    # Searches by vector, by words and by both.
    (near,) = notes.search([1.0, 0.1]).select(["id"]).limit(1).to_list()
    notes.create_index("text", config=FTS())
    words = notes.search("wheel", query_type="fts").select(["id"]).to_list()
    both = notes.search(query_type="hybrid").vector([0.0, 1.0]).text("gate").limit(1).to_list()
    print("nearest:", near["id"], "with 'wheel':", sorted(row["id"] for row in words))
    assert sorted(row["id"] for row in words) == [1, 3]
    assert both[0]["id"] == 2

    # A function with a name, and a column of it that Spark fills.
    counted = db.create_function(count_words)
    notes.add_columns({"words": counted(text=col("text"))})
    done = notes.refresh_column_async("words").wait(WAIT)
    print("filled:", done.rows_assigned, "rows")
    assert done.rows_assigned == 4

    # Only the row that changed is computed again.
    notes.update(where="id = 2", values={"text": "The gate is open."})
    job = notes.refresh_column_async("words")
    again = job.wait(WAIT)
    print("after an update:", again.rows_assigned, "row")
    assert again.rows_assigned == 1

    # A column of an expression, which needs no function.
    notes.add_columns(computed={"label": "concat('note ', id)"})
    notes.refresh_column_async("label").wait(WAIT)

    # A view that is kept, and brought up to date by what changed in its source.
    long = db.create_materialized_view(
        "long_notes", "mill_notes", select=["id", "words", "label"], where="words > 4"
    )
    print("kept:", [(row["label"], row["words"]) for row in read(long.table)])
    assert [row["id"] for row in read(long.table)] == [1, 3, 4]
    notes.delete("id = 3")
    print("refreshed:", long.refresh())
    assert [row["id"] for row in read(long.table)] == [1, 4]

    # A view that holds no rows: it is planned whenever it is read.
    db.create_view("open_gates", "SELECT id, text FROM mill_notes WHERE text LIKE '%open%'")
    assert [row["id"] for row in read(db.open_table("open_gates"))] == [2]

    # What ran, and how it ended.
    found = db.open_job(job.id)
    print(found.job_type, found.state)
    assert job.id in {each.job_id for each in db.list_jobs()}

    # What is read is dropped after what reads it.
    db.drop_view("open_gates")
    db.drop_materialized_view("long_notes")
    db.drop_table("mill_notes")
    db.drop_function("count_words", version=counted.version)


def read(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.search().to_list()
    return sorted(rows, key=lambda row: row["id"])


if __name__ == "__main__":
    main()
