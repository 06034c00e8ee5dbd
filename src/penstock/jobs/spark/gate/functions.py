"""The functions that a view's SQL may call on Spark, and why it may not call the others.

The lists that check views when they are created (`penstock.sql`) say what Spark has; what is
refused here is decided here, so that a mistake there opens nothing.
"""

from penstock.sql.spark.functions import KNOWN


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUNS_CODE = "it calls Java code by its name"
READS_FILES = "it takes its schema from a file"
FETCHES = "it fetches whatever address the XML names"
DIFFERS = "its value is another one each time"
TELLS_SESSION = "it tells about the session, the machine or the user that runs the job"
TELLS_FILES = "it tells about files, and the job's tables are none for Spark"
_REASONS = {
    RUNS_CODE: "java_method reflect try_reflect",
    READS_FILES: "from_protobuf to_protobuf",
    FETCHES: """
        xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short
        xpath_string
    """,
    DIFFERS: """
        aes_encrypt curdate current_date current_time current_timestamp localtime localtimestamp
        monotonically_increasing_id now rand randn random randstr shuffle spark_partition_id uniform
        uuid
    """,
    TELLS_SESSION: """
        current_catalog current_database current_path current_schema current_timezone current_user
        measure python_worker_logs session_user user version
    """,
    TELLS_FILES: "input_file_block_length input_file_block_start input_file_name",
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
ALLOWED = KNOWN - REFUSED.keys()

# The argument that holds options, for functions that read or write a format.
OPTIONS_AT = {
    "from_avro": 2,
    "from_csv": 2,
    "from_json": 2,
    "from_xml": 2,
    "schema_of_avro": 1,
    "schema_of_csv": 1,
    "schema_of_json": 1,
    "schema_of_xml": 1,
    "to_csv": 1,
    "to_json": 1,
    "to_xml": 1,
}
# None of these names a file, an address or the place of a schema. In lower case: Spark ignores
# case.
OPTIONS = _words(
    """
    allowbackslashescapinganycharacter allowcomments allownonnumericnumbers
    allownumericleadingzeros allowsinglequotes allowunquotedcontrolchars allowunquotedfieldnames
    arrayelementname attributeprefix charset chartoescapequoteescaping columnnameofcorruptrecord
    columnpruning comment dateformat declaration delimiter dropfieldifallnull emptyvalue
    enabledatetimeparsingfallback enforceschema encoding escape escapequotes excludeattribute
    explodeembeddedarray header ignoreleadingwhitespace ignorenamespace ignorenullfields
    ignoresurroundingspaces ignoretrailingwhitespace indent inferschema infertimestamp
    inputbuffersize linesep locale maxcharspercolumn maxcolumns mode multiline nanvalue negativeinf
    nullvalue positiveinf preferdate prefersdecimal pretty primitivesasstring quote quoteall
    recursivefieldmaxdepth roottag rowtag samplingratio sep singlevariantcolumn sortkeys timeformat
    timestampformat timestampntzformat timezone unescapedquotehandling uselegacyxmlparser
    validatename valuetag wildcardcolname writenonasciicharacterascodepoint
    """
)
