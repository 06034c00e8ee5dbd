"""The modules of pyspark, loaded by the first job; a server that explains jobs never has them."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    import pyspark
    from pyspark import accumulators, java_gateway, resource
    from pyspark.sql import session as classic_session
    from pyspark.sql import types
    from pyspark.sql.classic import dataframe
    from pyspark.sql.connect import functions
    from pyspark.sql.connect import session as connect_session
else:
    accumulators = LateModule("pyspark.accumulators")
    classic_session = LateModule("pyspark.sql.session")
    connect_session = LateModule("pyspark.sql.connect.session")
    dataframe = LateModule("pyspark.sql.classic.dataframe")
    functions = LateModule("pyspark.sql.connect.functions")
    java_gateway = LateModule("pyspark.java_gateway")
    pyspark = LateModule("pyspark")
    resource = LateModule("pyspark.resource")
    types = LateModule("pyspark.sql.types")

__all__ = [
    "accumulators",
    "classic_session",
    "connect_session",
    "dataframe",
    "functions",
    "java_gateway",
    "pyspark",
    "resource",
    "types",
]
