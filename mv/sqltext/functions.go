package sqltext

import (
	"fmt"
	"strings"
)

// aggregates are the functions that turn many rows into one, in any of the dialects.
var aggregates = words(`any_value approx_count_distinct approx_distinct approx_percentile approx_quantile approx_top_k
	arbitrary arg_max arg_max_null arg_min arg_min_null argmax argmin array_agg avg bit_and bit_or bit_xor
	bitstring_agg bitwise_and_agg bitwise_or_agg bitwise_xor_agg bool_and bool_or checksum collect_list collect_set
	corr count count_if count_star countif covar_pop covar_samp entropy every favg first first_value fsum
	geometric_mean group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop last last_value list listagg mad
	map_agg map_union max max_by mean median min min_by mode multimap_agg percentile percentile_approx
	percentile_cont percentile_disc product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
	regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness some stddev
	stddev_pop stddev_samp std string_agg sum sum_no_overflow sumkahan try_avg try_sum var_pop var_samp variance
	wavg weighted_avg approx_most_frequent approx_set merge qdigest_agg tdigest_agg
	numeric_histogram max_null min_null bool_xor geomean json_group_array json_group_object json_group_structure
	array_aggr set_agg set_union reduce_agg convex_hull_agg json_objectagg json_arrayagg hll_sketch_agg
	hll_union_agg count_min_sketch bitmap_construct_agg bitmap_or_agg max_nulls_last arg_max_nulls_last
	arg_min_nulls_last histogram_numeric regr_sxx schema_of_json_agg schema_of_variant_agg mode_agg listagg_distinct
	string_agg_distinct approx_top_k_accumulate kll_sketch_agg_bigint kll_sketch_agg_double vwap range_agg
	bit_count_agg last_value_agg`)

// orderDependent are aggregates whose result can depend on the order in which rows come.
var orderDependent = words(`any_value arbitrary array_agg collect_list collect_set first first_value group_concat last
	last_value list listagg map_agg multimap_agg string_agg mode max_by min_by arg_max arg_min argmax argmin
	arg_max_null arg_min_null approx_quantile approx_percentile percentile_approx approx_top_k approx_most_frequent
	json_group_array json_group_object json_objectagg json_arrayagg numeric_histogram tdigest_agg qdigest_agg
	map_union set_agg set_union arg_max_nulls_last arg_min_nulls_last`)

// volatile are functions that can give another result for the same rows.
var volatile = words(`now current_date current_time current_timestamp localtime localtimestamp today get_current_timestamp
	get_current_time current_localtime current_localtimestamp transaction_timestamp statement_timestamp
	clock_timestamp curdate curtime getdate sysdate systimestamp current_timezone random rand randn randstr uniform
	setseed uuid gen_random_uuid uuidv4 uuidv7 nextval currval txid_current current_user session_user user
	current_role current_catalog current_schema current_schemas current_path current_database current_query
	current_query_id current_connection_id current_transaction_id current_setting getvariable version
	in_search_path pg_sleep sleep_ms error write_log shuffle reservoir_quantile stats ago query query_table
	input_file_name input_file_block_start input_file_block_length monotonically_increasing_id spark_partition_id
	java_method reflect try_reflect current_groups pg_my_temp_schema pg_postmaster_start_time pg_conf_load_time inet_client_addr
	inet_client_port inet_server_addr inet_server_port current_metastore assert_true raise_error fail`)

