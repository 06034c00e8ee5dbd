"""The config route, which clients call first: the routes there are, and the separator of names."""

from penstock.errors import WarehouseNotFound
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.replies import json_reply
from penstock.server.transport.http import Reply


async def get(call: Call) -> Reply:
    _check_warehouse(call)
    return json_reply(
        {
            "defaults": {"warehouse": call.warehouse},
            "overrides": {"prefix": call.warehouse, "namespace-separator": "%1F"},
            "endpoints": call.endpoints,
            "idempotency-key-lifetime": f"PT{call.catalog.idempotency_seconds}S",
        }
    )


def _check_warehouse(call: Call) -> None:
    wanted = call.text("warehouse")
    lake = call.catalog.lake
    known = (None, "", call.warehouse, lake.root, lake.place(lake.root).uri)
    if wanted not in known:
        raise WarehouseNotFound(
            f"Warehouse does not exist: {wanted}", detail=f"this server has {call.warehouse}"
        )
