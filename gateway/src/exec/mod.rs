//! Runs what was planned: asks tablets, gives the client one answer, keeps the transaction honest.

mod acquire;
mod alarm;
mod answer;
mod commit;
mod error;
mod failover;
mod fan;
mod gathered;
mod held;
mod kill;
mod payload;
mod retry;
mod run;
mod scatter;
mod shed;
mod single;
mod transaction;
mod warnings;
mod watch;

pub use crate::route::Rename;
pub use acquire::SLOT_WAIT;
pub use alarm::Alarm;
pub use answer::{Answer, Warning, client_status};
pub use commit::{commit, rollback};
pub use error::{CommitReport, ExecError};
pub use failover::Failover;
pub use held::{Held, Leased};
pub use kill::{Ending, Kill, KillSwitch};
pub use payload::{EncodeParams, Payload};
pub use run::{Leaves, Partial, Run, Told, TransactionMode, Vacant};
pub use transaction::{
    AccessMode, Characteristics, MAX_SAVEPOINTS, TooManySavepoints, Transaction, TransactionState, quoted,
};
pub use watch::{Deadline, Interrupt, Layer, Limits};

use crate::base::{Role, ShardId};
use crate::route::{Divided, GatherPlan, Leg, Monotone};

/// A statement bound to its shards.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Which tablets may run it.
    pub role: Role,
    /// Whether it changes anything: its outcome must be known.
    pub is_write: bool,
    /// Whether it may change something although it reads: it calls a stored function. It is never tried twice.
    pub may_change: bool,
    /// Whether it is DDL, which no transaction undoes.
    pub is_ddl: bool,
    /// How it travels.
    pub payload: Payload<'a>,
    /// How the legs' answers become one.
    pub gather: &'a GatherPlan,
    /// Whether an answer without some of the legs is a part of the true one.
    pub monotone: Monotone,
    /// The leg whose OK packet tells the insert id: the one of the last row.
    pub insert_id_leg: usize,
    /// How an INSERT's rows are divided among the legs, if they are.
    pub divided: Option<&'a Divided>,
    /// For each leg, the name of the shard's database and what the client knows it by; empty if they are the same.
    pub renames: &'a [Rename],
}

impl Statement<'_> {
    /// Whether something may have been changed once it was sent.
    pub fn changes(&self) -> bool {
        self.is_write || self.may_change
    }

    /// The renaming of a leg's column definitions, if its database has another name than the keyspace.
    pub fn rename_of(&self, leg: usize) -> Option<&Rename> {
        self.renames.get(leg).filter(|r| !r.is_identity())
    }
}

/// Runs a statement on its shards and buffers the client's answer; the caller flushes. On an error the client has been
/// sent at most rows: an error packet may follow.
pub async fn execute(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
) -> Result<Answer, ExecError> {
    if let [leg] = legs {
        return single::run(run, statement, leg).await;
    }
    // Boxed, so that a session's future, which is moved about for every command, is not as large as its rarest branch.
    let answer = Box::pin(several(run, statement, legs)).await?;
    if let Some(ok) = &answer.ok {
        run.put_ok(ok, false);
    }
    Ok(answer)
}

async fn several(run: &mut Run<'_>, statement: &Statement<'_>, legs: &[Leg]) -> Result<Answer, ExecError> {
    let reads = scatter::reads_freely(run, statement, legs);
    let implicit = statement.is_write && !statement.is_ddl && !run.transaction.is_active();
    let shards: Vec<ShardId> = legs.iter().map(|leg| leg.shard.clone()).collect();
    let mut failover = Failover::new(run, statement.role);
    loop {
        let result = if reads {
            scatter::read(run, statement, legs, &mut failover).await
        } else {
            let request = || failover::request(statement, legs);
            failover.admit(run, &shards, request).await?;
            if implicit {
                in_transaction(run, statement, (&shards, legs)).await
            } else {
                scatter::run(run, statement, &shards, legs).await
            }
        };
        match result {
            // DDL is not undone on the shards that took it: its error says which they are.
            Err(e) if !statement.is_ddl && failover.again(run, &e).await => {}
            result => {
                run.drained.clear();
                return result;
            }
        }
    }
}

/// A write on several shards in autocommit: all of them or, as far as one can tell, none.
async fn in_transaction(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    (shards, legs): (&[ShardId], &[Leg]),
) -> Result<Answer, ExecError> {
    run.transaction.begin(Characteristics::default());
    run.implicit = true;
    let result = scatter::run(run, statement, shards, legs).await;
    let result = match result {
        Ok(answer) => commit(run.held, &run.limits).await.map(|()| answer),
        Err(e) => {
            rollback(run.held, &run.limits).await;
            Err(e)
        }
    };
    run.implicit = false;
    run.transaction.end();
    result
}
