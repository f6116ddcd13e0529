//! From a server's rows to facts. Pure: columns are found by name, since their order and number differ between servers
//! and versions, and what is missing or NULL stays unknown.

use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::ColumnDef;
use shardgate_wire::codec::text;

use crate::topology::{
    Channel, Facts, Heartbeat, Identity, PollError, Position, Replication, Thread, UnknownReplication,
};

/// One row, its cells by their columns' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedRow(Vec<(String, Option<String>)>);

impl NamedRow {
    /// Reads a row of the text protocol. A cell that cannot be read is NULL, as is everything behind it.
    pub(super) fn new(columns: &[ColumnDef], row: &Bytes) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut cells = text::cells(row);
        Self(
            columns
                .iter()
                .map(|column| {
                    let cell = cells.next().and_then(Result::ok).flatten().map(text);
                    (text(&column.name), cell)
                })
                .collect(),
        )
    }

    /// The first two cells, where neither is NULL.
    pub(super) fn into_pair(self) -> Option<(String, String)> {
        let mut cells = self.0.into_iter().map(|(_, cell)| cell);
        Some((cells.next()??, cells.next()??))
    }

    /// The first cell, where it is not NULL.
    pub(super) fn first(&self) -> Option<&str> {
        self.0.first().and_then(|(_, cell)| cell.as_deref())
    }

    /// A cell by any of the names its column may have; `None` if it is NULL or there is no such column.
    fn get(&self, names: &[&str]) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| names.iter().any(|n| n.eq_ignore_ascii_case(name)))
            .and_then(|(_, cell)| cell.as_deref())
    }

    fn has(&self, names: &[&str]) -> bool {
        self.0
            .iter()
            .any(|(name, _)| names.iter().any(|n| n.eq_ignore_ascii_case(name)))
    }

    fn number<T: std::str::FromStr>(&self, names: &[&str]) -> Option<T> {
        self.get(names)?.trim().parse().ok()
    }
}

/// The variables that make up a server's facts; each server has some of them.
pub(super) const VARIABLES: [&str; 13] = [
    "version",
    "read_only",
    "super_read_only",
    "server_id",
    "hostname",
    "port",
    "server_uuid",
    "server_uid",
    "gtid_current_pos",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "log_slave_updates",
    "gtid_executed",
];

/// Facts from one row of variables and what is known of replication.
pub(super) fn facts(
    variables: &NamedRow,
    replication: Replication,
    heartbeat: Option<Heartbeat>,
    uptime: Option<Duration>,
    bypasses_read_only: Option<String>,
) -> Result<Facts, PollError> {
    let read_only = variables
        .get(&["read_only"])
        .map(is_on)
        .ok_or_else(|| PollError::Strange("the server has no @@read_only".into()))?;
    Ok(Facts {
        read_only,
        super_read_only: variables.get(&["super_read_only"]).map(is_on),
        replication,
        position: position(variables),
        heartbeat,
        identity: Identity {
            version: variables.get(&["version"]).unwrap_or_default().to_owned(),
            server_id: variables.number(&["server_id"]),
            hostname: variables.get(&["hostname"]).map(str::to_owned),
            port: variables.number(&["port"]),
            server_uuid: variables
                .get(&["server_uuid", "server_uid"])
                .filter(|uuid| !uuid.is_empty())
                .map(str::to_owned),
        },
        uptime,
        bypasses_read_only,
    })
}

/// The privilege by which a user may write through `read_only`, by the rows of SHOW GRANTS: `SUPER`, `MariaDB`'s `READ ONLY
/// ADMIN`, `MySQL`'s `CONNECTION_ADMIN`, or all of them. They are global, so only grants on everything count.
pub(in crate::tablet) fn bypasses_read_only<'a>(grants: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const BYPASSING: [&str; 5] = [
        "ALL PRIVILEGES",
        "SUPER",
        "READ ONLY ADMIN",
        "READ_ONLY ADMIN",
        "CONNECTION_ADMIN",
    ];
    grants.into_iter().find_map(|grant| {
        let (privileges, on) = grant.strip_prefix("GRANT ")?.split_once(" ON ")?;
        let granted: Vec<&str> = privileges.split(',').map(str::trim).collect();
        let found = BYPASSING.iter().find(|b| granted.contains(b))?;
        on.starts_with("*.* TO ").then(|| (*found).to_owned())
    })
}

/// Newer servers know more than ON and OFF; whatever is not off forbids some writes.
fn is_on(text: &str) -> bool {
    !matches!(text, "0" | "OFF" | "off")
}

