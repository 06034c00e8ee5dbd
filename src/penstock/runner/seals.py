"""Close PySpark's paths by which a worker could run code in the runner's process.

A function may write anything where its worker writes to Spark. So whatever ends in a pickle, or in
the import of a name, is closed before the first job.
"""

import threading
from typing import Any, NoReturn

from penstock.errors import InvalidRequest
from penstock.jobs.spark.doors import accumulators, types


def seal_classic(context: Any) -> None:
    """Close the accumulators of a context; updates from its workers are dropped.

    Their server unpickles what a task sends at its end, and what anyone writes to its socket.
    """
    server, context._accumulatorServer = context._accumulatorServer, None
    # Functions are wrapped with these from now on; the JVM would use them to pass updates on.
    context._javaAccumulator = None
    # It checks only twice a second whether it should stop; nobody sends to it meanwhile.
    closing = threading.Thread(target=server.shutdown, name="accumulators", daemon=True)
    closing.start()
    seal_types()
    closing.join()


def seal_connect() -> None:
    """Accept only plain values from the accumulators of a Spark Connect server."""
    # The profiler's statistics are allowed through, and open whatever file they name.
    accumulators.specialAccumulatorSer.allowed_names = ()
    seal_types()


def seal_types() -> None:
    """Import no type by a name in a schema; the text of a query can hold one."""
    kinds: Any = types.UserDefinedType
    kinds.fromJson = classmethod(_refuse_type)


def _refuse_type(_: type, json: dict[str, Any]) -> NoReturn:
    raise InvalidRequest(f"the query has a column of the type {str(json.get('pyClass'))[:100]!r}")
