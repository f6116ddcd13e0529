//! One client and its connection to the server: commands go through one by one, each with what its faults do to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{LexOptions, SqlMode, StatementKind, classify, lex, parse_kill};
use shardgate_wire::codec::OkPacket;
use shardgate_wire::protocol::command;
use shardgate_wire::stream::FLUSH_AT;
use shardgate_wire::{Capabilities, ErrPacket, PacketStream, StatusFlags, Transport, WireError};
use tokio::net::TcpStream;

use super::answer::{Answer, Seen};
use super::held::{Held, Kill};
use super::{Shared, hello};
use crate::error::SqlError;
use crate::faults::Verdict;
use crate::server::err_packet;

/// The longest packet, either way: what the protocol's servers allow at most.
const MAX_PACKET: usize = 1 << 30;
/// How much a client may send ahead while its command runs.
const READ_AHEAD: usize = 256 << 10;
/// The most prepared statements whose texts are kept; of more, faults by text know nothing.
const MAX_STATEMENTS: usize = 16_384;

/// Why a connection ends.
enum End {
    /// A side is gone.
    Wire,
    /// The client's side is reset, for a fault.
    Reset,
    /// KILL.
    Killed,
    /// Without a word.
    Quiet,
}

impl From<WireError> for End {
    fn from(e: WireError) -> Self {
        tracing::trace!(error = %e, "connection ended");
        Self::Wire
    }
}

struct Connection {
    shared: Arc<Shared>,
    client: PacketStream,
    server: PacketStream,
    held: Arc<Held>,
    caps: Capabilities,
    options: LexOptions,
    statements: HashMap<u32, Bytes>,
    status: StatusFlags,
    /// The open transaction has written.
    wrote: bool,
}

/// Serves a client until one side ends it.
pub(super) async fn serve(shared: Arc<Shared>, client: TcpStream, server: TcpStream) {
    let mut client = PacketStream::new(Transport::from(client), MAX_PACKET);
    let mut server = PacketStream::new(Transport::from(server), MAX_PACKET);
    let stop = shared.stop.clone();
    let Some(Ok((caps, id, version))) = stop.run_until_cancelled(greet(&mut client, &mut server)).await
    else {
        return;
    };
    let held = shared.held.enter(id);
    let options = LexOptions::for_server(version.trim_start_matches("5.5.5-"), SqlMode::default());
    let mut connection = Connection {
        shared,
        client,
        server,
        held,
        caps,
        options: options.unwrap_or_default(),
        statements: HashMap::new(),
        status: StatusFlags::empty(),
        wrote: false,
    };
    let end = connection.serve().await;
    connection.shared.held.leave(id, &connection.held);
    connection.close(end).await;
}

/// Greeting, login, and the conversation behind it. On success the server has let the client in.
async fn greet(
    client: &mut PacketStream,
    server: &mut PacketStream,
) -> Result<(Capabilities, u32, String), WireError> {
    let packet = server.read_packet().await?;
    if packet.first() == Some(&ErrPacket::HEADER) {
        client.put_packet(&packet);
        client.flush().await?;
        return Err(WireError::State("the server does not let anybody in"));
    }
    let version = shardgate_wire::codec::Greeting::parse(&packet)?.version;
    let (greeting, id) = hello::greeting(&packet)?;
    client.set_seq(server.seq().wrapping_sub(1));
    client.put_packet(&greeting);
    client.flush().await?;
    let (login, caps) = hello::login(&client.read_packet().await?)?;
    server.put_packet(&login);
    server.flush().await?;
    if authenticate(client, server).await? {
        Ok((caps, id, version))
    } else {
        Err(WireError::State("the server did not let the client in"))
    }
}

/// Passes packets both ways until the server says yes or no.
async fn authenticate(client: &mut PacketStream, server: &mut PacketStream) -> Result<bool, WireError> {
    loop {
        tokio::select! {
            packet = server.read_packet() => {
                let packet = packet?;
                client.set_seq(server.seq().wrapping_sub(1));
                client.put_packet(&packet);
                client.flush().await?;
                match packet.first() {
                    Some(&OkPacket::HEADER) => return Ok(true),
                    Some(&ErrPacket::HEADER) => return Ok(false),
                    _ => {}
                }
            }
            packet = client.read_packet() => {
                let packet = packet?;
                server.set_seq(client.seq().wrapping_sub(1));
                server.put_packet(&packet);
                server.flush().await?;
            }
        }
    }
}

impl Connection {
    async fn serve(&mut self) -> End {
        loop {
            self.client.reset_seq();
            self.server.reset_seq();
            let packet = tokio::select! {
                packet = self.client.read_packet() => match packet {
                    Ok(packet) => packet,
                    Err(e) => return e.into(),
                },
                _ = self.server.closed(READ_AHEAD) => return self.last_words().await,
                () = self.held.dead.cancelled() => return End::Killed,
                () = self.shared.stop.cancelled() => return End::Quiet,
            };
            let out = match self.command(&packet).await {
                Ok(()) => self.flush().await,
                Err(end) => Err(end),
            };
            if let Err(end) = out {
                return end;
            }
            if packet.first() == Some(&command::QUIT) {
                return End::Quiet;
            }
        }
    }

