//! What somebody sees who sits at a terminal: a bar while a step goes on, and a report that stands alone.

use std::process::Command;

use super::api::{paid, stripe};
use super::fake::{Fake, Fault};
use super::scene::{Scene, Told};

const AS_OF: &str = "2026-03-10T12:00:00Z";

/// A source whose second page is slow once: a step that takes a second.
fn slow() -> (Fake, Scene) {
    let fake = Fake::stripe();
    for n in 1..=5 {
        paid(&fake, &n.to_string(), &format!("10:0{n}:00"), 1000, 59);
    }
    fake.fails("/v1/balance_transactions", 2, Fault::Slow, 1);
    let scene = stripe(&fake, "");
    scene.intents("");
    (fake, scene)
}

/// The same command through a terminal: both streams end there, as one text.
fn at_a_terminal(scene: &Scene, line: &str) -> Told {
    let plain = scene.command(line);
    let words: Vec<String> = std::iter::once(plain.get_program())
        .chain(plain.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let output = Command::new("script")
        .args(["-q", "-e", "-c", &words.join(" "), "/dev/null"])
        .current_dir(scene.folder())
        .env("TERM", "xterm")
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .output()
        .expect("script of util-linux starts");
    Told::from(output)
}

#[test]
fn a_bar_shows_how_far_a_step_is_and_is_gone_before_the_report() {
    let (_fake, scene) = slow();
    let told = at_a_terminal(&scene, &format!("run --as-of {AS_OF}"));
    assert_eq!(told.code, 1, "{}", told.stdout);
    let shown = told.stdout;
    let (frames, report) = shown
        .split_once("REVIEW: ")
        .unwrap_or_else(|| panic!("{shown:?}"));
    assert!(
        frames.contains("reading shop: ")
            && frames.contains(" rows in ")
            && frames.contains(" rows/s"),
        "{frames:?}"
    );
    // The last thing that happens to the line of the bar is that it is cleared.
    let last = frames.rfind("rows/s").expect("a frame");
    assert!(frames[last..].contains("\u{1b}[2K"), "{frames:?}");
    assert!(!report.contains('\u{1b}'), "{report:?}");
    for line in [
        format!("run -q --as-of {AS_OF}"),
        format!("run --progress never --as-of {AS_OF}"),
    ] {
        let (_fake, scene) = slow();
        let told = at_a_terminal(&scene, &line);
        assert!(
            !told.stdout.contains("reading shop"),
            "{line}: {}",
            told.stdout
        );
    }
}

#[test]
fn off_a_terminal_there_is_no_bar_however_long_it_takes() {
    for line in ["run", "run --progress auto", "run --progress log"] {
        let (_fake, scene) = slow();
        let told = scene.say(&format!("{line} --as-of {AS_OF}"));
        assert_eq!(told.code, 1, "{line}: {}", told.stderr);
        for text in [&told.stdout, &told.stderr] {
            assert!(!text.contains(['\r', '\u{1b}']), "{line}: {text:?}");
            assert!(!text.contains("reading shop"), "{line}: {text:?}");
        }
    }
}
