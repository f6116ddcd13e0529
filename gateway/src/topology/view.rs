//! The topology in force, swapped as a whole.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Topology;
use super::change::Changes;
use super::error::TopologyError;
use crate::config::Config;

/// Holds the topology in force. Readers never wait; a command takes one snapshot and keeps it to its end.
#[derive(Debug)]
pub struct TopologyView {
    current: ArcSwap<Topology>,
}

impl TopologyView {
    /// Begins with a configuration's topology, as version 1.
    pub fn new(config: &Config) -> Result<Self, TopologyError> {
        Ok(Self {
            current: ArcSwap::from_pointee(Topology::new(1, config)?),
        })
    }

    /// The topology in force.
    #[must_use]
    pub fn load(&self) -> Arc<Topology> {
        self.current.load_full()
    }

    /// Puts a new configuration's topology in force under the next version, and says what changed. On an error the
    /// old one stays.
    pub fn reload(&self, config: &Config) -> Result<Changes, TopologyError> {
        let fresh = Topology::new(0, config)?;
        // The version follows from the topology that is replaced, which another reload may just have changed.
        let old = self.current.rcu(|old| Topology {
            version: old.version + 1,
            keyspaces: fresh.keyspaces.clone(),
        });
        Ok(Changes::between(&old, &fresh))
    }
}
