//! Private MariaDB servers on loopback: own data directory, free port, settings for speed instead of durability.

use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Row};

use crate::process::Supervised;
use crate::tools;

/// The unprivileged user every server has, besides `root` without a password.
pub const APP_USER: &str = "app";
/// Its password.
pub const APP_PASSWORD: &str = "app-secret";

const START_LIMIT: Duration = Duration::from_mins(1);
/// Another process may take the free port between our look and the server's bind.
const PORT_ATTEMPTS: u32 = 5;

/// Run at each start, so it must not look like a change that a replica of another server lacks.
const INIT_SQL: &str = "SET SESSION sql_log_bin = 0;\n\
    CREATE OR REPLACE USER 'app'@'%' IDENTIFIED BY 'app-secret';\n\
    GRANT ALL ON *.* TO 'app'@'%';\n";

/// Takes back what a gateway's user must not have where the primary may change.
const BELOW_READ_ONLY: &str = "REVOKE READ ONLY ADMIN, SUPER ON *.* FROM 'app'@'%';\n";

/// What the application's user may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppUser {
    /// Everything.
    #[default]
    MayAll,
    /// Everything but writing while the server is read-only.
    ObeysReadOnly,
}

/// One server process; killed and removed on drop.
#[derive(Debug)]
pub struct MariaDb {
    addr: SocketAddr,
    options: Vec<String>,
    user: AppUser,
    process: Supervised,
}

impl MariaDb {
    /// Starts a server and waits until it accepts connections.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further options of `mariadbd`, such as `--read-only=1`.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_for(AppUser::default(), options)
    }

    /// The same with the application's user held to this, from its first moment on and after each restart.
    pub fn start_for(user: AppUser, options: &[&str]) -> Self {
        for _ in 1..PORT_ATTEMPTS {
            if let Some(server) = Self::try_start(user, options) {
                return server;
            }
        }
        Self::try_start(user, options).expect("a free port stays free at least once in a few attempts")
    }

    /// A server shared by all tests of this process, number `n`. Tests keep apart by databases of their own; one that
    /// changes the server itself starts its own.
    pub fn shared(n: usize) -> &'static Self {
        static SERVERS: [OnceLock<MariaDb>; 5] = [const { OnceLock::new() }; 5];
        SERVERS[n].get_or_init(Self::start)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process, for its log.
    pub fn process(&self) -> &Supervised {
        &self.process
    }

    /// A new connection as root.
    pub async fn conn(&self) -> Conn {
        connect(self.addr, "root", None, None).await
    }

    /// A new, empty database with a name no other test has.
    pub async fn create_database(&self, prefix: &str) -> Database {
        let name = unique_name(prefix);
        let mut conn = self.conn().await;
        conn.query_drop(format!("CREATE DATABASE `{name}`"))
            .await
            .expect("the database can be created");
        conn.disconnect().await.expect("the connection closes");
        Database {
            addr: self.addr,
            name,
        }
    }

    /// Kills the server as a crash would; its data stays.
    pub async fn kill(&self) {
        self.process.signal("KILL");
        self.process.ended(START_LIMIT).await;
    }

    /// Starts a killed server again, at its address and with its data.
    pub fn restart(&mut self) {
        self.start_again(&[], &self.process.dir().join("data"));
    }

    /// Starts an empty server in the place of a killed one, with further options that it has until it is restarted.
    pub fn replace(&mut self, options: &[&str]) {
        let lasting = self.options.clone();
        self.start_again(options, &template());
        self.options = lasting;
    }

    fn start_again(&mut self, more: &[&str], data: &Path) {
        let options: Vec<&str> = self
            .options
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        *self =
            Self::launch(self.addr, self.user, &options, data).expect("nobody took the address meanwhile");
    }

    fn try_start(user: AppUser, options: &[&str]) -> Option<Self> {
        Self::launch(free_addr(), user, options, &template())
    }

    /// A server over a copy of a data directory.
    fn launch(addr: SocketAddr, user: AppUser, options: &[&str], data: &Path) -> Option<Self> {
        let dir = Supervised::directory();
        copy_dir(data, &dir.path().join("data"));
        let init = dir.path().join("init.sql");
        let sql = match user {
            AppUser::MayAll => INIT_SQL.to_owned(),
            AppUser::ObeysReadOnly => format!("{INIT_SQL}{BELOW_READ_ONLY}"),
        };
        fs::write(&init, sql).expect("the private directory is writable");
        let options: Vec<String> = options.iter().map(|&o| o.to_owned()).collect();
        let mut args = server_options(dir.path(), addr);
        args.extend(options.iter().cloned());
        let process = Supervised::start("mariadbd", dir, &tools::program("mariadbd"), &args);
        let server = Self {
            addr,
            options,
            user,
            process,
        };
        server.wait_until_ready().then_some(server)
    }

    /// Whether it came up; false if its port was taken by somebody else meanwhile.
    fn wait_until_ready(&self) -> bool {
        let began = Instant::now();
        while !greets(self.addr) {
            if self.process.exit_code().is_some() && self.process.stderr().contains("Address already in use")
            {
                return false;
            }
            self.process.assert_running();
            assert!(
                began.elapsed() < START_LIMIT,
                "mariadbd is not ready\n{}",
                self.process.report()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        // Somebody else may have taken the port and greet like a server; then ours is about to end.
        self.process.stderr().contains("ready for connections") || {
            std::thread::sleep(Duration::from_millis(50));
            self.wait_until_ready()
        }
    }
}

/// One database of a server.
#[derive(Clone, Debug)]
pub struct Database {
    /// Where its server listens; a fault proxy's address if one stands before it.
    pub addr: SocketAddr,
    /// Its name on that server.
    pub name: String,
}

impl Database {
    /// A new connection as root with this database chosen.
    pub async fn conn(&self) -> Conn {
        connect(self.addr, "root", None, Some(&self.name)).await
    }

    /// Runs statements one after another as root.
    pub async fn run(&self, statements: &[&str]) {
        let mut conn = self.conn().await;
        for sql in statements {
            if let Err(e) = conn.query_drop(*sql).await {
                panic!("on {}: {sql}: {e}", self.name);
            }
        }
        conn.disconnect().await.expect("the connection closes");
    }

    /// The statements that clients other than the asking one run in this database right now.
    pub async fn running(&self) -> Vec<String> {
        let mut conn = self.conn().await;
        let rows: Vec<Row> = conn
            .exec(
                "SELECT info FROM information_schema.processlist \
                 WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info IS NOT NULL AND command <> 'Sleep'",
                (),
            )
            .await
            .expect("the process list can be read");
        conn.disconnect().await.expect("the connection closes");
        rows.into_iter()
            .filter_map(|mut r| r.take::<String, _>(0))
            .collect()
    }
}

/// Connects, or panics with the reason.
pub async fn connect(addr: SocketAddr, user: &str, password: Option<&str>, database: Option<&str>) -> Conn {
    let opts = options(addr, user, password, database);
    match Conn::new(opts).await {
        Ok(conn) => conn,
        Err(e) => panic!("cannot connect to {addr} as {user}: {e}"),
    }
}

/// Options of a connection over TCP that stays over TCP, asks nothing and closes no statement by itself.
pub fn options(addr: SocketAddr, user: &str, password: Option<&str>, database: Option<&str>) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(addr.ip().to_string())
        .tcp_port(addr.port())
        .user(Some(user))
        .pass(password)
        .db_name(database)
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .wait_timeout(Some(28_800))
        .stmt_cache_size(Some(0))
}

