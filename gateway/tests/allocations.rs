//! How often the gateway allocates for a point select: a cost that does not depend on the machine or on what else runs
//! on it, so that a regression shows. Times are measured by the bench.
//!
//! The whole gateway runs on this thread, whose allocations are counted; client and tablets run on others.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc;

use shardgate::config::Config;
use shardgate::server::Gateway;
use shardgate_tablet_sim::{SimOptions, SimTablet};
use shardgate_wire::auth::Password;
use shardgate_wire::client::{Address, ConnectOptions, Head, RowEvent, TabletConn};
use shardgate_wire::protocol::command;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Selects in one round.
const SELECTS: u64 = 100;

/// Rounds. The best one counts: in the others something that is not on a select's path ran too.
const ROUNDS: usize = 8;

/// Rows of each table.
const ROWS: u64 = 64;

/// How a select is sent.
#[derive(Clone, Copy, Debug)]
enum Way {
    Text,
    Prepared,
}

/// A keyspace whose databases are called like it, and one whose are not, which costs a renaming of columns.
const KEYSPACES: [(&str, &str); 2] = [("same", "same"), ("other", "other_")];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Tablets on a thread of their own, for as long as the sender lives.
fn tablets() -> (Vec<(String, String)>, oneshot::Sender<()>) {
    let (ready, started) = mpsc::channel();
    let (alive, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let mut tablets = Vec::new();
            let mut places = Vec::new();
            for (keyspace, database) in KEYSPACES {
                let tablet = SimTablet::start(SimOptions {
                    alias: keyspace.into(),
                    databases: vec![database.into()],
                    ..SimOptions::default()
                });
                let tablet = tablet.await.unwrap();
                let rows: Vec<_> = (1..=ROWS).map(|n| format!("({n}, {n}, 'row {n}')")).collect();
                let sql = format!(
                    "USE {database}; CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, pad VARCHAR(60)); \
                     INSERT INTO t VALUES {}",
                    rows.join(", ")
                );
                tablet.execute_local(&sql).await.unwrap();
                places.push((database.to_owned(), tablet.addr().to_string()));
                tablets.push(tablet);
            }
            ready.send(places).unwrap();
            let _ = ended.await;
        });
    });
    (started.recv().unwrap(), alive)
}

fn config(places: &[(String, String)]) -> Config {
    let mut file = String::from(
        "[listen]\nmysql = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[users]]\nname = \"root\"\n\
         password_hash = \"\"\n[backend]\nuser = \"root\"\n[poller]\ninterval = \"1m\"\ntimeout = \"10s\"\n",
    );
    for ((keyspace, _), (database, addr)) in KEYSPACES.iter().zip(places) {
        write!(
            file,
            "[keyspaces.{keyspace}]\n[[keyspaces.{keyspace}.shards]]\nname = \"0\"\ndatabase = \"{database}\"\n\
             tablets = [{{ alias = \"{keyspace}-a\", address = \"{addr}\" }}]\n"
        )
        .unwrap();
    }
    Config::parse(&file, Path::new(".")).unwrap()
}

/// One client, on a thread of its own: runs a round whenever it is asked to.
struct Client {
    rounds: mpsc::Sender<oneshot::Sender<()>>,
}

impl Client {
    fn connect(port: u16, keyspace: &str, way: Way) -> Self {
        let (rounds, asked) = mpsc::channel::<oneshot::Sender<()>>();
        let mut options = ConnectOptions::new("root", Password::default());
        options.database = Some(keyspace.into());
        options
            .capabilities
            .set(shardgate_wire::Capabilities::CONNECT_WITH_DB, true);
        std::thread::spawn(move || {
            let runtime = runtime();
            let address = Address::tcp("127.0.0.1", port);
            let mut conn = runtime.block_on(TabletConn::connect(&address, &options)).unwrap();
            let statement = match way {
                Way::Text => None,
                Way::Prepared => Some(runtime.block_on(prepare(&mut conn))),
            };
            while let Ok(done) = asked.recv() {
                runtime.block_on(async {
                    for n in 0..SELECTS {
                        select(&mut conn, statement, n % ROWS + 1).await;
                    }
                });
                let _ = done.send(());
            }
        });
        Self { rounds }
    }

    async fn round(&self) {
        let (done, finished) = oneshot::channel();
        self.rounds.send(done).unwrap();
        finished.await.unwrap();
    }
}

async fn prepare(conn: &mut TabletConn) -> u32 {
    let sql = b"SELECT id, k, pad FROM t WHERE id = ?";
    conn.send(command::STMT_PREPARE, &[sql]).await.unwrap();
    let prepared = conn.read_prepared().await.unwrap().unwrap();
    prepared.ok.statement_id
}

async fn select(conn: &mut TabletConn, statement: Option<u32>, id: u64) {
    match statement {
        None => {
            let sql = format!("SELECT id, k, pad FROM t WHERE id = {id}");
            conn.send_query(sql.as_bytes()).await.unwrap();
        }
        Some(statement) => {
            let mut body = statement.to_le_bytes().to_vec();
            // No cursor, one iteration; no NULL; types follow: one BIGINT.
            body.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 8, 0]);
            body.extend_from_slice(&id.to_le_bytes());
            conn.send(command::STMT_EXECUTE, &[&body]).await.unwrap();
        }
    }
    assert_eq!(conn.read_head().await.unwrap(), Head::ResultSet { columns: 3 });
    conn.read_columns().await.unwrap();
    let mut rows = 0;
    while let RowEvent::Row(_) = conn.next_row().await.unwrap() {
        rows += 1;
    }
    assert_eq!(rows, 1);
}

/// The fewest allocations that a round of selects took, for each select.
#[allow(clippy::cast_precision_loss)] // a few thousand
fn allocations(runtime: &Runtime, port: u16, keyspace: &str, way: Way) -> f64 {
    let client = Client::connect(port, keyspace, way);
    // Plans and pools are made before anything counts.
    runtime.block_on(client.round());
    let round = |_| allocation_counter::measure(|| runtime.block_on(client.round())).count_total;
    let fewest = (0..ROUNDS).map(round).min().unwrap_or(u64::MAX);
    fewest as f64 / SELECTS as f64
}

#[test]
fn a_point_select_allocates_little() {
    let (places, _tablets) = tablets();
    let runtime = runtime();
    let gateway = runtime
        .block_on(Gateway::start(config(&places), None, axum::Router::new()))
        .unwrap();
    let port = gateway.mysql_addr().port();
    let mut seen = String::new();
    let mut over = false;
    for (keyspace, way, most) in [
        ("same", Way::Text, 0.0),
        ("same", Way::Prepared, 3.0),
        ("other", Way::Text, 0.0),
        ("other", Way::Prepared, 3.0),
    ] {
        let count = allocations(&runtime, port, keyspace, way);
        // What belongs to a whole round is not a select's.
        over |= count > most + 0.5;
        writeln!(seen, "{keyspace} {way:?}: {count:.2} allocations, at most {most}").unwrap();
    }
    assert!(!over, "a point select allocates more than it did:\n{seen}");
    runtime.block_on(gateway.shutdown());
}