// deterministicScalars give the same result for the same arguments, in every dialect that
// has them. A function that is on no list counts as unknown, and a query that calls it is
// refreshed in full.
var deterministicScalars = words(
	// logic and NULL
	`coalesce nullif ifnull nvl nvl2 if iff zeroifnull nullifzero isnull isnotnull constant_or_null try greatest least
	decode choose`,
	// numbers
	`abs ceil ceiling floor round round_even bround trunc truncate sign signbit mod pmod fmod fdiv div power pow exp ln log
	log2 log10 log1p expm1 sqrt cbrt degrees radians sin cos tan cot asin acos atan atan2 sinh cosh tanh asinh acosh
	atanh pi e gcd lcm factorial gamma lgamma even nextafter add subtract multiply divide negative positive
	bit_count bit_length width_bucket is_nan isnan isinf isfinite is_finite is_infinite infinity nan
	bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift shiftleft shiftright xor
	hex unhex bin from_base to_base conv`,
	// text
	`lower upper lcase ucase length len char_length character_length strlen octet_length concat concat_ws substr substring
	left right trim ltrim rtrim btrim lpad rpad replace reverse repeat space position strpos instr locate charindex
	split_part split string_split str_split string_to_array starts_with ends_with startswith endswith prefix suffix
	contains chr char ascii ord unicode codepoint initcap translate overlay format printf format_string
	md5 sha1 sha sha2 sha256 sha512 crc32 xxhash64 hash murmur3 to_hex from_hex to_base64 from_base64 base64 unbase64
	to_utf8 from_utf8 encode url_encode url_decode levenshtein levenshtein_distance hamming
	hamming_distance jaccard jaro_similarity jaro_winkler_similarity damerau_levenshtein soundex normalize
	nfc_normalize strip_accents regexp_like regexp_matches regexp_full_match regexp_replace regexp_extract
	regexp_extract_all regexp_split regexp_split_to_array regexp_count regexp_position regexp_instr regexp_substr
	regexp_escape bar string_split_regex str_split_regex word_stem empty2null find_in_set
	substring_index luhn_check parse_url`,
	// dates and times
	`date_trunc datetrunc trunc date_part datepart extract year quarter month week weekofyear yearofweek yow day
	day_of_month dayofmonth day_of_week dayofweek dow day_of_year dayofyear doy isodow isoyear yearweek hour minute
	second millisecond microsecond nanosecond era century decade millennium julian weekday dayname monthname
	epoch epoch_ms epoch_us epoch_ns last_day last_day_of_month days_in_month date_add date_sub date_diff datediff
	datesub dateadd add_months months_between next_day date to_date make_date make_time make_timestamp
	make_timestamp_ms make_timestamp_ns make_timestamptz make_interval make_dt_interval make_ym_interval
	time_bucket date_bin to_timestamp to_timestamp_ntz to_timestamp_ltz try_to_timestamp to_unixtime from_unixtime
	from_unixtime_nanos from_utc_timestamp to_utc_timestamp at_timezone with_timezone timezone timezone_hour
	timezone_minute strftime strptime try_strptime date_format date_parse format_datetime parse_datetime to_char
	from_iso8601_timestamp from_iso8601_date to_iso8601 to_years to_quarters to_months to_weeks to_days to_hours
	to_minutes to_seconds to_milliseconds to_microseconds to_decades to_centuries to_millennia unix_date
	unix_seconds unix_millis unix_micros date_from_unix_date timestamp_seconds timestamp_millis timestamp_micros
	convert_timezone normalized_interval to_milliseconds human_readable_seconds`,
	// nested values
	`list_value list_pack array_value array row struct struct_pack named_struct struct_extract struct_extract_at
	struct_insert struct_concat map map_from_entries map_from_arrays map_entries map_keys map_values map_extract
	map_concat map_contains map_contains_key map_filter transform_keys transform_values element_at cardinality size
	array_length list_extract list_element array_extract list_slice array_slice slice list_contains array_contains
	list_has array_has array_position list_position list_indexof array_indexof list_concat array_concat list_cat
	array_cat list_append array_append list_prepend array_prepend list_sort array_sort list_reverse_sort
	array_reverse_sort list_reverse array_reverse list_distinct array_distinct list_unique array_unique
	list_filter array_filter filter list_transform array_transform transform list_apply array_apply list_reduce
	array_reduce reduce aggregate zip_with list_zip array_zip arrays_zip zip array_join array_to_string
	array_min array_max array_sum list_sum list_min list_max list_avg list_count array_except array_intersect
	array_union array_remove array_compact arrays_overlap list_intersect list_has_any list_has_all flatten
	sequence range generate_series repeat_array ngrams combinations any_match all_match none_match
	array_first array_last posexplode explode explode_outer posexplode_outer inline inline_outer stack unnest
	get_json_object json_extract json_extract_scalar json_extract_string json_extract_path
	json_extract_path_text json_array_length json_object_keys json_keys json_type json_valid json_value json_query
	json_exists json_parse json_format json_size json_array json_object to_json from_json is_json_scalar json_tuple json_array_get`,
	// types and others
	`typeof bool boolean int bigint smallint tinyint float double decimal string binary date timestamp
	try_cast can_cast_implicitly uuid_extract_timestamp uuid_extract_version grouping grouping_id`)

