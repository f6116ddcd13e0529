//! The `mysql` command-line client.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::{tools, wait};

const LIMIT: Duration = Duration::from_mins(1);

/// How to call it.
#[derive(Clone, Debug)]
pub struct Cli {
    addr: SocketAddr,
    user: String,
    password: Option<String>,
    options: Vec<String>,
}

/// What it printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Its exit code.
    pub code: i32,
    /// Rows, tab-separated, one a line, without column names.
    pub stdout: String,
    /// Errors.
    pub stderr: String,
}

impl Cli {
    /// As `mysql --comments -h 127.0.0.1 -P port -u user`.
    pub fn new(addr: SocketAddr, user: &str) -> Self {
        Self {
            addr,
            user: user.to_owned(),
            password: None,
            options: Vec::new(),
        }
    }

    /// With a password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// With a further option, such as `--ssl-verify-server-cert` or a database's name.
    #[must_use]
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Feeds it the statements as a person would type them; they must all succeed. Gives the rows it printed.
    pub async fn ok(&self, sql: &str) -> String {
        let printed = self.run(sql).await;
        assert!(printed.code == 0, "{sql}\n{}{}", printed.stdout, printed.stderr);
        printed.stdout
    }

    /// Feeds it the statements; it stops at the first that fails.
    pub async fn run(&self, sql: &str) -> Printed {
        let mut command = Command::new(tools::mysql_client());
        command
            .args([
                "--no-defaults",
                "--comments",
                "--batch",
                "--skip-column-names",
                "--protocol=tcp",
            ])
            .arg(format!("--host={}", self.addr.ip()))
            .arg(format!("--port={}", self.addr.port()))
            .arg(format!("--user={}", self.user))
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(password) = &self.password {
            command.env("MYSQL_PWD", password);
        }
        let mut child = command.spawn().expect("the mysql client starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let feed = async {
            // It may refuse to go on before it has read everything; what it prints says why.
            let _unread = stdin.write_all(sql.as_bytes()).await;
            drop(stdin);
        };
        let both = async { futures::join!(feed, child.wait_with_output()).1 };
        let out = wait::within("the mysql client", LIMIT, both)
            .await
            .expect("the mysql client can be waited for");
        Printed {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }
}
