"""Filters that are applied to a table before Spark reads it: only those that change nothing."""

import pytest

from tests.harness.views.definitions import make

JOIN = "SELECT d.id FROM docs d {} JOIN other o ON d.id = o.id WHERE d.id > 1 AND o.id < 9"


def pushed(sql: str) -> dict[str, str | None]:
    return {source.table[-1]: source.filter for source in make(sql).sources}


def test_each_table_of_a_join_has_its_own_filter() -> None:
    assert pushed(JOIN.format("")) == {"docs": "(`id` > 1)", "other": "(`id` < 9)"}
    assert pushed(JOIN.format("INNER")) == pushed(JOIN.format(""))
    comma = "SELECT d.id FROM docs d, other o WHERE d.id = o.id AND d.id > 1"
    assert pushed(comma) == {"docs": "(`id` > 1)", "other": None}


def test_conditions_of_one_table_hold_together() -> None:
    sql = (
        "SELECT DISTINCT id FROM docs WHERE id > 1 AND name LIKE 'a%' AND price > 1 AND id + 1 > 2"
    )
    assert pushed(sql) == {"docs": "(`id` > 1) AND (`Name` LIKE 'a%')"}
    assert pushed("SELECT DISTINCT id FROM docs WHERE id = 1 OR id = 5") == {
        "docs": "((`id` = 1) OR (`id` = 5))"
    }


@pytest.mark.parametrize(
    ("kind", "docs"), [("LEFT", "(`id` > 1)"), ("RIGHT", None), ("FULL", None)]
)
def test_a_side_that_is_filled_up_with_nulls_is_read_as_a_whole(
    kind: str, docs: str | None
) -> None:
    assert pushed(JOIN.format(kind)) == {"docs": docs, "other": None}


def test_a_match_that_a_left_join_may_lack_is_never_filtered() -> None:
    # Finding touched keys counts any changed row of that side as a match (`_find_lone`).
    inner = "(SELECT id, label FROM other WHERE label > 'a')"
    for side in ("other", inner):
        sql = f"SELECT d.id FROM docs d LEFT JOIN {side} o ON o.id = d.id WHERE o.label > 'a'"
        assert pushed(sql)["other"] is None
    both = (
        f"SELECT d.id FROM docs d JOIN {inner} p ON p.id = d.id LEFT JOIN {inner} o ON o.id = d.id"
    )
    assert pushed(both)["other"] is None


def test_inside_of_subqueries_and_unions_too() -> None:
    inner = "SELECT id FROM (SELECT DISTINCT id FROM docs WHERE id > 1) q WHERE id < 5"
    assert pushed(inner) == {"docs": "(`id` > 1)"}
    merged = "SELECT DISTINCT id FROM (SELECT id FROM docs WHERE id > 1) q WHERE id < 5"
    assert pushed(merged) == {"docs": "(`id` > 1) AND (`id` < 5)"}
    both = "SELECT id FROM docs WHERE id > 1 UNION ALL SELECT id FROM other WHERE id > 2"
    assert pushed(both) == {"docs": "(`id` > 1)", "other": "(`id` > 2)"}
    cte = (
        "WITH c AS (SELECT id FROM docs WHERE id > 1) SELECT a.id FROM c a JOIN c b ON a.id = b.id"
    )
    assert pushed(cte) == {"docs": "(`id` > 1)"}
    exists = (
        "SELECT id FROM docs d WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = d.id AND o.id > 3)"
    )
    assert pushed(exists) == {"docs": None, "other": "(`id` > 3)"}


@pytest.mark.parametrize(
    "sql",
    [
        # It is read twice, once without the filter.
        "SELECT id FROM docs WHERE id > 1 UNION ALL SELECT id FROM docs",
        "SELECT a.id FROM docs a JOIN docs b ON a.id = b.id WHERE a.id > 1",
        # It is on the side of a join within another one that is filled up with nulls.
        "SELECT o.id FROM other o JOIN (other p LEFT JOIN docs d ON p.id = d.id) ON o.id = p.id "
        "WHERE d.id IS NULL",
        # Only Spark knows what it means.
        "SELECT DISTINCT id FROM docs WHERE price > 1",
        "SELECT DISTINCT id FROM docs WHERE upper(name) = 'A'",
        # It is about what comes after the rows.
        "SELECT name, max(id) AS m FROM docs d GROUP BY name HAVING max(id) > 1 ORDER BY m LIMIT 1",
        "SELECT id FROM docs LEFT ANTI JOIN other o ON docs.id = o.id AND docs.id > 1",
    ],
)
def test_other_conditions_are_left_to_spark(sql: str) -> None:
    assert pushed(sql)["docs"] is None
