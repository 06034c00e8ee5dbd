"""Kinds of Lance operations: one that reads, one that changes, and a runner's report."""

import msgspec

from penstock.server.access.rules import Rule
from penstock.server.lance.call import Call
from penstock.server.operation import CHANGES, READS, REPORTS, Handler, Operation, Recover
from penstock.server.transport.http import Reply

# A handler's result is sent as JSON, None as an empty body, and a Reply as it is.
Result = msgspec.Struct | Reply | None
LanceOperation = Operation[Call, Result]


def reads(
    name: str,
    path: str,
    handler: Handler[Call, Result],
    needs: Rule[Call],
    *,
    method: str = "POST",
    also: str = "",
    work: str = "",
    for_runners: bool = False,
) -> LanceOperation:
    return Operation(
        name,
        method,
        path,
        handler,
        effect=READS,
        needs=needs,
        also=also,
        work=work,
        for_runners=for_runners,
    )


def changes(
    name: str,
    path: str,
    handler: Handler[Call, Result],
    needs: Rule[Call],
    *,
    work: str = "",
    for_runners: bool = False,
    is_for_ledger: bool = False,
    recover: Recover[Call] | None = None,
) -> LanceOperation:
    return Operation(
        name,
        "POST",
        path,
        handler,
        effect=CHANGES,
        needs=needs,
        work=work,
        for_runners=for_runners,
        is_for_ledger=is_for_ledger,
        recover=recover,
    )


def reports(
    name: str, path: str, handler: Handler[Call, Result], needs: Rule[Call], *, work: str = ""
) -> LanceOperation:
    return Operation(
        name, "POST", path, handler, effect=REPORTS, needs=needs, work=work, for_runners=True
    )
