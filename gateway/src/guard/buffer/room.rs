//! The room that all shards' buffers share.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::base::ShardId;

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Requests.
    pub(super) requests: usize,
    /// Bytes of their statements.
    pub(super) bytes: usize,
}

/// Who takes up how much. Of the whole, half is kept in equal parts for the shards: each may always use its own part, and
/// the rest is whoever's comes first. So one shard alone has most of the room, and none of them all of it.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    whole: Load,
    shards: usize,
    used: HashMap<ShardId, Load>,
}

impl Room {
    /// Room for so much, among so many shards.
    pub(super) fn resize(&self, whole: Load, shards: usize) {
        let mut inner = self.lock();
        inner.whole = whole;
        inner.shards = shards.max(1);
    }

    /// Requests that it holds at most.
    pub(super) fn size(&self) -> usize {
        self.lock().whole.requests
    }

    /// Takes room for one request of a shard, if there is any for it.
    pub(super) fn take(&self, shard: &ShardId, bytes: usize) -> bool {
        let mut inner = self.lock();
        let mine = inner.used.get(shard).copied().unwrap_or_default();
        let fits = inner.fits(shard, mine.requests, 1, |l| l.requests)
            && inner.fits(shard, mine.bytes, bytes, |l| l.bytes);
        if fits {
            let mine = inner.used.entry(shard.clone()).or_default();
            mine.requests += 1;
            mine.bytes += bytes;
        }
        fits
    }

    /// Whether there would be room for one request of a shard if none of its others were there.
    pub(super) fn could_take(&self, shard: &ShardId, bytes: usize) -> bool {
        let inner = self.lock();
        inner.fits(shard, 0, 1, |l| l.requests) && inner.fits(shard, 0, bytes, |l| l.bytes)
    }

    /// Whether an empty room would hold one request of so many bytes.
    pub(super) fn could_hold(&self, bytes: usize) -> bool {
        let inner = self.lock();
        let most = |whole: usize| whole - inner.shards.saturating_sub(1) * inner.kept(whole);
        most(inner.whole.requests) >= 1 && most(inner.whole.bytes) >= bytes
    }

    /// Gives back what one request took.
    pub(super) fn give_back(&self, shard: &ShardId, bytes: usize) {
        let mut inner = self.lock();
        let Some(mine) = inner.used.get_mut(shard) else {
            return;
        };
        mine.requests = mine.requests.saturating_sub(1);
        mine.bytes = mine.bytes.saturating_sub(bytes);
        if mine.requests == 0 {
            inner.used.remove(shard);
        }
    }

    /// What a shard takes up.
    pub(super) fn of(&self, shard: &ShardId) -> Load {
        self.lock().used.get(shard).copied().unwrap_or_default()
    }

    /// A poisoned lock means a panic between two additions: at worst some room is lost.
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// What is kept for each shard of a whole.
    fn kept(&self, whole: usize) -> usize {
        whole / (2 * self.shards.max(1))
    }

    fn fits(&self, shard: &ShardId, mine: usize, more: usize, part: impl Fn(&Load) -> usize) -> bool {
        let whole = part(&self.whole);
        let kept = self.kept(whole);
        if mine + more <= kept {
            return true;
        }
        let others: usize = self
            .used
            .iter()
            .filter(|(id, _)| *id != shard)
            .map(|(_, l)| part(l).max(kept))
            .sum();
        let waiting = self.used.keys().filter(|id| *id != shard).count();
        let absent = self.shards.saturating_sub(waiting + 1);
        mine + more + others + absent * kept <= whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &Room, shard: &ShardId, bytes: usize) -> usize {
        std::iter::repeat_with(|| room.take(shard, bytes))
            .take_while(|took| *took)
            .count()
    }

    fn room(requests: usize, bytes: usize, shards: usize) -> Room {
        let room = Room::default();
        room.resize(Load { requests, bytes }, shards);
        room
    }

    #[test]
    fn one_shard_has_most_of_it_and_the_others_parts_are_kept() {
        let ids: Vec<ShardId> = (0..4).map(|n| ShardId::new("k", n.to_string())).collect();
        let room = room(1000, 1 << 20, 4);
        // A half in four parts of 125, of which three are others'.
        assert_eq!(fill(&room, &ids[0], 1), 625);
        assert_eq!(
            ids[1..].iter().map(|id| fill(&room, id, 1)).collect::<Vec<_>>(),
            [125, 125, 125]
        );
        room.give_back(&ids[0], 1);
        assert!(room.take(&ids[3], 1) && !room.take(&ids[0], 1));
    }

    #[test]
    fn bytes_are_bounded_like_requests() {
        let ids: Vec<ShardId> = (0..2).map(|n| ShardId::new("k", n.to_string())).collect();
        let room = room(1000, 1000, 2);
        assert_eq!(fill(&room, &ids[0], 100), 7);
        assert_eq!(fill(&room, &ids[1], 100), 3);
        assert!(!room.take(&ids[1], 2000));
        assert_eq!(
            room.of(&ids[0]),
            Load {
                requests: 7,
                bytes: 700
            }
        );
    }

    #[test]
    fn what_an_empty_room_does_not_hold_is_known() {
        // A half in two parts of 250, of which one is another's.
        let room = room(1000, 1000, 2);
        assert!(room.could_hold(750) && !room.could_hold(751));
        let id = ShardId::new("k", "0");
        assert!(room.take(&id, 750) && !room.could_take(&ShardId::new("k", "1"), 751));
    }

    #[test]
    fn a_small_room_is_the_first_ones() {
        let room = room(2, 1000, 4);
        assert_eq!(fill(&room, &ShardId::new("k", "0"), 1), 2);
        assert_eq!(fill(&room, &ShardId::new("k", "1"), 1), 0);
    }
}
