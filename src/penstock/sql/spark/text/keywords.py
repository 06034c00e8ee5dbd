"""The words of Spark's grammar: all of them, and those that a view's query may have.

Any other word is a name to Spark, whatever stands around it.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# From the function sql_keywords() of Spark 4.3, and four that have two spellings; without X, which
# is part of a binary, or a name. A test compares them.
KEYWORDS = _words(
    """
    add after aggregate align all alter always analyze and anti any any_value apply approx
    archive array as asc asensitive asof at atomic authorization auto begin bernoulli between
    bigint bin binary binding bin_distribute_ratio bin_end bin_start boolean both bucket buckets
    by byte cache call called cascade case cast catalog catalogs cdc change changes char
    character check clear close cluster clustered codegen collate collation collations
    collection column columns comment commit compact compactions compensation compute
    concatenate condition constraint contains continue cost create cross cube current
    current_database current_date current_path current_schema current_time current_timestamp
    current_user cursor data database databases date dateadd datediff date_add date_diff day
    dayofyear days dbproperties dec decimal declare default default_path defined definer delay
    delete delimited desc describe deterministic dfs directories directory distance distinct
    distribute div do double drop else elseif end enforced error escape escaped evolution exact
    except exchange exclude exclusive execute exists exit explain export extend extended
    external extract false fetch fields fileformat filter first float flow following for foreign
    format formatted found from full function functions generated geography geometry global
    grant group grouping handler having history hour hours identified identifier identity if
    ignore ilike immediate import in include inclusive increment index indexes inner inpath
    input inputformat insensitive insert int integer intersect interval into invoker is items
    iterate join json json_table key keys language last lateral lazy leading leave left level
    like limit lines list load local localtime location lock locks logical long loop macro map
    matched match_condition materialized max measure merge metrics microsecond microseconds
    millisecond milliseconds minus minute minutes modifies month months msck name namespace
    namespaces nanosecond nanoseconds natural nearest next no none norely not null nulls numeric
    of offset on only open option options or order ordinality out outer outputformat over
    overlaps overlay overwrite partition partitioned partitions path percent pivot placing
    position preceding primary principals procedure procedures properties purge qualify quarter
    query range read reads real recordreader recordwriter recover recursion recursive reduce
    references refresh rely regexp rename repair repeat repeatable replace reset respect restrict
    return returns revoke right role roles rollback rollup row rows scd schema schemas second
    seconds security select semi separated sequence serde serdeproperties session_user set sets
    short show similarity single skewed smallint some sort sorted source specific sql
    sqlexception sqlstate start statistics stored stratify stream streaming string struct substr
    substring sync system system_path system_time system_version table tables tablesample target
    tblproperties terminated then time timediff timestamp timestampadd timestampdiff
    timestamp_ltz timestamp_ntz tinyint to touch track trailing transaction transactions
    transform trim true truncate try_cast type unarchive unbounded uncache uniform union unique
    unknown unlock unnest unpivot unset until update use user using value values var varchar
    variable variant version view views void watermark week weeks when where while width window
    rlike temp temporary with within without year years zone
    """
)
# Words of the clauses and expressions of a query.
USED = _words(
    """
    all and any anti as asc at between both by case cast collate cross cube current desc distinct
    distribute div else end escape except exists extract false filter first following for from full
    group grouping having ignore ilike in inner intersect interval is join last lateral leading
    left like limit minus natural not null nulls offset on or order outer over overlay partition
    placing position preceding qualify range recursive regexp respect right rlike rollup row rows
    select semi sets some sort cluster substr substring then to trailing trim true try_cast
    unbounded union unknown using values view when where window with within zone
    """
)
# Names of types, and units of time.
TYPES = _words(
    """
    array bigint binary boolean byte char character date dec decimal double float geography geometry
    int integer interval long map numeric real short smallint string struct time timestamp
    timestamp_ltz timestamp_ntz tinyint varchar variant void
    """
)
UNITS = _words(
    """
    year years quarter month months week weeks day days dayofyear hour hours minute minutes second
    seconds millisecond milliseconds microsecond microseconds nanosecond nanoseconds
    """
)
ALLOWED = USED | TYPES | UNITS
# Words of the grammar that may precede a bracket without calling anything.
BEFORE_BRACKET = _words(
    """
    all and any as between by case cube distinct div else except exists filter from group having
    in intersect is join lateral like ilike minus not on or over qualify rlike rollup select sets
    some then union using values when where array map struct char character varchar dec decimal
    numeric timestamp time interval row rows grouping limit regexp
    """
)
