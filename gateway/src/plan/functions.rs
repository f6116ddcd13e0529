//! Functions whose value depends on their own row alone.
//!
//! A statement that scatters may call only these: an unknown name may be a stored function that reads other tables, or
//! an aggregate that somebody installed.

use shardgate_sql::{Keyword as K, Lexed, TokenKind};

use super::statement::{Span, Statement};

/// What a word before a parenthesis is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Called {
    /// Computed row by row.
    Scalar,
    /// Combines rows.
    Aggregate,
    /// Looks at neighbouring rows.
    Window,
    /// Not known.
    Unknown,
}

const AGGREGATES: &str = " any_value avg bit_and bit_or bit_xor count group_concat json_arrayagg json_objectagg max \
    min std stddev stddev_pop stddev_samp sum var_pop var_samp variance approx_count_distinct grouping ";

const WINDOWS: &str = " cume_dist dense_rank first_value lag last_value lead median nth_value ntile percent_rank \
    percentile_cont percentile_disc rank row_number ";

/// Words that stand before a parenthesis without being called: syntax, and types of CAST.
const SYNTAX: &str = " against all and any as between binary bigint blob by case char character check collate \
    datetime dec decimal default distinct div double else end enum escape exists float for force from group having if ignore in \
    index int integer interval into is join key like limit matched mod nchar not numeric nvarchar offset on or order \
    over partition real regexp rlike rows row select set signed some straight_join table then time timestamp tinyint \
    unsigned update use using value values varbinary varchar when where with xor year replace left right insert date ";

const SCALARS: &str = " abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 bin bin_to_uuid \
    bit_count bit_length cast ceil ceiling char_length character_length charset coalesce coercibility collation \
    compress concat concat_ws connection_id conv convert convert_tz cos cot crc32 curdate current_date current_role \
    current_time current_timestamp current_user curtime database date_add date_format date_sub datediff day dayname \
    dayofmonth dayofweek dayofyear degrees elt exp export_set extract extractvalue field find_in_set floor format \
    format_bytes found_rows from_base64 from_days from_unixtime get_format greatest hex hour ifnull inet6_aton \
    inet6_ntoa inet_aton inet_ntoa instr is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_uuid isnull json_array \
    json_array_append json_array_insert json_compact json_contains json_contains_path json_depth json_detailed \
    json_exists json_extract json_insert json_keys json_length json_loose json_merge json_merge_patch \
    json_merge_preserve json_object json_overlaps json_pretty json_query json_quote json_remove json_replace \
    json_search json_set json_storage_size json_type json_unquote json_valid json_value last_day last_insert_id lcase \
    least length ln localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime \
    md5 microsecond mid minute month monthname name_const now nullif nvl nvl2 oct octet_length ord \
    period_add period_diff pi position pow power quarter quote radians rand random_bytes regexp_instr regexp_like \
    regexp_replace regexp_substr repeat reverse round row_count rpad rtrim schema sec_to_time second session_user sha \
    sha1 sha2 sign sin sleep soundex space sqrt st_asgeojson st_astext st_contains st_distance st_distance_sphere \
    st_geomfromtext st_within st_x st_y point str_to_date strcmp subdate substr substring substring_index subtime \
    sysdate system_user tan time_format time_to_sec timediff timestampadd timestampdiff to_base64 to_char to_days \
    to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml upper user utc_date \
    utc_time utc_timestamp uuid uuid_short uuid_to_bin version week weekday weekofyear weight_string yearweek ";

