"""Published clients, unmodified, with keys, with OAuth and with tokens of an issuer."""

import uuid
from dataclasses import dataclass
from typing import Any

import lance_namespace_urllib3_client
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import DescribeTableRequest, ListTablesRequest
from lance_namespace.errors import (
    PermissionDeniedError,
    TableNotFoundError,
    UnauthenticatedError,
)
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, OAuthError, UnauthorizedError

import penstock
from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Issuer

generated: Any = lance_namespace_urllib3_client


@dataclass
class Place:
    """A namespace with a table and a view, and the keys of a writer and a reader of it."""

    gate: GuardedServer
    ns: str
    writer: str
    reader: str


@pytest.fixture(scope="module")
def place(gate: GuardedServer) -> Place:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    send(admin, f"/v1/table/{ns}$t/create", people(1, 2)).raise_for_status()
    views.create(ns, "v").send(admin).raise_for_status()
    keys = {}
    for role in ("owner", "reader"):
        name = f"p{uuid.uuid4().hex[:8]}"
        gate.grant(name, role, "namespace", ns)
        keys[role] = gate.key(name)
    return Place(gate, ns, keys["owner"], keys["reader"])


def test_the_sdk_with_a_key(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    url, name = place.gate.server.url, f"{place.ns}.t"
    with penstock.connect(url, api_key=place.reader) as lake:
        table = lake.table(name)
        assert len(table) == table.to_lance().count_rows() == 2
        assert lake.lancedb().open_table("t", namespace_path=[place.ns]).count_rows() == 2
        assert lake.iceberg_catalog().list_views(place.ns) == [(place.ns, "v")]
        with pytest.raises(penstock.errors.Forbidden, match="write"):
            table.delete("id = 1")
    with (
        penstock.connect(url, api_key="nobody's") as lake,
        pytest.raises(penstock.errors.NotAuthenticated),
    ):
        lake.table(name)
    monkeypatch.setenv("PENSTOCK_API_KEY", place.writer)
    with penstock.connect(url) as lake:
        assert lake.create_table(f"{place.ns}.mine", {"id": [1]}).append([{"id": 2}]).version == 2


@pytest.mark.parametrize("scheme", ["x-api-key", "Authorization"])
def test_pylance_with_a_key(place: Place, scheme: str) -> None:
    def connect(key: str) -> Any:
        value = key if scheme == "x-api-key" else f"Bearer {key}"
        make: Any = RestNamespace
        return make(uri=place.gate.server.url, **{f"header.{scheme}": value})

    request = DescribeTableRequest(id=[place.ns, "t"])
    assert connect(place.reader).describe_table(request).location
    tables = connect(place.reader).list_tables(ListTablesRequest(id=[place.ns])).tables
    assert "t" in tables
    with pytest.raises(UnauthenticatedError):
        connect("pstk_wrong").describe_table(request)
    with pytest.raises(TableNotFoundError):
        connect(place.reader).describe_table(DescribeTableRequest(id=[place.ns, "no"]))


def test_the_generated_client_with_a_key_and_with_a_token(place: Place) -> None:
    token = place.gate.client_token(place.reader)
    for given in ({"api_key": {"ApiKeyAuth": place.reader}}, {"access_token": token}):
        configuration = generated.Configuration(host=place.gate.server.url, **given)
        api = generated.TableApi(generated.ApiClient(configuration))
        found = api.describe_table(f"{place.ns}$t", generated.models.DescribeTableRequest())
        assert found.location
        with pytest.raises(generated.exceptions.ForbiddenException):
            api.drop_table(f"{place.ns}$t")
    api = generated.TableApi(generated.ApiClient(generated.Configuration(place.gate.server.url)))
    identity = generated.models.Identity(api_key=place.reader)
    request = generated.models.DescribeTableRequest(identity=identity)
    assert api.describe_table(f"{place.ns}$t", request).location
    with pytest.raises(generated.exceptions.UnauthorizedException):
        api.describe_table(f"{place.ns}$t", generated.models.DescribeTableRequest())


def test_lancedb_with_a_key(place: Place) -> None:
    def connect(key: str) -> Any:
        options = {"uri": place.gate.server.url, "header.x-api-key": key}
        return lancedb.connect_namespace("rest", options)

    name = f"t{uuid.uuid4().hex[:8]}"
    rows = pa.table({"id": [1, 2]})
    connect(place.writer).create_table(name, rows, namespace_path=[place.ns]).add(rows)
    assert connect(place.reader).open_table(name, namespace_path=[place.ns]).count_rows() == 4
    with pytest.raises((PermissionDeniedError, RuntimeError, ValueError)):
        connect(place.reader).drop_table(name, namespace_path=[place.ns])
    assert connect(place.reader).open_table(name, namespace_path=[place.ns]).count_rows() == 4


def test_lancedb_s_remote_client_with_a_key(place: Place) -> None:
    def connect(key: str) -> Any:
        return lancedb.connect("db://penstock", api_key=key, host_override=place.gate.server.url)

    opened = connect(place.reader).open_table("t", namespace_path=[place.ns])
    assert opened.count_rows() == 2
    with pytest.raises(Exception, match=r"403|lacks writer"):
        opened.delete("id = 1")
    with pytest.raises(Exception, match=r"401|not"):
        connect("pstk_wrong").open_table("t", namespace_path=[place.ns])


def iceberg(place: Place, **more: str) -> RestCatalog:
    return RestCatalog("penstock", uri=f"{place.gate.server.url}/iceberg", **more)


def test_pyiceberg_with_oauth_a_key_and_a_token_of_an_issuer(place: Place, issuer: Issuer) -> None:
    place.gate.grant("oidc:ann", "reader", "namespace", place.ns)
    for more in (
        {"credential": f"{place.reader.split('_')[1]}:{place.reader}"},
        {"credential": place.reader},
        {"token": place.reader},
        {"token": place.gate.client_token(place.reader)},
        {"token": issuer.sign()},
    ):
        catalog = iceberg(place, **more)
        assert catalog.list_namespaces() == [(place.ns,)]
        assert catalog.list_views(place.ns) == [(place.ns, "v")]
        assert catalog.view_exists((place.ns, "v"))
        with pytest.raises(ForbiddenError):
            catalog.drop_view((place.ns, "v"))
        with pytest.raises(NoSuchNamespaceError):
            catalog.load_namespace_properties("elsewhere")
        catalog.close()


def test_pyiceberg_without_the_right_credentials(place: Place) -> None:
    with pytest.raises((OAuthError, UnauthorizedError)):
        iceberg(place, credential="id:pstk_wrong")
    with pytest.raises(UnauthorizedError):
        iceberg(place, token="wrong").list_namespaces()


def test_pyiceberg_goes_on_when_its_token_has_ended(place: Place) -> None:
    from penstock.catalog.access import tokens

    catalog = iceberg(place, credential=place.reader)
    assert catalog.list_namespaces() == [(place.ns,)]
    place.gate.work(tokens.rotate_signing_keys)
    assert catalog.list_namespaces() == [(place.ns,)]
    catalog.close()