/// `gtid_current_pos` joins what a `MariaDB` wrote itself and what it applied. It leaves out what it wrote under an
/// earlier server id, so an empty one falls back to the binary log's. With `log_slave_updates` the log has both.
fn position(variables: &NamedRow) -> Option<Position> {
    if let Some(executed) = variables.get(&["gtid_executed"]) {
        return Position::of_mysql(executed);
    }
    let of = |name| variables.get(&[name]).map(Position::of_mariadb);
    let last = match (of("gtid_current_pos"), of("gtid_binlog_pos")) {
        (Some(Some(current)), Some(Some(binlog))) if current.is_empty() => Some(binlog),
        (Some(current), _) => current,
        (None, binlog) => binlog.flatten(),
    };
    match variables.get(&["gtid_binlog_state"]) {
        Some(state) if variables.get(&["log_slave_updates"]).is_some_and(is_on) => {
            last.map(|position| position.with_log(state))
        }
        Some(_) | None => last,
    }
}

const IO: [&str; 2] = ["Slave_IO_Running", "Replica_IO_Running"];
const SQL: [&str; 2] = ["Slave_SQL_Running", "Replica_SQL_Running"];

/// Channels from the rows of a replica's status, in either of the servers' vocabularies.
pub(super) fn channels(rows: &[NamedRow]) -> Replication {
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        if !row.has(&IO) || !row.has(&SQL) {
            return Replication::Unknown(UnknownReplication::Strange(
                "it has no columns for the two threads".into(),
            ));
        }
        out.push(Channel {
            name: row
                .get(&["Connection_name", "Channel_Name"])
                .unwrap_or_default()
                .to_owned(),
            source_host: row
                .get(&["Master_Host", "Source_Host"])
                .unwrap_or_default()
                .to_owned(),
            source_port: row.number(&["Master_Port", "Source_Port"]).unwrap_or_default(),
            io: thread(row.get(&IO)),
            sql: thread(row.get(&SQL)),
            seconds_behind: row.number(&["Seconds_Behind_Master", "Seconds_Behind_Source"]),
            error: error(row),
        });
    }
    Replication::Channels(out)
}

fn thread(text: Option<&str>) -> Thread {
    match text {
        Some("Yes") => Thread::Running,
        Some("Connecting" | "Preparing") => Thread::Connecting,
        Some(_) | None => Thread::Stopped,
    }
}

/// The error that stands in a channel's way: the applying thread's, else the fetching one's. Its text may quote rows, so
/// only its number is kept.
fn error(row: &NamedRow) -> String {
    let number = |name: &str| row.number::<u32>(&[name]).filter(|n| *n != 0);
    match number("Last_SQL_Errno").or_else(|| number("Last_IO_Errno")) {
        Some(errno) => format!("error {errno}"),
        None => String::new(),
    }
}

/// The newest beat from the one row of a heartbeat table's question.
pub(super) fn heartbeat(rows: &[NamedRow]) -> Heartbeat {
    rows.first()
        .and_then(|row| row.get(&["ts"]))
        .and_then(micros)
        .map_or(Heartbeat::Empty, Heartbeat::Beat)
}

/// A beat's time in microseconds. Dates and times as the servers and `pt-heartbeat` write them
/// (`2026-01-31T12:00:00.123456`), without a zone: only differences between beats count. Whole numbers are seconds,
/// milliseconds, microseconds or, as Vitess writes them, nanoseconds since 1970, told apart by their size, which is not
/// ambiguous for any time from 1973 on.
fn micros(text: &str) -> Option<i128> {
    let text = text.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        let number: i128 = text.parse().ok()?;
        return Some(if number < 100_000_000_000 {
            number * 1_000_000
        } else if number < 100_000_000_000_000 {
            number * 1_000
        } else if number < 100_000_000_000_000_000 {
            number
        } else {
            number / 1_000
        });
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let three = |text: &str, by: char| -> Option<[i128; 3]> {
        let numbers = text.split(by).map(|n| n.parse::<u32>().ok().map(i128::from));
        numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (three(date, '-')?, three(time, ':')?);
    let valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61
        && year < 10_000
        && fraction.bytes().all(|b| b.is_ascii_digit());
    if !valid {
        return None;
    }
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + digits.parse::<i128>().ok()?)
}