/// Built into the servers, though not known to depend on their row alone: any one server answers them as the others do.
const OTHERS: &str = " match add_months area asbinary astext aswkb aswkt benchmark binlog_gtid_pos boundary buffer can_access_column \
    can_access_database can_access_table centroid chr column_add column_check column_create column_delete \
    column_exists column_get column_json column_list contains convexhull crc32c crosses date_sub decode decode_histogram \
    decode_oracle des_decrypt des_encrypt dimension disjoint encode encrypt endpoint envelope equals exteriorring \
    extractvalue format_pico_time geomcollection geomcollfromtext geomcollfromwkb geometrycollection \
    geometrycollectionfromtext geometrycollectionfromwkb geometryfromtext geometryfromwkb geometryn geometrytype \
    geomfromtext geomfromwkb get_lock glength gtid_subset gtid_subtract icu_version interiorringn intersects isclosed \
    isempty is_free_lock isring issimple is_used_lock is_visible_dd_object json_array_intersect json_equals json_normalize \
    json_object_filter_keys json_object_to_array json_schema_valid json_schema_validation_report json_storage_free \
    json_table kdf lastval length_oracle lengthb linefromtext linefromwkb linestring linestringfromtext \
    linestringfromwkb lpad_oracle ltrim_oracle master_gtid_wait master_pos_wait mbrcontains mbrcoveredby mbrcovers \
    mbrdisjoint mbrequal mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin mlinefromtext mlinefromwkb \
    mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb multilinestring multilinestringfromtext \
    multilinestringfromwkb multipoint multipointfromtext multipointfromwkb multipolygon multipolygonfromtext \
    multipolygonfromwkb natural_sort_key next_val nextval numgeometries numinteriorrings numpoints old_password overlaps \
    password pointfromtext pointfromwkb pointn pointonsurface polyfromtext polyfromwkb polygon polygonfromtext \
    polygonfromwkb ps_current_thread_id ps_thread_id release_all_locks release_lock roles_graphml row_number setval sformat \
    source_pos_wait sql_thread_wait_after_gtids srid st_area st_asbinary st_aswkb st_aswkt st_boundary st_buffer \
    st_buffer_strategy st_centroid st_collect st_convexhull st_crosses st_difference st_dimension st_disjoint st_endpoint \
    st_envelope st_equals st_exteriorring st_frechetdistance st_geohash st_geomcollfromtext st_geomcollfromtxt \
    st_geomcollfromwkb st_geometrycollectionfromtext st_geometrycollectionfromwkb st_geometryfromtext \
    st_geometryfromwkb st_geometryn st_geometrytype st_geomfromgeojson st_geomfromwkb st_hausdorffdistance \
    st_interiorringn st_intersection st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_latfromgeohash \
    st_latitude st_length st_linefromtext st_linefromwkb st_lineinterpolatepoint st_lineinterpolatepoints \
    st_linestringfromtext st_linestringfromwkb st_longfromgeohash st_longitude st_makeenvelope st_mlinefromtext \
    st_mlinefromwkb st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb st_numgeometries \
    st_numinteriorring st_numinteriorrings st_numpoints st_overlaps st_pointatdistance st_pointfromgeohash \
    st_pointfromtext st_pointfromwkb st_pointn st_pointonsurface st_polyfromtext st_polyfromwkb st_polygonfromtext \
    st_polygonfromwkb st_relate st_simplify st_srid st_startpoint st_swapxy st_symdifference st_touches st_transform \
    st_union st_validate startpoint statement_digest statement_digest_text subdate sys_guid to_number to_vector touches \
    trim_oracle trunc uuid_v4 uuid_v7 validate_password_strength vec_distance vec_distance_cosine \
    vec_distance_euclidean vec_fromtext vec_totext vector_dim wait_for_executed_gtid_set \
    wait_until_sql_thread_after_gtids within wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid x y \
    columns nested path lateral vector ";

const RANDOM: &str = " rand random_bytes sysdate uuid uuid_short ";

/// Whether a function is called whose value changes from call to call.
pub(super) fn is_random(statement: &Statement<'_>, at: usize) -> bool {
    let text = String::from_utf8_lossy(statement.lexed.text(at)).to_ascii_lowercase();
    statement.is(at + 1, TokenKind::LParen) && listed(RANDOM, &text)
}

fn listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|word| word == name)
}

/// What is called at a token, if anything is.
pub(super) fn called(statement: &Statement<'_>, at: usize) -> Option<Called> {
    let kind = statement.lexed.kind(at).filter(|k| k.is_name())?;
    if !statement.is(at + 1, TokenKind::LParen) {
        return None;
    }
    let qualified = at > 0 && statement.is(at - 1, TokenKind::Dot);
    if qualified || kind == TokenKind::QuotedIdent {
        // A table's name before its column list, or `database.function(...)`: where it matters the caller knows.
        return Some(Called::Unknown);
    }
    let name = String::from_utf8_lossy(statement.lexed.text(at)).to_ascii_lowercase();
    Some(if listed(AGGREGATES, &name) {
        Called::Aggregate
    } else if listed(WINDOWS, &name) {
        Called::Window
    } else if listed(SCALARS, &name) || listed(SYNTAX, &name) {
        Called::Scalar
    } else {
        Called::Unknown
    })
}

/// The first call of a function that is no server's own: a stored one, which may read whatever lies on its shard.
pub(super) fn first_stored(statement: &Statement<'_>) -> Option<usize> {
    statement.all().find(|at| {
        called(statement, *at) == Some(Called::Unknown)
            && !is_built_in(statement, *at)
            && !is_list_of(statement, *at)
            && !is_written_table(statement, *at)
    })
}

