//! What all buffers of a gateway share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::room::{Load, Room};
use super::settings::BufferSettings;
use crate::base::clock::Instant;
use crate::base::metrics::Metrics;

/// What all buffers of a gateway share.
#[derive(Debug)]
pub(in crate::guard) struct Common {
    pub(in crate::guard) settings: ArcSwap<BufferSettings>,
    pub(super) room: Room,
    pub(in crate::guard) metrics: Arc<Metrics>,
    /// Where the breakers' time begins.
    pub(in crate::guard) origin: Instant,
    /// Tells that a shard began to buffer: its tablets are to be looked at now.
    pub(in crate::guard) began: Notify,
    /// Shards whose requests have to ask; nearly always none.
    pub(in crate::guard) asking: AtomicUsize,
    /// Counts the changes of all shards' primaries.
    pub(in crate::guard) moves: AtomicU64,
}

impl Common {
    pub(in crate::guard) fn new(metrics: Arc<Metrics>, origin: Instant) -> Self {
        let common = Self {
            settings: ArcSwap::from_pointee(BufferSettings::default()),
            room: Room::default(),
            metrics,
            origin,
            began: Notify::new(),
            asking: AtomicUsize::new(0),
            moves: AtomicU64::new(0),
        };
        common.configure(BufferSettings::default(), 1);
        common
    }

    /// Puts other bounds in force, for so many shards.
    pub(in crate::guard) fn configure(&self, settings: BufferSettings, shards: usize) {
        let whole = Load {
            requests: settings.size,
            bytes: settings.bytes,
        };
        self.room.resize(whole, shards);
        self.metrics
            .buffer
            .size
            .set(i64::try_from(settings.size).unwrap_or(i64::MAX));
        self.settings.store(Arc::new(settings));
    }
}
