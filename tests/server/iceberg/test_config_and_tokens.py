"""What a client asks first: the configuration of the catalog, and a token."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.harness.clients.iceberg import Answer, Iceberg
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

CLIENT = {"grant_type": "client_credentials", "client_id": "id", "client_secret": "secret"}
EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token": "old",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
}


def ask_config(client: Iceberg, query: str = "") -> Answer:
    return client.send("GET", f"/iceberg/v1/config{query}")


def ask_token(client: Iceberg, form: dict[str, str], **headers: str) -> Answer:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(form).encode()
    return client.send("POST", "/iceberg/v1/oauth/tokens", body, {**kind, **headers})


def test_the_configuration_tells_prefix_separator_and_lifetime(iceberg: Iceberg) -> None:
    config = ask_config(iceberg).ok()
    assert isinstance(config["defaults"], dict)
    assert config["overrides"]["prefix"] == "penstock"
    assert config["overrides"].get("namespace-separator", "%1F") == "%1F"
    assert config["idempotency-key-lifetime"] in ("PT30M", "PT1800S")


def test_each_endpoint_is_a_verb_and_a_path(iceberg: Iceberg) -> None:
    endpoints = ask_config(iceberg).ok()["endpoints"]
    shape = re.compile(r"(GET|HEAD|POST|DELETE) /v1/\{prefix\}/[a-z{}/-]+")
    assert [each for each in endpoints if not shape.fullmatch(each)] == []
    assert len(set(endpoints)) == len(endpoints)


@pytest.mark.parametrize(
    "endpoint",
    [
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces",
        "GET /v1/{prefix}/namespaces/{namespace}",
        "HEAD /v1/{prefix}/namespaces/{namespace}",
        "DELETE /v1/{prefix}/namespaces/{namespace}",
        "POST /v1/{prefix}/namespaces/{namespace}/properties",
        "GET /v1/{prefix}/namespaces/{namespace}/views",
        "POST /v1/{prefix}/namespaces/{namespace}/views",
        "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "POST /v1/{prefix}/views/rename",
        "POST /v1/{prefix}/namespaces/{namespace}/register-view",
    ],
)
def test_clients_are_told_of_each_route_of_views(iceberg: Iceberg, endpoint: str) -> None:
    assert endpoint in ask_config(iceberg).ok()["endpoints"]


def test_clients_are_told_of_all_routes_of_tables_and_of_nothing_else(iceberg: Iceberg) -> None:
    endpoints = ask_config(iceberg).ok()["endpoints"]
    of_tables = [each for each in endpoints if "tables" in each or "transactions" in each]
    names = "/v1/{prefix}/namespaces/{namespace}/tables"
    table = f"{names}/{{table}}"
    assert sorted(of_tables) == sorted(
        [
            *(f"GET {names}", f"POST {names}", f"GET {table}", f"HEAD {table}", f"POST {table}"),
            *(f"DELETE {table}", f"POST {table}/unregister", f"GET {table}/credentials"),
            *(f"POST {table}/metrics", "POST /v1/{prefix}/tables/rename"),
            "POST /v1/{prefix}/transactions/commit",
        ]
    )
    assert "POST /v1/{prefix}/namespaces/{namespace}/register" in endpoints
    assert not [each for each in endpoints if "/plan" in each or "/sign" in each]


def test_the_warehouse_has_a_name_and_a_place(iceberg: Iceberg) -> None:
    place = iceberg.server.lake.resolve()
    for warehouse in ("", "penstock", str(place), place.as_uri()):
        assert ask_config(iceberg, f"?{urlencode({'warehouse': warehouse})}").status == 200


def test_an_unknown_warehouse_is_not_found(iceberg: Iceberg) -> None:
    answer = ask_config(iceberg, "?warehouse=elsewhere")
    answer.refused(404, "NoSuchWarehouseException", "Warehouse does not exist: elsewhere")


def test_paths_work_without_the_prefix(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace()
    assert iceberg.send("GET", f"/iceberg/v1/{ns.path}").ok() == ns.load().ok()


def test_the_warehouse_may_be_called_otherwise(tmp_path: Path) -> None:
    environ = {"PENSTOCK__ICEBERG__WAREHOUSE": "mine"}
    with servers.running(tmp_path, environ=environ) as server:
        client = Iceberg(server, prefix="mine")
        assert ask_config(client, "?warehouse=mine").ok()["overrides"]["prefix"] == "mine"
        ask_config(client, "?warehouse=penstock").refused(404, "NoSuchWarehouseException")
        assert client.new_namespace().create_view().exists()


def test_another_prefix_is_not_found(server: Server) -> None:
    Iceberg(server, prefix="elsewhere").get("namespaces").refused(404, "NoSuchEndpointException")


@pytest.mark.parametrize("form", [CLIENT, {**CLIENT, "scope": "catalog"}, EXCHANGE])
def test_a_client_gets_a_token(iceberg: Iceberg, form: dict[str, str]) -> None:
    token = ask_token(iceberg, form).ok()
    assert token["access_token"]
    assert token["token_type"].lower() == "bearer"
    assert token["expires_in"] > 0
    assert token["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"


def test_a_client_may_send_its_secret_in_a_header(iceberg: Iceberg) -> None:
    form = {"grant_type": "client_credentials"}
    assert ask_token(iceberg, form, Authorization="Basic aWQ6c2VjcmV0").ok()["access_token"]


def test_a_token_is_accepted_everywhere(iceberg: Iceberg) -> None:
    token = ask_token(iceberg, CLIENT).ok()["access_token"]
    answer = iceberg.ask("GET", "namespaces", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 200


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": "client_credentials"}, "invalid_request"),
        ({"grant_type": "password", "username": "a"}, "unsupported_grant_type"),
        ({"grant_type": EXCHANGE["grant_type"]}, "invalid_request"),
    ],
)
def test_a_refused_token_is_told_as_oauth_does(
    iceberg: Iceberg, form: dict[str, str], error: str
) -> None:
    answer = ask_token(iceberg, form)
    assert answer.status == 400
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.json()["error"] == error


def test_a_token_must_not_be_kept_by_caches(iceberg: Iceberg) -> None:
    # RFC 6749, section 5.1.
    answer = ask_token(iceberg, CLIENT)
    assert answer.headers["cache-control"] == "no-store"
