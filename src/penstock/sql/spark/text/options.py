"""Functions with options: some options name a file or an address that Spark would read.

Options are written as map('name', 'value', …), and only names that are known to be harmless pass; a
schema is a string, or the call that infers it from one.
"""

from penstock.sql.spark.text.lexemes import Kind, Lexeme


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAKERS = frozenset(
    f"{way}_{form}"
    for way in ("from", "to", "schema_of")
    for form in ("avro", "csv", "json", "xml")
)
HARMLESS = _words(
    """
    allowbackslashescapinganycharacter allowcomments allownonnumericnumbers
    allownumericleadingzeros allowsinglequotes allowunquotedcontrolchars allowunquotedfieldnames
    arrayelementname attributeprefix avroschema chartoescapequoteescaping
    columnnameofcorruptrecord comment compression dateformat declaration delimiter
    dropfieldifallnull emptyvalue enablestableidentifiersforuniontype encoding charset escape
    escapequotes excludeattribute header ignoreleadingwhitespace ignorenamespace ignorenullfields
    ignoresurroundingspaces ignoretrailingwhitespace indent inferschema infertimestampntz
    linesep locale maxcharspercolumn maxcolumns mode multiline nanvalue negativeinf
    nullvalue positiveinf preferdate pretty primitivesasstring quote quoteall
    recursivefieldmaxdepth rootattributes rootelement rowtag samplingratio sep
    singlevarianttypecolumn stableidentifierprefixforuniontype timestampformat timestampntzformat
    timezone unescapedquotehandling validatename valuetag wildcardcolname
    writenonasciicharacterasunicodesequence
    """
)


def find_wrong_option(lexemes: tuple[Lexeme, ...], n: int) -> str | None:
    """What is wrong with the arguments, after the first, of the call at this place."""
    name = lexemes[n].word
    for argument in _split(lexemes, n + 2)[1:]:
        if len(argument) == 1 and argument[0].kind is Kind.STRING:
            continue
        word = argument[0].word if argument and argument[0].kind is Kind.WORD else ""
        inner = _split(tuple(argument), 2) if len(argument) > 2 else []
        is_whole = sum(map(len, inner)) + max(len(inner) - 1, 0) + 3 == len(argument)
        if word in TAKERS and is_whole:
            # Checked when its own turn comes.
            continue
        texts = [each[0] for each in inner if len(each) == 1 and each[0].kind is Kind.STRING]
        if word != "map" or not is_whole or len(texts) != len(inner):
            return f"options of {name} must be written as map('name', 'value')"
        for key in texts[::2]:
            if key.word not in HARMLESS:
                return f"{name} can't have the option {key.value[:40]} in a view"
    return None


def _split(lexemes: tuple[Lexeme, ...], start: int) -> list[list[Lexeme]]:
    """The arguments of a call whose first one starts here."""
    found: list[list[Lexeme]] = [[]]
    depth = 0
    for n in range(start, len(lexemes)):
        lexeme = lexemes[n]
        sign = lexeme.value if lexeme.kind is Kind.SIGN else ""
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if depth < 0:
            break
        if sign == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(lexeme)
    return found if found != [[]] else []
