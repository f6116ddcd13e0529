//! Child processes that cannot outlive the test process.
//!
//! `Drop` alone is not enough: it does not run for statics, nor when the test process is killed. So each child runs
//! under a shell that holds the read end of a pipe from us. Whatever ends us closes the pipe; the shell then kills the
//! child and removes its directory. Its own process group keeps a terminal's Ctrl-C from ending the shell first.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::wait;

/// `$1` is the directory, the rest the command. Prints the child's id; leaves its exit code in `exit`.
const SUPERVISOR: &str = r#"
dir=$1; shift
exec 3<&0
"$@" </dev/null >"$dir/stdout" 2>"$dir/stderr" 3<&- &
child=$!
echo "$child"
( cat <&3 >/dev/null; [ -e "$dir/exit" ] || kill -KILL "$child" 2>/dev/null ) >/dev/null &
keeper=$!
wait "$child"
code=$?
echo "$code" >"$dir/exit.part"; mv "$dir/exit.part" "$dir/exit"
wait "$keeper"
rm -rf "$dir"
"#;

/// How much of a log is shown when something failed.
const LOG_TAIL: usize = 6000;

/// A running child, its private directory, and its output in files there.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    dir: PathBuf,
    pid: u32,
    supervisor: Child,
}

impl Supervised {
    /// A fresh private directory for a child about to be started.
    pub fn directory() -> TempDir {
        tempfile::Builder::new()
            .prefix("shardgate-test-")
            .tempdir()
            .expect("a temporary directory can be made")
    }

    /// Starts the command; the directory is removed with it.
    pub fn start(name: &str, dir: TempDir, command: &Path, args: &[String]) -> Self {
        let dir = dir.keep();
        let mut supervisor = Command::new("/bin/sh")
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(&dir)
            .arg(command)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("/bin/sh starts");
        let mut line = String::new();
        let stdout = supervisor.stdout.take().expect("stdout is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the supervisor prints the child's id");
        let pid = line.trim().parse().expect("the child's id is a number");
        Self {
            name: name.to_owned(),
            dir,
            pid,
            supervisor,
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its private directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    /// What it has logged so far.
    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Its exit code, once it has ended; 128 and the signal's number if a signal ended it.
    pub fn exit_code(&self) -> Option<i32> {
        std::fs::read_to_string(self.dir.join("exit"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Waits for its end.
    pub async fn ended(&self, limit: Duration) -> i32 {
        let what = format!("the end of {}", self.name);
        wait::until(&what, limit, || async { self.exit_code() }).await
    }

    /// Panics with its output if it has ended: for loops that wait for it to be ready.
    pub fn assert_running(&self) {
        if let Some(code) = self.exit_code() {
            panic!("{} ended with code {code}\n{}", self.name, self.report());
        }
    }

    /// Sends a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let done = Command::new("/bin/sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "kill", name, &self.pid.to_string()])
            .status()
            .expect("/bin/sh starts");
        assert!(done.success(), "{} cannot be sent {name}", self.name);
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the child runs");
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS:"))
            .expect("a process has VmRSS");
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse().ok())
            .expect("VmRSS is a number");
        kib * 1024
    }

    /// The ends of its output, for a failure's message.
    pub fn report(&self) -> String {
        let tail = |text: String| {
            let mut at = text.len().saturating_sub(LOG_TAIL);
            while !text.is_char_boundary(at) {
                at += 1;
            }
            text[at..].to_owned()
        };
        format!(
            "--- stdout of {n}\n{}\n--- stderr of {n}\n{}\n---",
            tail(self.stdout()),
            tail(self.stderr()),
            n = self.name
        )
    }

    fn read(&self, file: &str) -> String {
        let bytes = std::fs::read(self.dir.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.report());
        }
        drop(self.supervisor.stdin.take());
        let _ended = self.supervisor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(pid: u32) -> bool {
        // A killed child stays a zombie until its parent has looked; that is dead enough.
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))
    }

    fn sleeper() -> Supervised {
        let args = [
            "-c".to_owned(),
            "echo out; echo err >&2; exec sleep 600".to_owned(),
        ];
        Supervised::start("sleeper", Supervised::directory(), Path::new("/bin/sh"), &args)
    }

    #[test]
    fn a_dropped_child_is_killed_and_its_directory_removed() {
        let child = sleeper();
        let (pid, dir) = (child.pid(), child.dir().to_owned());
        wait::until_blocking("the child's output", Duration::from_secs(10), || {
            (child.stdout() == "out\n" && child.stderr() == "err\n").then_some(())
        });
        assert!(alive(pid));
        drop(child);
        assert!(!alive(pid));
        assert!(!dir.exists());
    }

    #[test]
    fn a_killed_test_process_takes_its_children_along() {
        // What happens to us when we are killed: the kernel closes the pipe and no destructor runs.
        let mut child = sleeper();
        let (pid, dir) = (child.pid(), child.dir().to_owned());
        drop(child.supervisor.stdin.take());
        wait::until_blocking("the child to be gone", Duration::from_secs(10), || {
            (!alive(pid) && !dir.exists()).then_some(())
        });
    }

    #[test]
    fn a_child_that_ends_by_itself_leaves_its_code() {
        let args = ["-c".to_owned(), "exit 7".to_owned()];
        let child = Supervised::start("quitter", Supervised::directory(), Path::new("/bin/sh"), &args);
        let code = wait::until_blocking("the exit code", Duration::from_secs(10), || child.exit_code());
        assert_eq!(code, 7);
    }

    #[test]
    fn a_signal_reaches_the_child_itself() {
        let child = sleeper();
        child.signal("TERM");
        let code = wait::until_blocking("the exit code", Duration::from_secs(10), || child.exit_code());
        assert_eq!(code, 128 + 15);
    }
}
