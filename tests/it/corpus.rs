//! The corpus of the fuzzer, replayed: every input that was ever interesting goes through the same functions as there.

use std::path::Path;

#[path = "../../fuzz/targets.rs"]
mod targets;

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, target) in targets::TARGETS {
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpus.join(name)).expect(name) {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            target(&std::fs::read(&path).expect("an input"));
            inputs += 1;
        }
        assert!(inputs >= 5, "{name} has {inputs} inputs");
    }
}

#[test]
fn every_target_is_a_binary_of_the_fuzzer() {
    let manifest = include_str!("../../fuzz/Cargo.toml");
    for (name, _) in targets::TARGETS {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name}"
        );
    }
}
