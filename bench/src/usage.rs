//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::Duration;

use crate::BenchError;

/// The kernel's unit in `/proc/<pid>/stat`: `USER_HZ`, which is 100 on every Linux that a user sees.
const TICK: Duration = Duration::from_millis(10);

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// In the program.
    pub(crate) user: Duration,
    /// In the kernel on its behalf.
    pub(crate) system: Duration,
}

impl Cpu {
    /// What a process has used since its start.
    pub(crate) fn of(pid: u32) -> Result<Self, BenchError> {
        let file = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&file).map_err(|source| BenchError::Io {
            what: file.clone(),
            source,
        })?;
        Self::parse(&text).ok_or_else(|| BenchError::Answer {
            target: file,
            what: "not as proc(5) says".into(),
        })
    }

    /// Fields 14 and 15 of proc(5); the name before them may hold anything.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || Some(TICK * fields.next()?.parse().ok()?);
        Some(Self {
            user: ticks()?,
            system: ticks()?,
        })
    }

    /// What was used since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// Both together.
    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

impl std::ops::AddAssign for Cpu {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// Resident memory in bytes: now, and at most since [`forget_peak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    /// Now.
    pub(crate) now: u64,
    /// At most.
    pub(crate) peak: u64,
}

impl Resident {
    /// Of a process.
    pub(crate) fn of(pid: u32) -> Result<Self, BenchError> {
        let file = format!("/proc/{pid}/status");
        let text = fs::read_to_string(&file).map_err(|source| BenchError::Io {
            what: file.clone(),
            source,
        })?;
        let bytes = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name))?;
            Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
        };
        let read = bytes("VmRSS:").zip(bytes("VmHWM:"));
        read.map(|(now, peak)| Self { now, peak })
            .ok_or_else(|| BenchError::Answer {
                target: file,
                what: "not as proc(5) says".into(),
            })
    }
}

/// Makes the kernel count a process's peak anew from what is resident now.
pub(crate) fn forget_peak(pid: u32) -> Result<(), BenchError> {
    let file = format!("/proc/{pid}/clear_refs");
    fs::write(&file, "5").map_err(|source| BenchError::Io { what: file, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 3 0 100 1000 10";
        let cpu = Cpu::parse(stat).unwrap();
        assert_eq!(cpu.user, Duration::from_millis(2500));
        assert_eq!(cpu.total(), Duration::from_millis(2800));
        assert_eq!(Cpu::parse("7 (a) S 1 7"), None);
    }

    #[test]
    fn this_process_has_memory() {
        let resident = Resident::of(std::process::id()).unwrap();
        assert!(resident.now > 0 && resident.peak >= resident.now);
    }
}
