//! What lies in `cron/`: it says what the table of exit codes says, and is what schedulers read.
//!
//! `UPDATE_EXPECT=1` writes the lists of codes anew.

use std::path::Path;
use std::process::Command;

use paysweep::cli;
use paysweep::exit::Exit;
use yaml_rust2::{Yaml, YamlLoader};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Codes that a retry cannot change, ascending.
fn never_again() -> Vec<u8> {
    let mut codes: Vec<u8> = Exit::ALL
        .iter()
        .filter(|exit| **exit != Exit::Ok && !exit.retry_helps())
        .map(|exit| exit.code())
        .collect();
    codes.sort_unstable();
    codes
}

/// A line of a file that begins with `before` (after blanks) and ends with `after` holds the list, or is given it.
fn list(name: &str, before: &str, between: &str, after: &str) {
    let codes: Vec<String> = never_again().iter().map(u8::to_string).collect();
    let want = format!("{before}{}{after}", codes.join(between));
    let text = read(name);
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(before))
        .unwrap_or_else(|| panic!("{name} holds no {before}"));
    let is_update = std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1");
    if is_update && line.trim_start() != want {
        let indent = &line[..line.len() - line.trim_start().len()];
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        std::fs::write(path, text.replace(line, &format!("{indent}{want}"))).expect(name);
        return;
    }
    assert_eq!(
        line.trim_start(),
        want,
        "{name}; UPDATE_EXPECT=1 rewrites it"
    );
}

fn yaml(name: &str) -> Yaml {
    let mut documents =
        YamlLoader::load_from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

/// The value at a path of keys; numbers count entries of a list.
fn at<'y>(yaml: &'y Yaml, path: &str) -> &'y Yaml {
    path.split('/')
        .fold(yaml, |value, key| match key.parse::<usize>() {
            Ok(entry) => &value[entry],
            Err(_) => &value[key],
        })
}

#[test]
fn schedulers_are_told_which_codes_not_to_retry() {
    list(
        "cron/paysweep.service",
        "RestartPreventExitStatus=",
        " ",
        "",
    );
    list("cron/kubernetes.yaml", "values: [", ", ", "]");
}

