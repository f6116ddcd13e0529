//! A simulated `MySQL` tablet: the protocol of a server over an embedded `SQLite`, with faults on demand.
//!
//! It is for demonstrations, for faults that a real server does not produce when asked, and for many tablets on one
//! machine. It answers everyday statements as a server would, or refuses them with 1235; it never guesses.
//!
//! ```
//! # async fn example() -> Result<(), shardgate_tablet_sim::SimError> {
//! use shardgate_tablet_sim::{FaultSpec, SimOptions, SimTablet};
//!
//! let tablet = SimTablet::start(SimOptions { databases: vec!["shop".into()], ..SimOptions::default() }).await?;
//! tablet.execute_local("CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1)").await?;
//! tablet.faults().add(&FaultSpec::error(1205).on("FROM t")).expect("a fault that says all it needs");
//! // ... a client connects to tablet.addr() ...
//! tablet.shutdown().await;
//! # Ok(())
//! # }
//! ```

// What a server computes wraps and saturates by its own rules; each site has checked its range or means it.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]
// Tables of names: what a function, a type or a statement is called and what becomes of it. Cutting them up hides them.
#![allow(clippy::too_many_lines)]
#![allow(clippy::similar_names)]
// Building one text out of many parts is what a translator does.
#![allow(clippy::format_push_string)]
// One shape for all entries of a table of functions.
#![allow(clippy::unnecessary_wraps)]
#![allow(clippy::single_match_else)]

mod cluster;
mod engine;
mod error;
mod faults;
mod handle;
mod proxy;
mod repl;
mod rng;
mod server;
mod tablet;

pub use cluster::{
    ClusterOptions, Loss, Reparent, ReparentError, ReparentEvent, ReparentKind, ReparentReport, ShardOptions,
    SimCluster, SimShard, shard_router,
};
pub use error::SqlError;
pub use faults::{
    Clear, FaultKind, FaultPanel, FaultSpec, FaultStatus, Faults, InvalidFault, InvalidTimeline, StepStatus,
    Timeline, TimelineStatus, TimelineStep, faults_router, timeline_router,
};
pub use handle::{LocalRows, SimError, SimOptions, SimTablet};
pub use proxy::{ProxyOptions, SimProxy};
