"""How late a view was, told from its refreshes."""

import time
from typing import Any

from tests.harness.data.tables import code
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import make_view


def told(view: Any) -> dict[str, Any]:
    answer = view.ask("refreshes", {})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_view_that_was_never_refreshed_has_no_points(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    assert told(view) == {"refreshes": [], "points": []}
    view.request()
    found = told(view)
    assert ([each["state"] for each in found["refreshes"]], found["points"]) == (["QUEUED"], [])


def test_lateness_falls_with_a_refresh_and_rises_from_the_first_change_that_is_missed(
    server: Server, cluster: str
) -> None:
    view = make_view(server, cluster)
    view.request()
    view.work()
    time.sleep(0.05)
    view.insert()
    time.sleep(0.05)
    view.insert()
    view.request()
    view.work()
    found = told(view)
    assert [each["state"] for each in found["refreshes"]] == ["SUCCEEDED", "SUCCEEDED"]
    assert found["refreshes"][0]["result"]["rows_inserted"] > 0
    # The first refresh, the first insert, before and after the second refresh, and now.
    first, missed, before, after, now = found["points"]
    assert [each["lag_seconds"] for each in (first, missed, after, now)] == [0] * 4
    assert before["at"] - missed["at"] == round(1000 * before["lag_seconds"]) >= 50
    assert first["at"] < missed["at"] < before["at"] == after["at"] <= now["at"]


def test_what_a_view_misses_now_is_told_in_the_line_its_description_and_the_overview(
    server: Server, cluster: str
) -> None:
    view = make_view(server, cluster)
    view.request()
    view.work()
    view.ask("alter", {"target_lag_seconds": 1, "auto_refresh": True}).raise_for_status()
    view.insert()
    time.sleep(1.1)
    line = told(view)
    assert line["target_lag_seconds"] == 1
    *_, missed, now = line["points"]
    assert missed["lag_seconds"] == 0
    properties = server.post(f"/v1/table/{view.id}/describe").json()["properties"]
    assert properties["penstock.late"] == "true"
    lags = [now["lag_seconds"], float(properties["penstock.lag_seconds"])]
    body = {"days": 90}
    worst = server.post("/v1/overview", body).json()["views"]["worst"]
    [shown] = [each for each in worst if each["id"] == view.id.split("$")]
    assert shown["late"]
    assert all(1 < lag < 60 for lag in [*lags, shown["lag_seconds"]])
    assert lags == sorted(lags)


def test_only_a_materialized_view_has_refreshes(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    assert code(server.post(f"/v1/materialized_view/{view.source}/refreshes"))[0] == 400
    assert code(server.post(f"/v1/materialized_view/{view.id}no/refreshes"))[0] == 404