#[test]
fn the_cron_job_is_what_kubernetes_takes_and_nothing_in_it_may_write() {
    let job = yaml("cron/kubernetes.yaml");
    for (path, want) in [
        ("apiVersion", "batch/v1"),
        ("kind", "CronJob"),
        ("spec/timeZone", "Etc/UTC"),
        ("spec/concurrencyPolicy", "Forbid"),
        // Asked for by podFailurePolicy.
        ("spec/jobTemplate/spec/template/spec/restartPolicy", "Never"),
        (
            "spec/jobTemplate/spec/podFailurePolicy/rules/0/action",
            "Ignore",
        ),
        (
            "spec/jobTemplate/spec/podFailurePolicy/rules/0/onPodConditions/0/type",
            "DisruptionTarget",
        ),
        (
            "spec/jobTemplate/spec/podFailurePolicy/rules/1/action",
            "FailJob",
        ),
        (
            "spec/jobTemplate/spec/podFailurePolicy/rules/1/onExitCodes/operator",
            "In",
        ),
        (
            "spec/jobTemplate/spec/template/spec/containers/0/terminationMessagePolicy",
            "FallbackToLogsOnError",
        ),
        (
            "spec/jobTemplate/spec/template/spec/containers/0/securityContext/capabilities/drop/0",
            "ALL",
        ),
        (
            "spec/jobTemplate/spec/template/spec/securityContext/seccompProfile/type",
            "RuntimeDefault",
        ),
    ] {
        assert_eq!(at(&job, path).as_str(), Some(want), "{path}");
    }
    let pod = "spec/jobTemplate/spec/template/spec";
    for (path, want) in [
        ("automountServiceAccountToken", false),
        ("securityContext/runAsNonRoot", true),
        (
            "containers/0/securityContext/allowPrivilegeEscalation",
            false,
        ),
        ("containers/0/securityContext/readOnlyRootFilesystem", true),
    ] {
        assert_eq!(
            at(&job, &format!("{pod}/{path}")).as_bool(),
            Some(want),
            "{path}"
        );
    }
    let container = at(&job, &format!("{pod}/containers/0"));
    let name = at(
        &job,
        "spec/jobTemplate/spec/podFailurePolicy/rules/1/onExitCodes/containerName",
    );
    assert_eq!(name, &container["name"]);
    // Every mount has its volume, and every volume a mount.
    let names = |list: &Yaml| -> Vec<String> {
        let mut names: Vec<String> = list
            .as_vec()
            .expect("a list")
            .iter()
            .map(|it| it["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&container["volumeMounts"]),
        names(at(&job, &format!("{pod}/volumes")))
    );
    assert!(
        container["volumeMounts"]
            .as_vec()
            .expect("a list")
            .iter()
            .all(|it| it["readOnly"].as_bool() == Some(true))
    );
    let args = container["args"].as_vec().expect("arguments");
    let words =
        std::iter::once("paysweep").chain(args.iter().map(|it| it.as_str().expect("a word")));
    assert!(cli::parse(words.map(Into::into)).is_ok(), "{args:?}");
    // The run stops by itself before the scheduler stops it.
    let limit = at(&job, "spec/jobTemplate/spec/activeDeadlineSeconds")
        .as_i64()
        .expect("seconds");
    let deadline = args
        .iter()
        .filter_map(Yaml::as_str)
        .find_map(|it| it.strip_suffix('m'))
        .expect("minutes");
    assert!(deadline.parse::<i64>().expect("a number") * 60 < limit);
}

#[test]
fn the_alert_rules_ask_for_gauges_that_there_are() {
    let rules = yaml("cron/prometheus-rules.yaml");
    let gauges = read("src/command/metrics.rs");
    let groups = rules["groups"].as_vec().expect("groups");
    let mut alerts = Vec::new();
    for rule in groups
        .iter()
        .flat_map(|it| it["rules"].as_vec().expect("rules"))
    {
        alerts.push(rule["alert"].as_str().expect("a name"));
        let expr = rule["expr"].as_str().expect("an expression");
        let mut named = 0;
        for word in expr
            .split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'))
            .filter(|it| it.starts_with("paysweep_"))
        {
            assert!(gauges.contains(&format!("\"{word}\"")), "{word}");
            named += 1;
        }
        assert!(named > 0, "{expr}");
        for key in ["summary", "description"] {
            assert!(
                rule["annotations"][key]
                    .as_str()
                    .is_some_and(|it| it.len() > 20),
                "{key}"
            );
        }
        assert!(rule["labels"]["severity"].as_str().is_some());
    }
    assert_eq!(
        alerts,
        [
            "PaysweepNoCleanRun",
            "PaysweepBreaksOpen",
            "PaysweepLastRunFailed"
        ]
    );
}

#[test]
fn the_units_are_what_systemd_takes() {
    let binary = env!("CARGO_BIN_EXE_paysweep");
    let service = read("cron/paysweep.service");
    for line in [
        "Type=oneshot",
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "MemoryDenyWriteExecute=yes",
        "SystemCallFilter=@system-service",
        "UMask=0077",
    ] {
        assert!(service.lines().any(|it| it == line), "{line}");
    }
    let timer = read("cron/paysweep.timer");
    assert!(timer.contains("OnCalendar=*-*-* 04:30:00 UTC") && timer.contains("Persistent=true"));
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect(name);
        path
    };
    // The unit as it is, but for the place of the program on this machine.
    let service = write(
        "paysweep.service",
        &service.replace("/usr/bin/paysweep", binary),
    );
    let timer = write("paysweep.timer", &timer);
    match Command::new("systemd-analyze")
        .arg("verify")
        .args([&service, &timer])
        .output()
    {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!(
                "systemd-analyze is not on this machine: only the words of the units were checked"
            );
        }
        told => {
            let told = told.expect("systemd-analyze starts");
            let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
            assert!(
                told.status.success() && !stderr.contains("paysweep."),
                "{stderr}"
            );
        }
    }
}

#[test]
fn the_image_runs_as_nobody_and_brings_the_roots_that_tls_needs() {
    let file = read("cron/Containerfile");
    for part in [
        "AS build",
        "cargo build --release --locked",
        "ca-certificates",
        "USER 65532:65532",
        "ENTRYPOINT [\"/usr/bin/paysweep\"]",
    ] {
        assert!(file.contains(part), "{part}");
    }
    let manifest = read("Cargo.toml");
    let oldest = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .expect("the oldest Rust");
    let version = oldest.trim_matches('"');
    assert!(
        file.contains(&format!("FROM docker.io/library/rust:{version}-")),
        "{version}"
    );
    let user = yaml("cron/kubernetes.yaml");
    let id = at(
        &user,
        "spec/jobTemplate/spec/template/spec/securityContext/runAsUser",
    )
    .as_i64();
    assert_eq!(id, Some(65_532));
}
