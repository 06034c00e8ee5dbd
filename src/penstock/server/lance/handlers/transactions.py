"""Operations on transactions, including jobs; the last part of the id names one."""

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs, waiting
from penstock.catalog.names import transactions
from penstock.catalog.names.transactions import Action, SetProperty, SetStatus, UnsetProperty
from penstock.errors import InvalidRequest
from penstock.model.jobs import Job
from penstock.server.lance.call import Body, Call, choose


class SetStatusAction(msgspec.Struct):
    status: str


class SetPropertyAction(msgspec.Struct):
    key: str
    value: str
    mode: str | None = None


class UnsetPropertyAction(msgspec.Struct):
    key: str
    mode: str | None = None


class AlterAction(msgspec.Struct, rename="camel"):
    set_status_action: SetStatusAction | None = None
    set_property_action: SetPropertyAction | None = None
    unset_property_action: UnsetPropertyAction | None = None


class AlterTransaction(Body):
    actions: list[AlterAction]


class DescribedTransaction(msgspec.Struct):
    status: str
    properties: dict[str, str]


_alter = msgspec.json.Decoder(AlterTransaction)
_body = msgspec.json.Decoder(Body)


async def describe(call: Call) -> DescribedTransaction:
    call.decode(_body)
    id = _transaction(call)
    if (job := await jobs.find(call.catalog.database, id)) is not None:
        return await _describe_job(call.catalog, job)
    found = await transactions.get(call.catalog.database, id)
    return DescribedTransaction(found.status, found.properties)


async def alter(call: Call) -> DescribedTransaction:
    body = call.decode(_alter)
    if not body.actions:
        raise InvalidRequest("actions is empty", detail="name at least one action")
    actions = [_to_action(action) for action in body.actions]
    id = _transaction(call)
    if await jobs.find(call.catalog.database, id) is not None:
        altered = await jobs.alter(call.catalog, id, actions, call.origin)
        return await _describe_job(call.catalog, altered)
    found = await transactions.alter(call.catalog, id, actions, call.origin)
    return DescribedTransaction(found.status, found.properties)


async def _describe_job(catalog: Catalog, job: Job) -> DescribedTransaction:
    return DescribedTransaction(job.state, await waiting.describe(catalog, job))


def _transaction(call: Call) -> str:
    if not call.id:
        raise InvalidRequest("the id names no transaction", detail="give the transaction's id")
    return call.id[-1]


def _to_action(action: AlterAction) -> Action:
    given = [f for f in action.__struct_fields__ if getattr(action, f) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"an entry of actions has {len(given)} actions",
            detail="set exactly one of setStatusAction, setPropertyAction, unsetPropertyAction",
        )
    if action.set_status_action is not None:
        return SetStatus(
            choose(
                "status",
                action.set_status_action.status,
                tuple(s.lower() for s in transactions.STATUSES),
            ).upper()
        )
    if (wanted := action.set_property_action) is not None:
        mode = choose("mode", wanted.mode, ("overwrite", "fail", "skip"))
        return SetProperty(wanted.key, wanted.value, mode)
    assert action.unset_property_action is not None
    unset = action.unset_property_action
    return UnsetProperty(unset.key, choose("mode", unset.mode, ("skip", "fail")))
