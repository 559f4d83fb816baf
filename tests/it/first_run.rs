//! The first run as the README shows it, on the files that it shows.

use crate::scene::Scene;

#[test]
fn the_first_run_of_the_readme_works_on_its_own_files() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        .expect("README.md");
    let section = readme
        .split("<!-- first run -->")
        .nth(1)
        .and_then(|rest| rest.split("<!-- end of first run -->").next())
        .expect("the section");
    let scene = Scene::empty();
    let mut blocks = section.split("```").skip(1).step_by(2);
    for name in ["operations.csv", "intents.csv"] {
        let block = blocks.next().expect("a block");
        let rows = block
            .strip_prefix(&format!("csv {name}\n"))
            .expect("its name");
        scene.write(name, rows);
    }
    let commands: Vec<(String, String)> = blocks
        .next()
        .and_then(|block| block.strip_prefix("console\n"))
        .expect("the commands")
        .lines()
        .map(|line| {
            let command = line.strip_prefix("$ paysweep ").expect("a command");
            let (command, comment) = command.split_once('#').unwrap_or((command, ""));
            (command.trim().to_owned(), comment.trim().to_owned())
        })
        .collect();
    assert_eq!(commands.len(), 8);
    let mut first = String::new();
    for (command, comment) in &commands {
        // A day after the files, as the reader's clock is of no day that a test knows.
        let line = format!("{command} --as-of 2026-03-10T06:00:00Z");
        let told = scene.say(if command == "init" { command } else { &line });
        let reports = ["diff", "run"].iter().any(|word| command.starts_with(word));
        let want = i32::from(reports);
        assert_eq!(
            (told.code, told.stderr.as_str()),
            (want, ""),
            "{command}\n{}",
            told.stdout
        );
        assert!(
            !comment.is_empty() || command.starts_with("report"),
            "{command}"
        );
        if reports {
            // The comparison, the dry run and the run find the same.
            for class in ["duplicate_charge", "amount_mismatch", "status_behind"] {
                assert!(
                    told.stdout.contains(class),
                    "{command}: {class}\n{}",
                    told.stdout
                );
            }
            let verdict = told.stdout.lines().next().unwrap_or_default().to_owned();
            assert!(first.is_empty() || first == verdict, "{command}: {verdict}");
            first = verdict;
        }
    }
    for name in ["first.html", "night.html", "night.csv", "paysweep.toml"] {
        assert!(scene.path(name).exists(), "{name}");
    }
    let told = scene
        .say("explain PAY-2 --as-of 2026-03-10T06:00:00Z")
        .stdout;
    assert!(
        told.contains("12.00 EUR at the processor, 12.50 EUR with us"),
        "{told}"
    );
}
