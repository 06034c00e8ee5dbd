"""The kinds of nodes that a view's plan may have, by the names of Spark's classes.

Anything else is refused, so that a kind that a newer Spark adds has to be reviewed first.
"""


def _words(package: str, text: str) -> frozenset[str]:
    return frozenset(f"catalyst.{package}.{word}" for word in text.split())


# The nodes of a query. Its leaves are neither tables of a catalog nor files.
PLANS = _words(
    "plans.logical",
    """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct EmptyRelation Except
    Expand Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll LocalLimit LocalRelation
    Offset OneRowRelation Pivot Project Range RebalancePartitions Repartition
    RepartitionByExpression ResolvedHint Sort SubqueryAlias Union UnionLoop UnionLoopRef Unpivot
    UnresolvedHint UnresolvedWith View Window WithCTE WithWindowDefinition
    """,
)
PARSED_PLANS = _words(
    "analysis",
    """
    ResolvedInlineTable UnresolvedHaving UnresolvedInlineTable UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
    """,
)
# A job's own frames: our Python that reads Lance, over the numbers of its tasks.
MAP, PYTHON = "catalyst.plans.logical.MapInArrow", "catalyst.expressions.PythonUDF"
# How Spark calls its own Java code; only for functions that are allowed.
INVOKE = "catalyst.expressions.objects.Invoke"
STATIC_INVOKE = "catalyst.expressions.objects.StaticInvoke"
# What Spark's parser makes of a text before names are looked up.
UNRESOLVED = _words(
    "analysis",
    """
    GetColumnByOrdinal GetViewColumnByNameAndOrdinal LazyExpression MultiAlias
    TempResolvedColumn ResolvedStar UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue
    UnresolvedFunction UnresolvedGenerator UnresolvedOrdinal UnresolvedPipeAggregateOrdinal
    UnresolvedStar UnresolvedStarExceptOrReplace
    """,
)
# Depends on a row alone, or on the rows of a group or window.
EXPRESSIONS = _words(
    "expressions",
    """
    Abs Acos Acosh Add AddMonths AesDecrypt Alias And ApproxTopKEstimate ArrayAggregate
    ArrayAppend ArrayBinarySearch ArrayCompact ArrayContains ArrayDistinct ArrayExcept
    ArrayExists ArrayFilter ArrayForAll ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin
    ArrayPosition ArrayPrepend ArrayRemove ArrayRepeat ArraySize ArraySort ArrayTransform
    ArrayUnion ArraysOverlap ArraysZip Ascii Asin Asinh AssertTrue AtLeastNNonNulls Atan Atan2
    Atanh AttributeReference BRound Base32 Base64 Between Bin BinaryPad BinaryPredicate
    BitLength BitmapAndAgg BitmapBitPosition BitmapBucketNumber BitmapConstructAgg BitmapCount
    BitmapOrAgg BitwiseAnd BitwiseCount BitwiseGet BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast
    CastTimestampNTZToLong Cbrt Ceil CheckOverflow CheckOverflowInSum Chr Coalesce Collate
    Collation Collations CommonExpressionDef CommonExpressionRef Concat ConcatWs Contains Conv
    ConvertTimezone Cos Cosh Cot CounterDiff CounterDiffWithStartTime Crc32 CreateArray
    CreateMap CreateNamedStruct Csc CsvToStructs Cube CumeDist CurrentRow$ CurrentTimeZone
    DateAdd DateAddInterval DateAddYMInterval DateDiff DateFormatClass DateFromUnixDate DateSub
    DatetimeSub DayName DayOfMonth DayOfWeek DayOfYear DecimalAddNoOverflowCheck
    DecimalDivideWithOverflowCheck DecimalSubtractNoOverflowCheck Decode DenseRank Divide
    DivideDTInterval DivideInterval DivideYMInterval DropField ElementAt Elt Encode EndsWith
    EqualNull EqualNullSafe EqualTo EulerNumber Exists Exp Explode Expm1 Extract
    ExtractANSIIntervalDays ExtractANSIIntervalHours ExtractANSIIntervalMinutes
    ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears
    ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalMonths
    ExtractIntervalSeconds ExtractIntervalYears Factorial FindInSet Flatten Floor FormatNumber
    FormatString FromAvro FromUTCTimestamp FromUnixTime GeneratorOuter Get GetArrayItem
    GetArrayStructFields GetJsonObject GetMapValue GetStructField GetTimestamp GreaterThan
    GreaterThanOrEqual Greatest Grouping GroupingID GroupingSets Hex HllSketchEstimate HllUnion
    Hmac Hour HoursOfTime Hypot ILike If In InSubquery InitCap Inline IntegralDivide IsNaN
    IsNotNull IsNull IsValidUTF8 JaroWinkler JsonObjectKeys JsonToStructs JsonTuple
    KllSketchGetNBigint KllSketchGetNDouble KllSketchGetNFloat KllSketchGetQuantileBigint
    KllSketchGetQuantileDouble KllSketchGetQuantileFloat KllSketchGetRankBigint
    KllSketchGetRankDouble KllSketchGetRankFloat KllSketchMergeBigint KllSketchMergeDouble
    KllSketchMergeFloat KllSketchToStringBigint KllSketchToStringDouble KllSketchToStringFloat
    KnownFloatingPointNormalized KnownNotContainsNull KnownNotNull KnownNullable Lag
    LambdaFunction LastDay LateralColumnAliasReference LateralSubquery Lead Least Left Length
    LengthOfJsonArray LessThan LessThanOrEqual Levenshtein Like LikeAll LikeAny ListQuery
    Literal Log Log10 Log1p Log2 Logarithm Lower Luhncheck MakeDTInterval MakeDate MakeDecimal
    MakeInterval MakeTime MakeTimestamp MakeTimestampFromDateTime MakeTimestampLTZ
    MakeTimestampLTZNanos MakeTimestampNTZ MakeTimestampNTZNanos MakeValidUTF8 MakeYMInterval
    MapConcat MapContainsKey MapEntries MapFilter MapFromArrays MapFromEntries MapKeys MapSort
    MapValues MapZipWith Mask Md5 MicrosToTimestamp MillisToTimestamp Minute MinutesOfTime Month
    MonthName MonthsBetween MultiCommutativeOp Multiply MultiplyDTInterval MultiplyInterval
    MultiplyYMInterval Murmur3Hash NTile NaNvl NamedArgumentExpression NamedLambdaVariable
    NanosToTimestamp NextDay Not NotLikeAll NotLikeAny NthValue NullIf NullIfResult NullIfZero
    Nvl Nvl2 OctetLength Or OuterReference OuterScopeReference Overlay ParseToDate
    ParseToTimestamp ParseUrl PercentRank Pi PipeExpression Pmod PosExplode Pow
    PreciseTimestampConversion Quarter Quote RLike RaiseError Rank RegExpCount RegExpExtract
    RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Remainder ResolvedCollation Reverse
    Right Rint Rollup Round RoundCeil RoundFloor RowNumber SQLKeywords ScalarSubquery
    SchemaOfAvro SchemaOfCsv SchemaOfJson SchemaOfXml Sec Second SecondWithFraction
    SecondWithFractionNanos SecondsOfTime SecondsOfTimeWithFraction SecondsToTimestamp
    SemiStructuredExtract Sentences Sequence SessionWindow Sha1 Sha2 ShiftLeft ShiftRight
    ShiftRightUnsigned Signum Sin Sinh Size Slice SortArray SortOrder SoundEx
    SpecifiedWindowFrame SplitPart Sqrt Stack StartsWith StringDecode StringInstr
    StringInstrWithOccurrence StringLPad StringLocate StringRPad StringRepeat StringReplace
    StringSpace StringSplit StringSplitSQL StringToMap StringTranslate StringTrim StringTrimBoth
    StringTrimLeft StringTrimRight StructsToCsv StructsToJson StructsToXml Substring
    SubstringIndex Subtract SubtractDates SubtractTimes SubtractTimestamps Tan Tanh
    ThetaDifference ThetaIntersection ThetaSketchEstimate ThetaUnion TimeAddInterval TimeBucket
    TimeDiff TimeFromMicros TimeFromMillis TimeFromSeconds TimeToMicros TimeToMillis
    TimeToSeconds TimeTrunc TimeWindow TimestampAdd TimestampAddInterval TimestampAddYMInterval
    TimestampDiff ToAvro ToBinary ToCharacter ToDegrees ToNumber ToPrettyString ToRadians ToTime
    ToUTCTimestamp ToUnixTimestamp TransformKeys TransformValues TruncDate TruncTimestamp TryAdd
    TryAesDecrypt TryDivide TryElementAt TryEval TryMakeInterval TryMakeTimestamp
    TryMakeTimestampFromDateTime TryMod TryMultiply TryParseUrl TrySubtract TryToBinary
    TryToNumber TryUrlDecode TryValidateUTF8 TupleDifferenceDouble TupleDifferenceInteger
    TupleDifferenceThetaDouble TupleDifferenceThetaInteger TupleIntersectionDouble
    TupleIntersectionInteger TupleIntersectionThetaDouble TupleIntersectionThetaInteger
    TupleSketchEstimateDouble TupleSketchEstimateInteger TupleSketchSummaryDouble
    TupleSketchSummaryInteger TupleSketchThetaDouble TupleSketchThetaInteger TupleUnionDouble
    TupleUnionInteger TupleUnionThetaDouble TupleUnionThetaInteger TypeOf UnBase32 UnBase64
    UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$ Unhex UnixDate UnixMicros
    UnixMillis UnixNanos UnixSeconds UnixTimestamp Unnest UnresolvedCollation
    UnresolvedNamedLambdaVariable UnresolvedWindowExpression UnscaledValue UnspecifiedFrame$
    UpCast UpdateFields Upper UrlDecode UrlEncode ValidateUTF8 VectorAvg VectorCosineSimilarity
    VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize VectorSum WeekDay WeekOfYear
    WidthBucket WindowExpression WindowSpecDefinition WindowTime With WithField XmlToStructs
    XxHash64 Year YearOfWeek ZeroIfNull ZipWith
    """,
)
AGGREGATE = _words(
    "expressions.aggregate",
    """
    AggregateExpression AnyValue ApproxCountDistinctForIntervals ApproxTopK ApproxTopKAccumulate
    ApproxTopKCombine ApproximatePercentile Average BitAndAgg BitOrAgg BitXorAgg BoolAnd BoolOr
    CollectList CollectSet CollectTopK CollectUnion Corr Count CountIf CountMinSketchAgg
    CovPopulation CovSample First HistogramNumeric HllSketchAgg HllUnionAgg HyperLogLogPlusPlus
    KllMergeAggBigint KllMergeAggDouble KllMergeAggFloat KllSketchAggBigint KllSketchAggDouble
    KllSketchAggFloat Kurtosis Last ListAgg Max MaxBy MaxMinByK Median Min MinBy Mode Percentile
    PercentileCont PercentileDisc PivotFirst Product RegrAvgX RegrAvgY RegrCount RegrIntercept
    RegrR2 RegrReplacement RegrSXX RegrSXY RegrSYY RegrSlope Skewness StddevPop StddevSamp Sum
    ThetaIntersectionAgg ThetaSketchAgg ThetaUnionAgg TupleIntersectionAggDouble
    TupleIntersectionAggInteger TupleSketchAggDouble TupleSketchAggInteger TupleUnionAggDouble
    TupleUnionAggInteger VariancePop VarianceSamp
    """,
)
ST = _words(
    "expressions.st",
    """
    ST_AsBinary ST_GeogFromWKB ST_GeomFromWKB ST_SetSrid ST_Srid
    """,
)
VARIANT = _words(
    "expressions.variant",
    """
    IsValidVariant IsVariantNull ParseJson SchemaOfVariant SchemaOfVariantAgg ToVariantObject
    UnwrapVariantCastError VariantArrayAppend VariantDelete VariantExplode VariantGet
    VariantInsert VariantSet VariantStripNulls
    """,
)
XML = _words(
    "expressions.xml",
    """
    XPathBoolean XPathDouble XPathFloat XPathInt XPathList XPathLong XPathShort XPathString
    """,
)
KINDS = PLANS | PARSED_PLANS | UNRESOLVED | EXPRESSIONS | AGGREGATE | ST | VARIANT | XML
