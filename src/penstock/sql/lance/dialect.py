"""Lance's SQL for sqlglot: enough to find the parts of a query and its names.

It is DataFusion's, but quotes of both kinds hold names. The meaning of expressions is left to
Lance.
"""

from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect

LANCE = "lance"


class Lance(Dialect):
    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]
