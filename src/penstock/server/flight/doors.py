"""The modules of grpcio, loaded by a server that listens for Flight."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    import grpc
    from grpc import aio
else:
    grpc = LateModule("grpc")
    aio = LateModule("grpc.aio")

__all__ = ["aio", "grpc"]
