"""Lance's SQL for sqlglot: enough to find the parts of a query and the names in it.

It is DataFusion's; quotes of both kinds hold names. What its expressions mean, Lance itself says.
"""

from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect

LANCE = "lance"


class Lance(Dialect):
    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]
