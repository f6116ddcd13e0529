//! Functions whose value depends on their own row alone.
//!
//! A statement that scatters may call only these: an unknown name may be a stored function that reads other tables, or
//! an aggregate that somebody installed.

use shardgate_sql::{Keyword as K, TokenKind};

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
    least length ln localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime match \
    md5 microsecond mid minute month monthname name_const now nullif nvl nvl2 oct octet_length ord \
    period_add period_diff pi position pow power quarter quote radians rand random_bytes regexp_instr regexp_like \
    regexp_replace regexp_substr repeat reverse round row_count rpad rtrim schema sec_to_time second session_user sha \
    sha1 sha2 sign sin sleep soundex space sqrt st_asgeojson st_astext st_contains st_distance st_distance_sphere \
    st_geomfromtext st_within st_x st_y point str_to_date strcmp subdate substr substring substring_index subtime \
    sysdate system_user tan time_format time_to_sec timediff timestampadd timestampdiff to_base64 to_char to_days \
    to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml upper user utc_date \
    utc_time utc_timestamp uuid uuid_short uuid_to_bin version week weekday weekofyear weight_string yearweek ";

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
