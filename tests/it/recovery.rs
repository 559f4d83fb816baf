//! Kill a run anywhere: the store is in the old or the new state, and the next run heals without help.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const AS_OF: &str = "2026-03-10T12:00:00Z";
const KILLS: u32 = 20;
const ROWS: usize = 3000;

#[test]
fn a_run_killed_at_any_point_leaves_the_old_or_the_new_state_and_the_next_one_heals() {
    let calm = Shop::new();
    let started = std::time::Instant::now();
    let told = calm.run();
    let whole = started.elapsed();
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));
    let expected = calm.state();
    assert!(
        expected.repairs.len() > 50 && expected.breaks.len() > 20,
        "the shop has something to tell"
    );
    let expected_findings = findings(&told.stdout);

    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let (expected, expected_findings) = (&expected, &expected_findings);
                scope.spawn(move || {
                    for kill in (worker..KILLS).step_by(2) {
                        // From the first millisecond to a little beyond the end of a calm run.
                        let after = whole * kill / (KILLS - 2);
                        let shop = Shop::new();
                        let told = shop.kill_after(after);
                        let healed = shop.run_when_free();
                        let label = format!("killed after {after:?}: {}", stderr(&healed));
                        assert_eq!(healed.status.code(), Some(1), "{label}");
                        assert_eq!(&shop.state(), expected, "{label}");
                        // What the killed run found and could not tell, the next one tells.
                        let told: BTreeSet<String> =
                            told.union(&findings(&healed.stdout)).cloned().collect();
                        assert_eq!(&told, expected_findings, "{label}");
                        let again = shop.run();
                        assert_eq!(&shop.state(), expected, "{label}");
                        let report: Value =
                            serde_json::from_slice(&again.stdout).expect("a report");
                        assert_eq!(report["repairs"], Value::Array(Vec::new()), "{label}");
                        assert_eq!(
                            report["carried"]["runs"],
                            Value::Array(Vec::new()),
                            "{label}"
                        );
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("no worker panics");
        }
    });
}

/// Breaks that a report tells, those of an earlier run included.
fn findings(stdout: &[u8]) -> BTreeSet<String> {
    let report: Value = serde_json::from_slice(stdout).expect("a report");
    let of = |list: &Value| -> Vec<String> {
        let entries = list.as_array().expect("a list");
        entries
            .iter()
            .map(|entry| entry["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let mut ids: BTreeSet<String> = of(&report["breaks"]).into_iter().collect();
    ids.extend(of(&report["carried"]["breaks"]));
    ids
}

/// What the store holds, as its user sees it.
#[derive(Debug, PartialEq)]
struct State {
    breaks: BTreeSet<String>,
    repairs: BTreeSet<String>,
    watermark: String,
}

struct Shop {
    folder: tempfile::TempDir,
}

impl Shop {
    fn new() -> Shop {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut operations, mut intents) = (
            "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference\n".to_owned(),
            "intent_id,idempotency_key,kind,amount_minor,currency,status,created_at,processor_ref\n".to_owned(),
        );
        for n in 0..ROWS {
            let (amount, second, minute) = (1000 + n, n % 60, n / 60 % 60);
            if n % 97 != 3 {
                writeln!(operations, "ch_{n},charge,succeeded,{amount},0,{amount},EUR,2026-03-09T10:{minute:02}:{second:02}Z,A-{n}")
                    .expect("text");
            }
            let status = if n % 41 == 7 { "pending" } else { "succeeded" };
            writeln!(
                intents,
                "A-{n},k-{n},charge,{amount},EUR,{status},2026-03-09T10:{minute:02}:{second:02}Z,"
            )
            .expect("text");
        }
        let config = "[store]\nurl = \"sqlite://paysweep.db\"\nlease = \"1s\"\n\
            [source.shop]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"operations.csv\"]\n\
            start = \"2026-03-09T00:00:00Z\"\ncomplete_through = \"as-of\"\n\
            [intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n";
        for (name, text) in [
            ("operations.csv", operations.as_str()),
            ("intents.csv", &intents),
            ("paysweep.toml", config),
        ] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Shop { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_paysweep")));
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        self.command(&["run", "--as-of", AS_OF, "-f", "json"])
            .output()
            .expect("it starts")
    }

    /// Runs, kills after a while, and answers what the run had told by then.
    fn kill_after(&self, after: Duration) -> BTreeSet<String> {
        let out = self.path().join("told.json");
        let mut child = self
            .command(&["run", "--as-of", AS_OF, "-f", "json"])
            .stdout(std::fs::File::create(&out).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(after);
        // SIGKILL; a run that was faster has ended by itself.
        let _ = child.kill();
        child.wait().expect("it ends");
        let told = std::fs::read(&out).expect("the file");
        if serde_json::from_slice::<Value>(&told).is_ok() {
            findings(&told)
        } else {
            BTreeSet::new()
        }
    }

    /// The lease of a killed run ends by itself.
    fn run_when_free(&self) -> Output {
        for _ in 0..40 {
            let output = self.run();
            if output.status.code() != Some(11) {
                return output;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the lease never ended");
    }

    fn list(&self, arguments: &[&str], key: &str) -> Vec<Value> {
        let output = self
            .command(&[arguments, &["-f", "json"]].concat())
            .output()
            .expect("it starts");
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", stderr(&output)));
        value[key].as_array().expect("a list").clone()
    }

    fn state(&self) -> State {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        State {
            breaks: self
                .list(&["breaks", "list"], "breaks")
                .iter()
                .map(|item| text(&item["id"]))
                .collect(),
            repairs: self
                .list(&["repairs", "list"], "repairs")
                .iter()
                .map(|item| {
                    format!(
                        "{} {} {}",
                        text(&item["id"]),
                        text(&item["state"]),
                        text(&item["intent_id"])
                    )
                })
                .collect(),
            watermark: text(&self.list(&["watermark", "show"], "watermarks")[0]["watermark"]),
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
