//! Tables of `information_schema` as a client is to see them: the shard's own rows only, under the keyspace's name.
//!
//! A table is replaced by a query on it, so that whatever else a statement does with the names (patterns, joins,
//! grouping, order) happens to the names that the client knows.

use std::fmt::Write as _;

use shardgate_sql::{Flavor, Lexed};

use super::schemata_names::is_schema_column;

/// What a table of `information_schema` tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Schemas and what is in them; the column says whose a row is.
    Schemas(&'static str),
    /// Things that are alike on all servers of a fleet.
    Server,
    /// Sessions of the tablet, which are not the client's.
    Sessions,
    /// Grants of the user as which the gateway logs in.
    Grants,
    /// One server's state.
    OneServer,
}

/// What a table tells of.
pub(super) fn about(table: &str) -> About {
    match table.to_ascii_uppercase().as_str() {
        "TABLES"
        | "COLUMNS"
        | "STATISTICS"
        | "VIEWS"
        | "PARTITIONS"
        | "TABLE_CONSTRAINTS"
        | "KEY_COLUMN_USAGE"
        | "TABLES_EXTENSIONS"
        | "COLUMNS_EXTENSIONS"
        | "ST_GEOMETRY_COLUMNS"
        | "VIEW_ROUTINE_USAGE"
        | "FILES"
        | "PERIODS"
        | "KEY_PERIOD_USAGE" => About::Schemas("TABLE_SCHEMA"),
        "REFERENTIAL_CONSTRAINTS" | "CHECK_CONSTRAINTS" | "TABLE_CONSTRAINTS_EXTENSIONS" => {
            About::Schemas("CONSTRAINT_SCHEMA")
        }
        "SCHEMATA" | "SCHEMATA_EXTENSIONS" | "COLUMN_STATISTICS" => About::Schemas("SCHEMA_NAME"),
        "ROUTINES" => About::Schemas("ROUTINE_SCHEMA"),
        "PARAMETERS" => About::Schemas("SPECIFIC_SCHEMA"),
        "TRIGGERS" => About::Schemas("TRIGGER_SCHEMA"),
        "EVENTS" => About::Schemas("EVENT_SCHEMA"),
        "VIEW_TABLE_USAGE" => About::Schemas("VIEW_SCHEMA"),
        "GEOMETRY_COLUMNS" => About::Schemas("F_TABLE_SCHEMA"),
        "SEQUENCES" => About::Schemas("SEQUENCE_SCHEMA"),
        "CHARACTER_SETS"
        | "COLLATIONS"
        | "COLLATION_CHARACTER_SET_APPLICABILITY"
        | "ENGINES"
        | "PLUGINS"
        | "ALL_PLUGINS"
        | "KEYWORDS"
        | "SQL_FUNCTIONS"
        | "SYSTEM_VARIABLES"
        | "GLOBAL_VARIABLES"
        | "SESSION_VARIABLES"
        | "SPATIAL_REF_SYS"
        | "ST_SPATIAL_REFERENCE_SYSTEMS"
        | "ST_UNITS_OF_MEASURE"
        | "INNODB_FT_DEFAULT_STOPWORD" => About::Server,
        // What others do at the moment, word by word.
        "PROCESSLIST" | "INNODB_TRX" => About::Sessions,
        "USER_PRIVILEGES"
        | "SCHEMA_PRIVILEGES"
        | "TABLE_PRIVILEGES"
        | "COLUMN_PRIVILEGES"
        | "USER_ATTRIBUTES"
        | "APPLICABLE_ROLES"
        | "ENABLED_ROLES"
        | "ADMINISTRABLE_ROLE_AUTHORIZATIONS"
        | "ROLE_TABLE_GRANTS"
        | "ROLE_COLUMN_GRANTS"
        | "ROLE_ROUTINE_GRANTS" => About::Grants,
        _ => About::OneServer,
    }
}

/// Whether a table outside of `information_schema` is alike on all servers of a fleet.
pub(super) fn is_alike(database: &str, table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    if database.eq_ignore_ascii_case("mysql") {
        return table.starts_with("time_zone") || table.starts_with("help_");
    }
    database.eq_ignore_ascii_case("performance_schema")
        && matches!(table.as_str(), "global_variables" | "session_variables")
}

/// Whether a table of a server's own database tells of its accounts, or of what others do there: to a tablet all clients
/// are the gateway's one user, so it would show each of them the others' statements.
pub(super) fn tells_of_others(database: &str, table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    match database.to_ascii_lowercase().as_str() {
        "information_schema" => matches!(about(&table), About::Sessions | About::Grants),
        "performance_schema" => {
            let by_whom = ["_by_thread", "_by_account", "_by_user", "_by_host"];
            by_whom.iter().any(|by| table.contains(by))
                || table.starts_with("events_statements_current")
                || table.starts_with("events_statements_history")
                || table.starts_with("replication_connection_configuration")
                || matches!(
                    table.as_str(),
                    "accounts"
                        | "users"
                        | "hosts"
                        | "threads"
                        | "processlist"
                        | "session_connect_attrs"
                        | "session_account_connect_attrs"
                        | "prepared_statements_instances"
                )
        }
        "sys" => {
            let about_others = [
                "processlist",
                "session",
                "user_summary",
                "host_summary",
                "lock_waits",
            ];
            about_others.iter().any(|word| table.contains(word)) && !table.contains("ssl_status")
        }
        _ => false,
    }
}