/// The table of an INSERT before its column list: `INSERT INTO t (a, b)`, `REPLACE shop.t (a)`.
fn is_written_table(statement: &Statement<'_>, at: usize) -> bool {
    let inserts = matches!(
        statement.lexed.first_keyword(),
        Some(K::Insert | K::Replace | K::Explain | K::Describe | K::Desc)
    );
    let qualified = at > 0 && statement.is(at - 1, TokenKind::Dot);
    let Some(before) = at.checked_sub(if qualified { 3 } else { 1 }) else {
        return false;
    };
    let words = matches!(
        statement.keyword(before),
        Some(K::Into | K::Insert | K::Replace | K::Ignore | K::LowPriority | K::Delayed | K::HighPriority)
    );
    inserts && words
}

/// Whether a statement calls a stored function: one that no server has built in.
#[must_use]
pub fn calls_stored(lexed: &Lexed<'_>) -> bool {
    // One that cannot be read may call anything.
    Statement::new(lexed, 0).map_or(true, |statement| first_stored(&statement).is_some())
}

fn is_built_in(statement: &Statement<'_>, at: usize) -> bool {
    let qualified = at > 0 && statement.is(at - 1, TokenKind::Dot);
    let name = String::from_utf8_lossy(statement.lexed.text(at)).to_ascii_lowercase();
    !qualified && statement.is(at, TokenKind::Word) && listed(OTHERS, &name)
}

/// Whether `RAND` is called with a seed: its sequence would begin anew on each shard.
pub(super) fn is_seeded(statement: &Statement<'_>, at: usize) -> bool {
    statement.lexed.text(at).eq_ignore_ascii_case(b"rand")
        && statement.is(at + 1, TokenKind::LParen)
        && !statement.is(at + 2, TokenKind::RParen)
}

/// A derived table's or a common table expression's name before its columns: `(SELECT ...) AS x (a, b)`,
/// `WITH x (a, b) AS (SELECT ...)`.
fn is_list_of(statement: &Statement<'_>, at: usize) -> bool {
    let behind = statement.close(at + 1).map_or(0, |close| close + 1);
    let named = statement.is_keyword(behind, K::As) && statement.is(behind + 1, TokenKind::LParen);
    named || is_alias(statement, at)
}

/// A derived table's alias with a list of columns: `(SELECT ...) AS x (a, b)`.
pub(super) fn is_alias(statement: &Statement<'_>, at: usize) -> bool {
    at > 0 && (statement.is_keyword(at - 1, K::As) || statement.is(at - 1, TokenKind::RParen))
}

/// Whether a called name touches its parenthesis, as built-in aggregates must unless `IGNORE_SPACE` is set.
pub(super) fn adjacent(statement: &Statement<'_>, at: usize) -> bool {
    statement.lexed.options().mode.ignore_space()
        || statement.lexed.range(at).end == statement.lexed.range(at + 1).start
}

/// The first call in a span that is not computed row by row.
pub(super) fn first_not_scalar(statement: &Statement<'_>, span: Span) -> Option<(usize, Called)> {
    let calls = span.filter_map(|at| called(statement, at).map(|c| (at, c)));
    calls
        .into_iter()
        .find(|(at, c)| *c != Called::Scalar || is_over(statement, *at))
}

/// Whether a call has a window.
fn is_over(statement: &Statement<'_>, at: usize) -> bool {
    statement
        .close(at + 1)
        .is_some_and(|close| statement.is_keyword(close + 1, K::Over))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    #[test]
    fn a_table_before_its_columns_is_not_called() {
        let calls = |sql: &str| calls_stored(&lex(sql.as_bytes(), &LexOptions::default()).unwrap());
        for sql in [
            "INSERT INTO t (id, v) VALUES (1, 2)",
            "INSERT t (id) VALUES (1) ON DUPLICATE KEY UPDATE v = VALUES(v)",
            "INSERT IGNORE INTO `t` (id) VALUES (1)",
            "REPLACE LOW_PRIORITY shop.t (id) SELECT REPLACE(v, 'a', 'b') FROM t",
            "INSERT INTO shop . t (id) VALUES (INSERT('a', 1, 1, 'b'))",
            "SELECT COUNT(*), MAX(v) FROM t JOIN u USING (id) WHERE k IN (1, 2)",
            "UPDATE t PARTITION (p) SET v = COALESCE(v, 0)",
            "WITH x (a) AS (SELECT 1) SELECT a FROM x",
        ] {
            assert!(!calls(sql), "{sql}");
        }
        for sql in [
            "INSERT INTO t (id, v) VALUES (1, mine(2))",
            "INSERT INTO t (id) SELECT shop.mine(id) FROM t",
            "INSERT INTO t SET v = mine(1)",
            "SELECT mine(1)",
            "UPDATE t SET v = mine(v)",
        ] {
            assert!(calls(sql), "{sql}");
        }
    }
}