/// A name no other test of this run has: several test processes may share a server in turn, never names.
fn unique_name(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{prefix}_{:x}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// An address that nobody listens on right now.
pub fn free_addr() -> SocketAddr {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    probe.local_addr().expect("a bound socket has an address")
}

/// Whether a MySQL server greets there: a packet header, then protocol version 10.
fn greets(addr: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&addr, Duration::from_secs(1)) else {
        return false;
    };
    let mut head = [0_u8; 5];
    stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.read_exact(&mut head).is_ok()
        && head[4] == 10
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

fn server_options(dir: &Path, addr: SocketAddr) -> Vec<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    let mut args = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", path("data")),
        format!("--tmpdir={}", dir.display()),
        format!("--socket={}", path("sock")),
        format!("--pid-file={}", path("pid")),
        format!("--init-file={}", path("init.sql")),
        format!("--bind-address={}", addr.ip()),
        format!("--port={}", addr.port()),
    ];
    let fixed = [
        "--skip-name-resolve",
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_general_ci",
        "--max-allowed-packet=256M",
        "--max-connections=300",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M",
        "--innodb-use-native-aio=0",
        "--innodb-fast-shutdown=2",
        "--innodb-lock-wait-timeout=5",
        "--performance-schema=0",
        "--log-warnings=1",
    ];
    args.extend(fixed.map(str::to_owned));
    if is_root() {
        args.push("--user=root".to_owned());
    }
    args
}

/// An initialised data directory to copy. Making one takes seconds, a copy a moment, so it is made once for a version
/// of the server and kept in the build directory.
fn template() -> PathBuf {
    static TEMPLATE: LazyLock<PathBuf> = LazyLock::new(make_template);
    TEMPLATE.clone()
}

fn make_template() -> PathBuf {
    let version = Command::new(tools::program("mariadbd"))
        .arg("--version")
        .output()
        .expect("mariadbd runs");
    let version = String::from_utf8_lossy(&version.stdout);
    let tag: String = version.chars().filter(char::is_ascii_alphanumeric).collect();
    let home = tools::target_dir().join("harness");
    fs::create_dir_all(&home).expect("the build directory is writable");
    let ready = home.join(format!("datadir-1-{tag}"));
    let lock = File::create(home.join("lock")).expect("the build directory is writable");
    lock.lock().expect("a file can be locked");
    if !ready.exists() {
        let fresh = home.join("fresh");
        let _absent = fs::remove_dir_all(&fresh);
        initialise(&fresh);
        fs::rename(&fresh, &ready).expect("a directory can be renamed beside itself");
    }
    ready
}

fn initialise(data: &Path) {
    let mut command = Command::new(tools::program("mariadb-install-db"));
    command.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
        "--innodb-log-file-size=16M",
    ]);
    command.arg(format!("--datadir={}", data.display()));
    if is_root() {
        command.arg("--user=root");
    }
    let done = command.output().expect("mariadb-install-db runs");
    assert!(
        done.status.success(),
        "mariadb-install-db failed\n{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the private directory is writable");
    for entry in fs::read_dir(from).expect("the template can be read") {
        let entry = entry.expect("the template can be read");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a file has a type").is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a file of the template can be copied");
        }
    }
}
