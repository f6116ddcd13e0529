//! Where the programs are that tests run. A missing one is a failure that says what to install; a test is never
//! skipped for it.

use std::path::{Path, PathBuf};

/// What brings the missing programs.
const REMEDY: &str =
    "run `make test-tools` (as root it installs what is missing, else it says what to install)";

/// Directories looked into besides `PATH`: Debian keeps servers where ordinary users do not look.
const SERVER_DIRS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"];

/// A program by name, from `PATH` or where servers are kept.
pub fn program(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("`{name}` is not installed; {REMEDY}"))
}

/// MariaDB's command-line client, which newer systems no longer call `mysql`.
pub fn mysql_client() -> PathBuf {
    find("mariadb").unwrap_or_else(|| program("mysql"))
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SERVER_DIRS.iter().map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// The gateway's binary: `SHARDGATE_BIN`, else the one built beside this test.
pub fn shardgate() -> PathBuf {
    built("SHARDGATE_BIN", "shardgate")
}

/// The simulated tablet's binary: `TABLET_SIM_BIN`, else the one built beside this test.
pub fn tablet_sim() -> PathBuf {
    built("TABLET_SIM_BIN", "tablet-sim")
}

/// The Python that has PyMySQL: `SHARDGATE_TEST_PYTHON`, else the one that `make test-tools` makes.
pub fn python() -> PathBuf {
    let file = std::env::var_os("SHARDGATE_TEST_PYTHON")
        .map_or_else(|| target_dir().join("venv/bin/python"), PathBuf::from);
    assert!(
        file.is_file(),
        "no Python with PyMySQL at {}; {REMEDY}",
        file.display()
    );
    file
}

/// A script of `tests/py`.
pub fn python_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("py").join(name)
}

/// The root of the sources.
pub fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the workspace")
        .to_owned()
}

/// The build directory: what lives in it survives from run to run and is removed by `cargo clean`.
pub fn target_dir() -> PathBuf {
    let profile = profile_dir();
    profile
        .parent()
        .expect("a profile directory lies in the build directory")
        .to_owned()
}

fn built(variable: &str, name: &str) -> PathBuf {
    let file = std::env::var_os(variable).map_or_else(|| profile_dir().join(name), PathBuf::from);
    assert!(
        file.is_file(),
        "no binary at {}; run `make test`, or `make test-build` first, or set {variable}",
        file.display()
    );
    file
}

/// `target/debug`, found from the running test `target/debug/deps/e2e-...` or from a program beside the binaries.
fn profile_dir() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a file");
    let dir = program.parent().expect("a program's file lies in a directory");
    let dir = if dir.ends_with("deps") {
        dir.parent().expect("deps/ lies in the profile directory")
    } else {
        dir
    };
    dir.to_owned()
}
