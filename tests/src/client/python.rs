//! Scripts of `tests/py`, run by the Python that has PyMySQL. A script checks with `assert`, prints what the test
//! wants to see, and fails by its exit code.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::{tools, wait};

const LIMIT: Duration = Duration::from_mins(2);

/// Runs `script host port args...`; it must succeed. Gives what it printed.
pub async fn run(script: &str, addr: SocketAddr, args: &[&str]) -> String {
    let command = Command::new(tools::python())
        .arg(tools::python_script(script))
        .arg(addr.ip().to_string())
        .arg(addr.port().to_string())
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let out = wait::within(script, LIMIT, command).await.expect("Python starts");
    assert!(
        out.status.success(),
        "{script} failed\n{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}
