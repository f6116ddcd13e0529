//! The gateway as its users run it: the built binary, with port 0 and the addresses it prints.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mysql_async::Conn;

use crate::client::Cli;
use crate::fixture::PASSWORD_FILE;
use crate::process::Supervised;
use crate::{mariadb, tools, wait};

const START_LIMIT: Duration = Duration::from_secs(20);

const CONFIG_FILE: &str = "shardgate.toml";

/// A running gateway; killed and removed on drop.
#[derive(Debug)]
pub struct Gateway {
    process: Supervised,
    mysql: SocketAddr,
    admin: SocketAddr,
    ready_after: Duration,
}

impl Gateway {
    /// `shardgate serve --config F` with this text as the file. Listeners should ask for port 0.
    pub fn serve(config: &str) -> Self {
        Self::serve_by(&tools::shardgate(), config)
    }

    /// The same by another binary, as when two builds are compared.
    pub fn serve_by(binary: &Path, config: &str) -> Self {
        let dir = Supervised::directory();
        let file = write_config(dir.path(), config);
        let args = ["serve".to_owned(), "--config".to_owned(), file];
        Self::start("shardgate serve", binary, dir, &args)
    }

    /// `shardgate demo` on free ports, with further options.
    pub fn demo(options: &[&str]) -> Self {
        let ports = [
            "demo",
            "--mysql-addr",
            "127.0.0.1:0",
            "--admin-addr",
            "127.0.0.1:0",
        ];
        let args: Vec<String> = ports.iter().chain(options).map(|&o| o.to_owned()).collect();
        Self::start(
            "shardgate demo",
            &tools::shardgate(),
            Supervised::directory(),
            &args,
        )
    }

    fn start(name: &str, binary: &Path, dir: tempfile::TempDir, args: &[String]) -> Self {
        let began = Instant::now();
        let process = Supervised::start(name, dir, binary, args);
        loop {
            if let Some((mysql, admin)) = printed_addresses(&process.stdout()) {
                return Self {
                    process,
                    mysql,
                    admin,
                    ready_after: began.elapsed(),
                };
            }
            process.assert_running();
            assert!(
                began.elapsed() < START_LIMIT,
                "{name} prints no addresses\n{}",
                process.report()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Where it serves MySQL clients.
    pub fn addr(&self) -> SocketAddr {
        self.mysql
    }

    /// Where it serves operators.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// How long it took from its start to printing its addresses.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Its process.
    pub fn process(&self) -> &Supervised {
        &self.process
    }

    /// Its configuration file, to rewrite before a reload.
    pub fn config_file(&self) -> PathBuf {
        self.process.dir().join(CONFIG_FILE)
    }

    /// A new connection as the application's user.
    pub async fn conn(&self, database: &str) -> Conn {
        mariadb::connect(
            self.mysql,
            mariadb::APP_USER,
            Some(mariadb::APP_PASSWORD),
            Some(database),
        )
        .await
    }

    /// The `mysql` client as the application's user.
    pub fn cli(&self, database: &str) -> Cli {
        Cli::new(self.mysql, mariadb::APP_USER)
            .password(mariadb::APP_PASSWORD)
            .option(database)
    }

    /// An HTTP request with a JSON body to the operators' side.
    pub async fn http_with(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        crate::client::http::request_with(self.admin, method, path, body).await
    }

    /// An HTTP request to the operators' side.
    pub async fn http(&self, method: &str, path: &str) -> (u16, String) {
        crate::client::http::request(self.admin, method, path).await
    }
}

/// What a command that ends by itself did.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Runs `shardgate COMMAND --config F` with this text as the file, to its end.
pub async fn run_with_config(command: &str, options: &[&str], config: &str) -> Ended {
    let dir = Supervised::directory();
    let file = write_config(dir.path(), config);
    let args: Vec<&str> = [command, "--config", &file]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    run(&args).await
}

/// Writes a configuration and the files it may name; gives its path.
fn write_config(dir: &Path, config: &str) -> String {
    let file = dir.join(CONFIG_FILE);
    for (path, text) in [(&file, config), (&dir.join(PASSWORD_FILE), mariadb::APP_PASSWORD)] {
        std::fs::write(path, text).expect("the private directory is writable");
    }
    file.display().to_string()
}

/// Runs the binary to its end.
pub async fn run(args: &[&str]) -> Ended {
    let command = tokio::process::Command::new(tools::shardgate())
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let out = wait::within("the command", START_LIMIT, command)
        .await
        .expect("the binary starts");
    Ended {
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

/// The addresses in what the gateway prints: one on a line that speaks of MySQL, one on a line for operators.
pub(crate) fn printed_addresses(stdout: &str) -> Option<(SocketAddr, SocketAddr)> {
    // The last line may still be being written.
    let whole = stdout[..stdout.rfind('\n')?].to_lowercase();
    let on = |words: &[&str]| {
        let mut lines = whole.lines().filter(|l| words.iter().any(|w| l.contains(w)));
        lines.find_map(|l| l.split_whitespace().find_map(address))
    };
    Some((on(&["mysql"])?, on(&["admin", "http"])?))
}

fn address(word: &str) -> Option<SocketAddr> {
    let word = word.strip_prefix("http://").unwrap_or(word);
    let end = word.rfind(|c: char| c.is_ascii_digit())?;
    word[..=end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_a_person_reads() {
        let text = "shardgate is ready\n  MySQL  127.0.0.1:4001,\n  HTTP   http://127.0.0.1:4002/\n";
        let (mysql, admin) = printed_addresses(text).unwrap();
        assert_eq!((mysql.port(), admin.port()), (4001, 4002));
        let (mysql, admin) = printed_addresses("mysql 127.0.0.1:4001\nadmin 127.0.0.1:4002\n").unwrap();
        assert_eq!((mysql.port(), admin.port()), (4001, 4002));
    }

    #[test]
    fn a_line_still_being_written_is_not_read() {
        assert_eq!(
            printed_addresses("MySQL 127.0.0.1:4001\nHTTP http://127.0.0.1:40"),
            None
        );
    }
}
