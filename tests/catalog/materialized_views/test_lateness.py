"""How late a view was, told from its refreshes."""

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


def test_lateness_is_told_before_and_after_each_refresh(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    view.request()
    view.work()
    view.insert()
    view.request()
    view.work()
    found = told(view)
    assert [each["state"] for each in found["refreshes"]] == ["SUCCEEDED", "SUCCEEDED"]
    assert found["refreshes"][0]["result"]["rows_inserted"] > 0
    # After the first, then before and after the second.
    lags = [each["lag_seconds"] for each in found["points"]]
    assert len(lags) == 3
    assert (lags[0], lags[2]) == (0, 0)
    assert lags[1] > 0


def test_only_a_materialized_view_has_refreshes(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    assert code(server.post(f"/v1/materialized_view/{view.source}/refreshes"))[0] == 400
    assert code(server.post(f"/v1/materialized_view/{view.id}no/refreshes"))[0] == 404