// windowFunctions need OVER. Their result depends on the order of peers if that is not total.
var windowFunctions = words(`row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value fill`)

// deterministicOperators are the operators that are known.
var deterministicOperators = words(`+ - * / // % ^ ** = == <> != < > <= >= <=> || and or not & | << >> # -> ->> ~~ !~~
	~ !~ ^@ @> <@ && div in between like ilike rlike regexp glob similar collate`, "in", "between")

// knownOperator reports whether a call that is written as an operator is deterministic.
func knownOperator(name string) bool {
	if strings.HasPrefix(name, "is ") {
		return true
	}
	name = strings.TrimPrefix(name, "not ")
	switch name {
	case "at time zone", "between symmetric", "@", "like any", "like all", "like some", "ilike any", "ilike all", "ilike some":
		return true
	}
	return deterministicOperators[name]
}

// isAggregate reports whether e is an aggregate call, not one over a window.
func isAggregate(e *expr) bool {
	return e.kind == exCall && !e.window && len(e.parts) == 1 && aggregates[e.name]
}

// hasAggregate reports whether e calls an aggregate outside subqueries.
func hasAggregate(e *expr) bool {
	found := false
	eachLocal(e, func(x *expr) { found = found || isAggregate(x) })
	return found
}

// eachLocal calls f on e and what it is made of, subqueries left out.
func eachLocal(e *expr, f func(*expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, a := range e.args {
		eachLocal(a, f)
	}
	for _, o := range e.order {
		eachLocal(o.expr, f)
	}
	eachLocal(e.filter, f)
	if e.over != nil {
		for _, a := range e.over.partition {
			eachLocal(a, f)
		}
		for _, o := range e.over.order {
			eachLocal(o.expr, f)
		}
		for _, a := range e.over.frame {
			eachLocal(a, f)
		}
	}
}

// Impurity is a part of the text by which the query can give another result for the same
// tables.
type Impurity struct {
	Offset int
	Known  bool // false: the function is not on the list of those known to be deterministic
	Msg    string
}

// Nondeterministic returns what keeps the query from being a function of its tables: calls
// that read a clock, a session or a random source, and calls that are not known.
func (q *Query) Nondeterministic() []Impurity {
	var list []Impurity
	add := func(e *expr, known bool, format string, args ...any) {
		list = append(list, Impurity{e.start, known, q.Position(e.start) + ": " + fmt.Sprintf(format, args...)})
	}
	w := walker{expr: func(e *expr) {
		name := e.callName()
		switch e.kind {
		case exString:
			if clockWord(e.name) {
				add(e, true, "%q can stand for the current time", e.name)
			}
		case exParam:
			add(e, true, "the query has a parameter")
		case exUnary, exBinary, exQuantified:
			if !knownOperator(name) {
				add(e, false, "operator %s is not known", name)
			}
		case exColumn:
			if q.Dialect == DuckDB && len(e.parts) == 1 && bareCalls[strings.ToLower(e.parts[0].name)] {
				add(e, true, "%s depends on when or by whom the query is run", e.parts[0].name)
			}
		case exCall:
			switch {
			case volatile[name], clockCall(e):
				add(e, true, "%s depends on when or by whom the query is run", name)
			case len(e.parts) == 0 && knownOperator(name):
			case len(e.parts) == 1 && (aggregates[name] || deterministicScalars[name] || windowFunctions[name] || name == "columns"):
			default:
				add(e, false, "function %s is not known to be deterministic", name)
			}
		}
	}}
	w.walkQuery(q.root)
	return list
}

// clockCall reports whether a function that is a pure one with its usual arguments reads
// the clock with these.
func clockCall(e *expr) bool {
	switch e.name {
	case "age", "unix_timestamp", "to_unix_timestamp":
		return len(e.args) < 2
	}
	return false
}

// clockWord reports whether engines can read a string as the current time when it is
// cast to a date or a timestamp.
func clockWord(s string) bool {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), " ")
	switch first {
	case "now", "today", "tomorrow", "yesterday":
		return len(s) < 60
	}
	return false
}

// OrderDependent returns the aggregate calls whose result depends on the order of rows,
// or on which of equal rows comes first.
func (q *Query) OrderDependent() []FunctionCall {
	var out []FunctionCall
	for _, c := range q.Functions() {
		if orderDependent[c.Name] {
			out = append(out, c)
		}
	}
	return out
}