    /// The server has closed: what it said last still goes through.
    async fn last_words(&mut self) -> End {
        while let Ok(Some(packet)) = self.server.next_buffered() {
            self.client.set_seq(self.server.seq().wrapping_sub(1));
            self.client.put_packet(&packet);
        }
        let _ = tokio::time::timeout(Duration::from_millis(200), self.client.flush()).await;
        End::Wire
    }

    async fn close(mut self, end: End) {
        match end {
            End::Reset => {
                let _ = self.client.transport().reset_on_drop();
                return;
            }
            End::Killed => self.put_err(&SqlError::new(1927, *b"70100", "Connection was killed")),
            End::Wire | End::Quiet => {}
        }
        // A client that does not read must not hold up the end.
        let _ = tokio::time::timeout(Duration::from_millis(200), async {
            let _ = self.client.flush().await;
            let _ = self.client.shutdown().await;
        })
        .await;
    }

    fn put_err(&mut self, e: &SqlError) {
        let packet = err_packet(e);
        self.client.put_packet_with(|out| packet.encode(out));
    }

    async fn command(&mut self, packet: &Bytes) -> Result<(), End> {
        let code = *packet.first().ok_or(End::Wire)?;
        let id = packet
            .get(1..5)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes);
        match code {
            command::QUERY => self.statement(packet, &packet.slice(1..)).await,
            command::STMT_EXECUTE => {
                let text = id.and_then(|id| self.statements.get(&id)).cloned();
                self.statement(packet, &text.unwrap_or_default()).await
            }
            command::PING => {
                let verdict = self.shared.faults.judge(None);
                self.held.begin(verdict.ignore_kill || verdict.black_hole);
                if let Some(e) = self.faults_before(&verdict).await? {
                    self.put_err(&e);
                    return Ok(());
                }
                self.forward(packet, &Verdict::default()).await.map(|_| ())
            }
            command::CHANGE_USER => {
                self.server.put_packet(packet);
                self.server.flush().await?;
                self.statements.clear();
                if authenticate(&mut self.client, &mut self.server).await? {
                    Ok(())
                } else {
                    Err(End::Quiet)
                }
            }
            command::PROCESS_KILL => match self.shared.held.kill(u64::from(id.unwrap_or(0)), false) {
                Kill::Forward => self.forward(packet, &Verdict::default()).await.map(|_| ()),
                Kill::Swallow => {
                    self.put_ok();
                    Ok(())
                }
            },
            _ => self.other(code, id, packet).await,
        }
    }

    async fn other(&mut self, code: u8, id: Option<u32>, packet: &Bytes) -> Result<(), End> {
        if self.shared.faults.swallows_connections() {
            return Err(self.black_hole().await);
        }
        let answer = self.forward(packet, &Verdict::default()).await?;
        match (code, answer.and_then(|a| a.prepared), id) {
            (command::STMT_PREPARE, Some(id), _) if self.statements.len() < MAX_STATEMENTS => {
                self.statements.insert(id, packet.slice(1..));
            }
            (command::STMT_CLOSE, _, Some(id)) => {
                self.statements.remove(&id);
            }
            (command::RESET_CONNECTION, ..) => self.statements.clear(),
            _ => {}
        }
        Ok(())
    }

    async fn statement(&mut self, packet: &Bytes, text: &Bytes) -> Result<(), End> {
        let verdict = self.shared.faults.judge(Some(text));
        self.held.begin(verdict.ignore_kill || verdict.black_hole);
        if let Some(e) = self.faults_before(&verdict).await? {
            self.put_err(&e);
            return Ok(());
        }
        let (kind, is_write, kill) = match lex(text, &self.options) {
            Ok(lexed) => {
                let class = classify(&lexed);
                let kill = (class.kind == StatementKind::Kill)
                    .then(|| parse_kill(&lexed))
                    .flatten();
                (class.kind, class.is_write, kill)
            }
            // The server says what is wrong with it.
            Err(_) => (StatementKind::Other, false, None),
        };
        if let Some(kill) = kill
            && self.shared.held.kill(kill.id, kill.query_only) == Kill::Swallow
        {
            self.put_ok();
            return Ok(());
        }
        if self.shared.faults.read_only() {
            let commits = matches!(kind, StatementKind::Commit { .. }) && self.wrote;
            if commits {
                self.roll_back().await?;
            }
            if commits || is_write {
                self.put_err(&SqlError::read_only());
                return Ok(());
            }
        }
        let answer = self.forward(packet, &verdict).await?;
        if let Some(status) = answer.and_then(|a| a.status) {
            self.status = status;
            self.wrote = status.contains(StatusFlags::IN_TRANS) && (self.wrote || is_write);
        }
        Ok(())
    }

    /// Undoes the server's transaction; the client hears nothing of it.
    async fn roll_back(&mut self) -> Result<(), End> {
        self.wrote = false;
        self.server.put_packet_with(|out| {
            out.push(command::QUERY);
            out.extend_from_slice(b"ROLLBACK");
        });
        self.server.flush().await?;
        let mut answer = Answer::to(command::QUERY, self.caps).ok_or(End::Wire)?;
        loop {
            let packet = self.receive().await?;
            if matches!(answer.see(&packet)?, Seen::End | Seen::Failed) {
                return Ok(());
            }
        }
    }

    fn put_ok(&mut self) {
        let (ok, caps) = (OkPacket::with_status(self.status), self.caps);
        self.client
            .put_packet_with(|out| ok.encode(out, OkPacket::HEADER, caps));
    }

    /// The faults that strike before the server hears of it. An error to answer instead, if one.
    async fn faults_before(&mut self, verdict: &Verdict) -> Result<Option<SqlError>, End> {
        if verdict.black_hole {
            return Err(self.black_hole().await);
        }
        if !verdict.delay.is_zero() && !self.wait(Some(verdict.delay)).await? {
            return Ok(Some(SqlError::interrupted()));
        }
        if verdict.reset {
            return Err(End::Reset);
        }
        if verdict.hang && !self.wait(None).await? {
            return Ok(Some(SqlError::interrupted()));
        }
        Ok(verdict.error.clone())
    }

    /// Until the client is gone, which a frozen server would not even notice.
    async fn black_hole(&mut self) -> End {
        tokio::select! {
            () = self.shared.stop.cancelled() => {}
            _ = self.client.closed(READ_AHEAD) => {}
        }
        End::Quiet
    }

    /// Waits inside the proxy; `false`: killed meanwhile.
    async fn wait(&mut self, time: Option<Duration>) -> Result<bool, End> {
        let timer = async {
            match time {
                Some(t) => tokio::time::sleep(t).await,
                None => std::future::pending().await,
            }
        };
        self.held.hold(true);
        let out = tokio::select! {
            () = timer => Ok(true),
            () = self.held.killed() => Ok(false),
            () = self.held.dead.cancelled() => Err(End::Killed),
            () = self.shared.stop.cancelled() => Err(End::Quiet),
            gone = self.client.closed(READ_AHEAD) => Err(End::from(gone)),
        };
        self.held.hold(false);
        out
    }

    /// Sends a command on, and its answer back.
    async fn forward(&mut self, packet: &Bytes, verdict: &Verdict) -> Result<Option<Answer>, End> {
        self.server.put_packet(packet);
        self.server.flush().await?;
        let Some(mut answer) = packet.first().and_then(|code| Answer::to(*code, self.caps)) else {
            return Ok(None);
        };
        let mut rows = 0;
        loop {
            let packet = self.receive().await?;
            let seen = answer.see(&packet)?;
            if verdict.lose_ok {
                if seen == Seen::End {
                    return Err(End::Reset);
                }
                if seen != Seen::Failed {
                    continue;
                }
            }
            if seen == Seen::Row {
                self.fault_on_row(rows, verdict).await?;
                rows += 1;
            }
            self.client.put_packet(&packet);
            if matches!(seen, Seen::End | Seen::Failed) {
                return Ok(Some(answer));
            }
            if self.client.buffered() >= FLUSH_AT {
                self.flush().await?;
            }
        }
    }

    /// Sends what the client has coming; a killed connection does not wait for its client.
    async fn flush(&mut self) -> Result<(), End> {
        tokio::select! {
            sent = self.client.flush() => sent.map_err(End::from),
            () = self.held.dead.cancelled() => Err(End::Quiet),
            () = self.shared.stop.cancelled() => Err(End::Quiet),
        }
    }

    /// The server's next packet; what the client has coming goes out before it is waited for.
    async fn receive(&mut self) -> Result<Bytes, End> {
        if let Some(packet) = self.server.next_buffered()? {
            return Ok(packet);
        }
        self.flush().await?;
        tokio::select! {
            packet = self.server.read_packet() => Ok(packet?),
            gone = self.client.closed(READ_AHEAD) => Err(gone.into()),
            () = self.held.dead.cancelled() => Err(End::Killed),
            () = self.shared.stop.cancelled() => Err(End::Quiet),
        }
    }

    async fn fault_on_row(&mut self, rows: u64, verdict: &Verdict) -> Result<(), End> {
        let stall = verdict
            .stall
            .filter(|(after, _)| rows == *after)
            .map(|(_, time)| time);
        for time in [stall, verdict.slow_rows.map(Some)].into_iter().flatten() {
            self.flush().await?;
            if !self.wait(time).await? {
                return Err(End::Killed);
            }
        }
        Ok(())
    }
}
