"""Lance's functions: how large a value each can make from its arguments, or why it is refused.

A function that is neither here nor in the rules of `growth` is refused as unknown. The tables have
every function of the installed Lance; a test compares them.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Numbers, booleans, times, digests: at most this many bytes.
FIXED_BYTES = 128
FIXED = _names(
    """
    abs acos acosh array_contains array_dims array_distance array_empty array_has array_has_all
    array_has_any array_indexof array_length array_ndims array_position arrays_overlap
    arrow_typeof ascii asin asinh atan atan2 atanh bit_length box2d box3d cardinality cbrt
    char_length character_length chr contains contains_tokens cos cosh cosine_distance cot
    current_date current_time current_timestamp date_bin date_part date_trunc datepart datetrunc
    degrees digest dot_product empty ends_with exp factorial find_in_set from_unixtime gcd
    inner_product instr isnan iszero json_array_contains json_array_length json_exists
    json_get_bool json_get_float json_get_int lcm length list_contains list_dims list_distance
    list_empty list_has list_has_all list_has_any list_indexof list_length list_ndims
    list_position ln log log10 log2 make_date make_time md5 nanvl now octet_length pi position pow
    power radians rand random round sha224 sha256 sha384 sha512 signum sin sinh sqrt st_area
    st_centroid st_contains st_coorddim st_coveredby st_covers st_crosses st_disjoint st_distance
    st_endpoint st_equals st_geohash st_geometrytype st_intersects st_isclosed st_isempty
    st_isvalid st_length st_m st_makebox2d st_makepoint st_makepointm st_ndims st_npoints
    st_numinteriorring st_numinteriorrings st_numpoints st_orientedenvelope st_overlaps st_point
    st_pointfromgeohash st_pointm st_pointonsurface st_pointz st_pointzm st_startpoint st_touches
    st_within st_x st_xmax st_xmin st_y st_ymax st_ymin st_z st_zmax st_zmin starts_with strpos
    tan tanh to_date to_hex to_local_time to_time to_timestamp to_timestamp_micros
    to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime today trunc union_tag
    uuid version
    """
)
# Their value is made from the arguments, each used once.
SUM = _names(
    """
    array_any_value array_append array_cat array_compact array_concat array_distinct array_element
    array_except array_extract array_intersect array_max array_min array_normalize array_pop_back
    array_pop_front array_prepend array_push_back array_push_front array_remove array_remove_all
    array_remove_n array_reverse array_slice array_sort array_union btrim coalesce concat
    element_at flatten greatest ifnull json_extract json_get json_get_string least left
    list_any_value list_append list_cat list_compact list_concat list_distinct list_element
    list_except list_extract list_intersect list_max list_normalize list_pop_back list_pop_front
    list_prepend list_push_back list_push_front list_remove list_remove_all list_remove_n
    list_reverse list_slice list_sort list_union lower ltrim make_array make_list make_map map
    map_entries map_extract map_keys map_values named_struct nullif nvl nvl2 overlay reverse right
    row rtrim split_part st_convexhull st_simplify st_simplifypreservetopology st_simplifyvw
    struct substr_index substring_index union_extract
    """
)
# As before, but each byte can become several: another alphabet, another encoding, a list item.
TIMES = {
    "array_positions": 8,
    "decode": 1,
    "encode": 2,
    "initcap": 3,
    "list_positions": 8,
    "st_asbinary": 2,
    "st_astext": 4,
    "st_geomfromtext": 8,
    "st_geomfromwkb": 2,
    "string_to_array": 8,
    "string_to_list": 8,
    "translate": 4,
    "upper": 3,
}
_AGGREGATES = _names(
    """
    approx_distinct approx_median approx_percentile_cont approx_percentile_cont_with_weight
    array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar covar_pop covar_samp
    first_value grouping last_value max mean median min nth_value percentile_cont quantile_cont
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    st_extent stddev stddev_pop stddev_samp string_agg sum var var_pop var_population var_samp
    var_sample
    """
)
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        _names(
            "any_match array_any_match array_filter array_transform list_any_match list_filter "
            "list_transform"
        ),
        "it takes a function as its argument",
    ),
    **dict.fromkeys(_AGGREGATES, "it is of many rows, and an expression is of one"),
    **dict.fromkeys(
        _names("arrow_field arrow_metadata cast_to_type with_metadata"),
        "it is about types, not values",
    ),
    **dict.fromkeys(
        _names("ceil extract floor substr substring trim"),
        "Lance's SQL reads it, and has no such function",
    ),
    "st_dump": "it makes several values",
    **dict.fromkeys(
        _names("array_resize arrays_zip list_resize list_zip"),
        "what it fills up with can be of any size",
    ),
}
