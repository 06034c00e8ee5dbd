"""What Spark must not bring into a runner's process: anything that runs when it is read.

A function may write whatever it likes where its worker writes to Spark. So PySpark's ways to the
driver that end in a pickle, or in a name that is imported, are closed before the first job.
"""

import threading
from typing import Any, NoReturn

from penstock.errors import InvalidRequest


def seal_classic(context: Any) -> None:
    """Take the accumulators from a context; its workers' updates then go nowhere.

    Their server unpickles what a task sends with its end, and what anybody writes to its socket.
    """
    server, context._accumulatorServer = context._accumulatorServer, None
    # What functions are wrapped with from now on, by which the JVM would pass updates on.
    context._javaAccumulator = None
    # It looks only twice a second whether it is to end; nobody has a word for it meanwhile.
    closing = threading.Thread(target=server.shutdown, name="accumulators", daemon=True)
    closing.start()
    seal_types()
    closing.join()


def seal_connect() -> None:
    """Have nothing taken from the accumulators of a Spark Connect server but plain values."""
    from pyspark import accumulators

    # The profiler's statistics, which are let through, open whatever file they name.
    accumulators.specialAccumulatorSer.allowed_names = ()
    seal_types()


def seal_types() -> None:
    """Have no type imported by the name that a schema gives; the text of a query can hold one."""
    from pyspark.sql import types

    kinds: Any = types.UserDefinedType
    kinds.fromJson = classmethod(_refuse_type)


def _refuse_type(_: type, json: dict[str, Any]) -> NoReturn:
    raise InvalidRequest(f"the query has a column of the type {str(json.get('pyClass'))[:100]!r}")
