"""lancedb's secrets: this catalog only knows their names, and says where values belong."""

from penstock.errors import Unsupported
from penstock.server.lance.call import Call


async def refuse(call: Call) -> None:
    # What the body holds is looked at by nobody.
    raise Unsupported(
        "this catalog keeps no secrets, only the names that functions refer to",
        detail="give the value to the runner: a variable that its setting secrets.variables names, "
        "or a file in its secrets.folder",
    )