/// Days since 1970 in the proleptic Gregorian calendar; years begin in March, so that a leap day is a year's last.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The statements that show a replica's status, the likeliest for this version first.
pub(super) fn status_statements(version: &str) -> [&'static str; 3] {
    const MARIADB: &str = "SHOW ALL SLAVES STATUS";
    const MODERN: &str = "SHOW REPLICA STATUS";
    const OLD: &str = "SHOW SLAVE STATUS";
    if version.to_ascii_lowercase().contains("mariadb") {
        return [MARIADB, MODERN, OLD];
    }
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|n| n.parse::<u32>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    // `MySQL` has had the new words since 8.0.22 and none but them since 8.4.
    if (next(), next(), next()) >= (8, 0, 22) {
        [MODERN, OLD, MARIADB]
    } else {
        [OLD, MODERN, MARIADB]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, Option<&str>)]) -> NamedRow {
        NamedRow(
            cells
                .iter()
                .map(|(name, cell)| ((*name).to_owned(), cell.map(str::to_owned)))
                .collect(),
        )
    }

    fn one(rows: &[NamedRow]) -> Channel {
        match channels(rows) {
            Replication::Channels(mut channels) if channels.len() == 1 => channels.remove(0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_vocabularies_say_the_same() {
        let maria = row(&[
            ("Connection_name", Some("")),
            ("Slave_SQL_State", Some("")),
            ("Master_Host", Some("10.0.0.1")),
            ("Master_Port", Some("3306")),
            ("Slave_IO_Running", Some("Yes")),
            ("Slave_SQL_Running", Some("Yes")),
            ("Seconds_Behind_Master", Some("3")),
            ("Last_SQL_Errno", Some("0")),
            ("Last_IO_Errno", Some("0")),
        ]);
        let mysql = row(&[
            ("Replica_IO_State", Some("")),
            ("Source_Host", Some("10.0.0.1")),
            ("Source_Port", Some("3306")),
            ("Replica_IO_Running", Some("Yes")),
            ("Replica_SQL_Running", Some("Yes")),
            ("Seconds_Behind_Source", Some("3")),
            ("Channel_Name", Some("")),
        ]);
        let channel = one(&[maria]);
        assert_eq!(channel, one(&[mysql]));
        assert!(channel.is_running());
        assert_eq!((channel.seconds_behind, channel.source_port), (Some(3), 3306));
    }

    #[test]
    fn null_is_unknown_and_a_reconnecting_thread_is_started() {
        let channel = one(&[row(&[
            ("Slave_IO_Running", Some("Connecting")),
            ("Slave_SQL_Running", Some("No")),
            ("Seconds_Behind_Master", None),
            ("Last_IO_Errno", Some("2003")),
            ("Last_SQL_Errno", Some("1062")),
            ("Last_SQL_Error", Some("Duplicate entry 'secret' for key")),
        ])]);
        assert_eq!((channel.io, channel.sql), (Thread::Connecting, Thread::Stopped));
        assert_eq!(channel.seconds_behind, None);
        assert!(channel.is_started() && !channel.is_running());
        assert_eq!(channel.error, "error 1062");
    }

    #[test]
    fn rows_that_are_no_status_are_unknown_not_no_replication() {
        assert!(matches!(
            channels(&[row(&[("Value", Some("Yes"))])]),
            Replication::Unknown(UnknownReplication::Strange(_))
        ));
        assert_eq!(channels(&[]), Replication::Channels(Vec::new()));
    }

    #[test]
    fn variables_are_taken_by_name_and_absent_ones_stay_unknown() {
        let mariadb = row(&[
            ("gtid_current_pos", Some("0-1-7")),
            ("gtid_binlog_pos", Some("0-1-6")),
            ("read_only", Some("0")),
            ("server_id", Some("1")),
            ("version", Some("10.11.6-MariaDB")),
        ]);
        let found = facts(&mariadb, Replication::Channels(vec![]), None, None, None).unwrap();
        assert!(found.writable());
        assert_eq!(found.super_read_only, None);
        assert_eq!(found.position, Position::of_mariadb("0-1-7"));
        assert_eq!((found.identity.server_id, found.identity.port), (Some(1), None));

        let mysql = row(&[
            ("read_only", Some("0")),
            ("super_read_only", Some("ON")),
            ("gtid_executed", Some("u:1-5")),
            ("server_uuid", Some("u")),
        ]);
        let found = facts(&mysql, Replication::Channels(vec![]), None, None, None).unwrap();
        assert!(!found.writable() && !found.read_only);
        assert_eq!(found.position, Position::of_mysql("u:1-5"));
        assert_eq!(found.identity.server_uuid.as_deref(), Some("u"));
    }

    #[test]
    fn only_global_privileges_that_pass_read_only_count() {
        for (grant, expected) in [
            (
                "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
                Some("ALL PRIVILEGES"),
            ),
            ("GRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`", None),
            (
                "GRANT SELECT, INSERT, SUPER, PROCESS ON *.* TO `app`@`%`",
                Some("SUPER"),
            ),
            (
                "GRANT SELECT, READ ONLY ADMIN ON *.* TO `app`@`%`",
                Some("READ ONLY ADMIN"),
            ),
            (
                "GRANT CONNECTION_ADMIN,BACKUP_ADMIN ON *.* TO `app`@`%`",
                Some("CONNECTION_ADMIN"),
            ),
            ("GRANT CONNECTION ADMIN ON *.* TO `app`@`%`", None),
            ("GRANT SELECT, SLAVE MONITOR ON *.* TO `super`@`%`", None),
            ("GRANT USAGE ON *.* TO `SUPER`@`%`", None),
            ("GRANT `SUPER`@`%` TO `app`@`%`", None),
        ] {
            assert_eq!(bypasses_read_only([grant]).as_deref(), expected, "{grant}");
        }
        let rows = ["GRANT USAGE ON *.* TO `a`@`%`", "GRANT SUPER ON *.* TO `a`@`%`"];
        assert_eq!(bypasses_read_only(rows).as_deref(), Some("SUPER"));
    }

    #[test]
    fn an_empty_current_position_falls_back_to_the_binary_log() {
        let with = |current: &str, binlog: &str| {
            position(&row(&[
                ("gtid_current_pos", Some(current)),
                ("gtid_binlog_pos", Some(binlog)),
            ]))
        };
        assert_eq!(with("", "0-1-6"), Position::of_mariadb("0-1-6"));
        assert_eq!(with("", ""), Position::of_mariadb(""));
        assert_eq!(with("garbage", "0-1-6"), None);
        assert_eq!(position(&row(&[("read_only", Some("0"))])), None);
    }

    #[test]
    fn a_log_of_everything_tells_of_whom_a_position_is() {
        let with = |updates: &str| {
            let log = row(&[
                ("gtid_current_pos", Some("0-1-9")),
                ("gtid_binlog_state", Some("0-1-9")),
                ("log_slave_updates", Some(updates)),
            ]);
            position(&log).unwrap()
        };
        let other = Position::of_mariadb("0-2-5").unwrap();
        assert!(!with("ON").contains(&other));
        assert!(with("OFF").contains(&other), "what it replicated is in no log");
    }

    #[test]
    fn a_server_without_read_only_is_no_server_we_know() {
        let found = facts(&row(&[]), Replication::Channels(vec![]), None, None, None);
        assert!(matches!(found, Err(PollError::Strange(_))));
    }

    #[test]
    fn beats_are_read_in_every_shape_they_are_written_in() {
        for (text, expected) in [
            ("1970-01-02 00:00:01", 86_401_000_000),
            ("2024-02-29T12:30:45.5", 1_709_209_845_500_000),
            ("2024-03-01 00:00:00.000001", 1_709_251_200_000_001),
            ("1709209845", 1_709_209_845_000_000),
            ("1709209845500", 1_709_209_845_500_000),
            ("1709209845500000", 1_709_209_845_500_000),
            ("1709209845500000999", 1_709_209_845_500_000),
        ] {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "now",
            "2024-02-29",
            "2024-13-01 00:00:00",
            "2024-01-01 24:00:00",
            "-1",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(heartbeat(&[]), Heartbeat::Empty);
        assert_eq!(heartbeat(&[row(&[("ts", None)])]), Heartbeat::Empty);
    }

    #[test]
    fn the_likeliest_statement_comes_first() {
        for (version, first) in [
            ("10.11.6-MariaDB-log", "SHOW ALL SLAVES STATUS"),
            ("8.0.36", "SHOW REPLICA STATUS"),
            ("8.0.22-13", "SHOW REPLICA STATUS"),
            ("8.0.21", "SHOW SLAVE STATUS"),
            ("5.7.44-log", "SHOW SLAVE STATUS"),
            ("9.1.0", "SHOW REPLICA STATUS"),
            ("", "SHOW SLAVE STATUS"),
        ] {
            assert_eq!(status_statements(version)[0], first, "{version}");
        }
    }
}