/// A shard's database and what the client knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known<'n> {
    /// The database on its server.
    pub(super) database: &'n str,
    /// The keyspace.
    pub(super) keyspace: &'n str,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ViewColumn {
    /// Its name on the server.
    pub(super) name: String,
    /// What a result is to call it.
    pub(super) shown: String,
}

/// The table's columns as a statement's result is to call them: MariaDB writes a column of `information_schema` as the
/// statement does, MySQL as it is declared.
pub(super) fn spelled(lexed: &Lexed<'_>, columns: &[String]) -> Vec<ViewColumn> {
    let as_written = lexed.options().flavor == Flavor::MariaDb;
    let written = |name: &String| {
        let is_it = |n: &std::borrow::Cow<'_, [u8]>| n.eq_ignore_ascii_case(name.as_bytes());
        let found = (0..lexed.len()).filter_map(|at| lexed.name(at)).find(is_it)?;
        String::from_utf8(found.into_owned()).ok()
    };
    let column = |name: &String| ViewColumn {
        shown: written(name)
            .filter(|_| as_written)
            .unwrap_or_else(|| name.clone()),
        name: name.clone(),
    };
    columns.iter().map(column).collect()
}

/// The query that stands for a table, in parentheses. `columns` are the table's, in order. `more` are further rows, each
/// a list of SQL expressions.
pub(super) fn derived(
    table: &str,
    filter: &str,
    columns: &[ViewColumn],
    known: Known<'_>,
    with_information_schema: bool,
    more: &[String],
) -> String {
    let mut out = String::from("(SELECT ");
    let list: Vec<_> = columns.iter().map(|c| column(c, known)).collect();
    out.push_str(&list.join(", "));
    let database = text(known.database);
    // Writing to a String cannot fail.
    let _ = write!(out, " FROM information_schema.{}", crate::exec::quoted(table));
    let _ = if with_information_schema {
        let own = text("information_schema");
        write!(out, " WHERE {filter} IN ({database}, {own})")
    } else {
        // A comparison with one name spares the server a look into all of them.
        write!(out, " WHERE {filter} = {database}")
    };
    for row in more {
        let _ = write!(out, " UNION ALL SELECT {row}");
    }
    out.push(')');
    out
}

/// A column with the keyspace's name in place of the database's.
fn column(column: &ViewColumn, known: Known<'_>) -> String {
    let name = crate::exec::quoted(&column.name);
    let shown = crate::exec::quoted(&column.shown);
    if known.database != known.keyspace && is_schema_column(&column.name) {
        let (database, keyspace) = (text(known.database), text(known.keyspace));
        return format!("IF({name} = {database}, {keyspace}, {name}) AS {shown}");
    }
    if known.database != known.keyspace && column.name.eq_ignore_ascii_case("VIEW_DEFINITION") {
        // The server writes the names in it, each in full and in quotes.
        let from = text(&format!("{}.", crate::exec::quoted(known.database)));
        let to = text(&format!("{}.", crate::exec::quoted(known.keyspace)));
        return format!("REPLACE({name}, {from}, {to}) AS {shown}");
    }
    if name == shown {
        return name;
    }
    format!("{name} AS {shown}")
}

/// A string that means the same under every `sql_mode` and character set.
pub(super) fn text(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.` ".contains(&b);
    if value.bytes().all(plain) {
        format!("_utf8mb4'{value}'")
    } else {
        format!("_utf8mb4 x'{}'", super::literal::hex(value.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    const SHOP: Known<'_> = Known {
        database: "shop_00",
        keyspace: "shop",
    };

    fn columns(names: &[&str], sql: &str) -> Vec<ViewColumn> {
        let options = LexOptions {
            flavor: Flavor::MariaDb,
            ..LexOptions::default()
        };
        let names: Vec<_> = names.iter().map(|n| (*n).to_owned()).collect();
        spelled(&lex(sql.as_bytes(), &options).unwrap(), &names)
    }

    #[test]
    fn a_table_shows_its_own_rows_under_the_keyspaces_name() {
        let columns = columns(&["TABLE_SCHEMA", "VIEW_DEFINITION"], "SELECT *");
        assert_eq!(
            derived("VIEWS", "TABLE_SCHEMA", &columns, SHOP, false, &[]),
            "(SELECT IF(`TABLE_SCHEMA` = _utf8mb4'shop_00', _utf8mb4'shop', `TABLE_SCHEMA`) AS `TABLE_SCHEMA`, \
             REPLACE(`VIEW_DEFINITION`, _utf8mb4'`shop_00`.', _utf8mb4'`shop`.') AS `VIEW_DEFINITION` \
             FROM information_schema.`VIEWS` WHERE TABLE_SCHEMA = _utf8mb4'shop_00')"
        );
    }

    #[test]
    fn columns_are_called_as_the_statement_calls_them() {
        let same = Known {
            database: "shop",
            keyspace: "shop",
        };
        let columns = columns(
            &["TABLE_SCHEMA", "TABLE_NAME", "ENGINE"],
            "SELECT t.table_name, ENGINE",
        );
        assert_eq!(
            derived("tables", "TABLE_SCHEMA", &columns, same, true, &["1".into()]),
            "(SELECT `TABLE_SCHEMA`, `TABLE_NAME` AS `table_name`, `ENGINE` FROM information_schema.`tables` \
             WHERE TABLE_SCHEMA IN (_utf8mb4'shop', _utf8mb4'information_schema') UNION ALL SELECT 1)"
        );
    }

    #[test]
    fn a_string_survives_every_sql_mode() {
        assert_eq!(text("a'b\\"), "_utf8mb4 x'6127625c'");
    }
}
