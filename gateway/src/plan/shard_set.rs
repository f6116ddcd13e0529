//! Sets of a keyspace's shards, as bits.

use smallvec::{SmallVec, smallvec};

/// A set of shards by their place in their keyspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardSet {
    words: SmallVec<[u64; 4]>,
    shards: usize,
}

impl ShardSet {
    /// No shard of `shards`.
    #[must_use]
    pub fn empty(shards: usize) -> Self {
        Self {
            words: smallvec![0; shards.div_ceil(64)],
            shards,
        }
    }

    /// Every shard of `shards`.
    #[must_use]
    pub fn all(shards: usize) -> Self {
        let mut words: SmallVec<[u64; 4]> = smallvec![u64::MAX; shards.div_ceil(64)];
        if let (Some(last), rest @ 1..) = (words.last_mut(), shards % 64) {
            *last = (1 << rest) - 1;
        }
        Self { words, shards }
    }

    /// One shard of `shards`.
    #[must_use]
    pub fn one(shards: usize, index: usize) -> Self {
        let mut set = Self::empty(shards);
        set.insert(index);
        set
    }

    fn insert(&mut self, index: usize) {
        if index < self.shards
            && let Some(word) = self.words.get_mut(index / 64)
        {
            *word |= 1 << (index % 64);
        }
    }

    /// Keeps what is in both.
    pub fn intersect(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Adds what is in the other.
    pub fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Whether a shard is in it.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.words
            .get(index / 64)
            .is_some_and(|w| w & (1 << (index % 64)) != 0)
    }

    /// How many are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// The places of those in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.shards).filter(|i| self.contains(*i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_holds_every_shard_and_none_beyond() {
        for shards in [0, 1, 63, 64, 65, 127, 128, 256] {
            let all = ShardSet::all(shards);
            assert!(all.iter().eq(0..shards), "{shards}");
            assert_eq!(all.len(), shards);
            let mut each = ShardSet::empty(shards);
            (0..shards).for_each(|i| each.unite(&ShardSet::one(shards, i)));
            assert_eq!(all, each);
        }
    }
}
