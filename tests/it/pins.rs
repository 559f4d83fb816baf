//! Whose account a source reads, and of which mode: pinned by the first run, and let go by a person only.

use serde_json::json;

use super::api::{paid, stripe};
use super::fake::{Fake, Fault};
use super::scene::{Scene, Told};

const AS_OF: &str = "2026-03-10T12:00:00Z";

/// A fake of an account that has one payment, and a configuration that agrees with it.
fn account(id: &str) -> (Fake, Scene) {
    let fake = Fake::stripe();
    fake.shelf().account = json!({"id": id, "object": "account"});
    paid(&fake, "1", "10:00", 1000, 59);
    let scene = stripe(&fake, "");
    scene.intents("ORD-1,charge,1000,USD,succeeded,2026-03-09T09:59:00Z,ch_1\n");
    (fake, scene)
}

fn run(scene: &Scene) -> Told {
    scene.say(&format!("run -f json --as-of {AS_OF}"))
}

fn shown(scene: &Scene) -> serde_json::Value {
    scene.say("watermark show -f json").json()["watermarks"][0]["pin"].clone()
}

#[test]
fn another_account_is_refused_until_a_person_lets_the_pin_go() {
    let (fake, scene) = account("acct_one");
    let told = run(&scene);
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    assert_eq!(
        shown(&scene),
        json!({"account": "acct_one", "declared": "", "mode": "live"})
    );
    assert!(scene.say("check").stdout.contains("account acct_one"));
    let before = scene.say("runs list -f json").stdout;
    // The key of another account, which has nothing of ours: nothing is missing, since nothing is compared.
    fake.shelf().account = json!({"id": "acct_two"});
    fake.shelf().lists.clear();
    for line in ["run", "run --dry-run"] {
        let told = scene.say(&format!("{line} -f json --as-of {AS_OF}"));
        assert_eq!(told.code, 5, "{line}: {} {}", told.stdout, told.stderr);
        for words in ["acct_one", "acct_two", "watermark repin"] {
            assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
        }
        assert!(
            !told.stdout.contains("missing_processor"),
            "{}",
            told.stdout
        );
    }
    assert!(
        fake.shelf()
            .asked
            .iter()
            .rev()
            .take(2)
            .all(|asked| asked.path == "/v1/account"),
        "nothing else of another account is read"
    );
    assert!(before.contains("clean"), "{before}");
    let check = scene.say("check");
    assert_ne!(check.code, 0, "{}", check.stdout);
    assert!(
        check.stdout.contains("FAIL  source shop account"),
        "{}",
        check.stdout
    );
    // Meant all the same.
    assert_eq!(
        scene.say("watermark repin --reason moved").code,
        2,
        "it takes --yes"
    );
    let told = scene.say("watermark repin --yes --reason moved");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("acct_one"), "{}", told.stdout);
    assert_eq!(shown(&scene), json!(null));
    let told = run(&scene);
    assert_ne!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert_eq!(shown(&scene)["account"], "acct_two");
}

#[test]
fn what_was_not_known_is_filled_in_and_what_was_known_must_be_told() {
    let (fake, scene) = account("acct_one");
    fake.fails("/v1/account", 1, Fault::Status(403), 1);
    assert_eq!(
        run(&scene).code,
        0,
        "a key that may not ask whose it is may read"
    );
    assert_eq!(shown(&scene)["account"], "");
    assert_eq!(run(&scene).code, 0);
    assert_eq!(shown(&scene)["account"], "acct_one");
    fake.fails("/v1/account", 1, Fault::Status(403), 1);
    let told = run(&scene);
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("does not tell this key"),
        "{}",
        told.stderr
    );
    assert_eq!(run(&scene).code, 0, "{} {}", told.stdout, told.stderr);
}

#[test]
fn a_run_that_fails_pins_nothing() {
    let (fake, scene) = account("acct_one");
    fake.fails("/v1/charges", 1, Fault::Status(401), 1);
    assert_eq!(run(&scene).code, 5);
    assert_eq!(shown(&scene), json!(null));
    fake.shelf().account = json!({"id": "acct_two"});
    assert_eq!(run(&scene).code, 0);
    assert_eq!(shown(&scene)["account"], "acct_two");
}

#[test]
fn files_of_another_mode_or_account_are_refused_as_well() {
    let scene = Scene::in_order();
    assert_eq!(scene.now("run").code, 0);
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    for (line, words) in [
        ("mode = \"test\"", "read in live mode so far"),
        ("account = \"other\"", "rows so far are of no account"),
    ] {
        scene.write(
            "paysweep.toml",
            &text.replace("profile =", &format!("{line}\nprofile =")),
        );
        let told = scene.now("run -f json");
        assert_eq!(told.code, 5, "{line}: {} {}", told.stdout, told.stderr);
        assert!(told.stderr.contains(words), "{line}: {}", told.stderr);
    }
    scene.write("paysweep.toml", &text);
    assert_eq!(scene.now("run").code, 0);
}
