//! Servers that the tests start: each a private one in a temporary folder, run by somebody who may, gone when this process
//! is.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program, looked for in PATH and where systems put servers; else what to install.
pub(crate) fn program(name: &str, install: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(
        [
            "/usr/sbin",
            "/usr/bin",
            "/usr/local/sbin",
            "/opt/homebrew/bin",
        ]
        .map(PathBuf::from),
    );
    places
        .into_iter()
        .map(|place| place.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| format!("the tests need {name} and found none: {install}"))
}

/// Runs the server under a shell that waits for the end of its input. The input ends when this process does, however it
/// does; then the shell stops the server and removes the folder.
pub(crate) fn supervise(server: &[String], folder: &Path, signal: &str) -> bool {
    const SCRIPT: &str = "\
        signal=$1; folder=$2; shift 2; \
        \"$@\" >>\"$folder/log\" 2>&1 & \
        server=$!; \
        while read -r line; do :; done; \
        kill -$signal $server 2>/dev/null; \
        wait $server; \
        rm -rf \"$folder\"";
    let shell = Command::new("sh")
        .args(["-c", SCRIPT, "sh", signal])
        .arg(folder)
        .args(server)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match shell {
        // The input stays open until this process is gone.
        Ok(shell) => {
            std::mem::forget(shell.stdin);
            true
        }
        Err(_) => false,
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The words that run a program as somebody who may run a server, which root may not. The folder becomes theirs.
pub(crate) fn unprivileged(folder: &Path) -> Result<Vec<String>, String> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if said("id", &["-u"]).as_deref() != Some("0") {
        return Ok(Vec::new());
    }
    for user in ["postgres", "mysql", "nobody"] {
        let (Some(uid), Some(gid)) = (said("id", &["-u", user]), said("id", &["-g", user])) else {
            continue;
        };
        let number = |text: &str| text.parse::<u32>().ok();
        if std::os::unix::fs::chown(folder, number(&uid), number(&gid)).is_err() {
            continue;
        }
        let ways: [&[&str]; 2] = [
            &[
                "setpriv",
                "--reuid",
                &uid,
                "--regid",
                &gid,
                "--clear-groups",
            ],
            &["runuser", "-u", user, "--"],
        ];
        for way in ways {
            let mut arguments = way[1..].to_vec();
            arguments.push("true");
            if said(way[0], &arguments).is_some() {
                return Ok(way.iter().map(|word| (*word).to_owned()).collect());
            }
        }
    }
    Err("the tests run as root, and no other user was found to run a database server as".to_owned())
}

/// Removes what tests left behind whose shell was killed as well: folders whose name is a prefix and the number of a
/// process. The first line of a file in it says which process its server is, and a signal ends that.
pub(crate) fn clean_up(prefix: &str, mark: &str, signal: &str) {
    let folders = std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten();
    let kill = |signal: &str, process: &str| {
        Command::new("kill")
            .args([signal, process])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    for entry in folders.flatten() {
        let name = entry.file_name();
        let Some(process) = name
            .to_string_lossy()
            .strip_prefix(prefix)
            .map(str::to_owned)
        else {
            continue;
        };
        if kill("-0", &process) && process != std::process::id().to_string() {
            continue;
        }
        let server = std::fs::read_to_string(entry.path().join(mark)).unwrap_or_default();
        if let Some(server) = server.lines().next().map(str::trim) {
            kill(&format!("-{signal}"), server);
        }
        // What belongs to somebody else stays.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}
