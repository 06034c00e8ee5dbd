"""What PySpark and Py4J log about themselves stays out of the runner's log."""

import logging
import warnings


class _NotPy4J(logging.Filter):
    """Some of Py4J's lines come from the root logger, so only their place gives them away."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname


def hush_spark() -> None:
    """Keep quiet what is either of no use or told by our own errors."""
    for name in ("py4j", "pyspark", "grpc", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Spark's JVM is started by fork and exec, which does Lance no harm.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_NotPy4J())
