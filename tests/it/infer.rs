//! `paysweep profiles infer` and the profile `generic`, as they are typed.

use crate::scene::{Scene, Told};

const INTENTS: &str = "intent_id,kind,amount_minor,currency,status,created_at\n\
    A-1,charge,123450,EUR,succeeded,2026-03-09T08:59:00Z\n";

fn scene(export: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("export.csv", export);
    scene.write("intents.csv", INTENTS);
    scene
}

/// The keys that are asked about, in order.
fn asked(told: &Told) -> Vec<&str> {
    told.stderr
        .lines()
        .filter_map(|line| line.strip_prefix("question: ")?.split_once(": "))
        .map(|(key, _)| key)
        .collect()
}

fn diff(scene: &Scene, more: &str) -> Told {
    scene.now(&format!(
        "diff --operations export.csv --intents intents.csv {more} -f json"
    ))
}

const PLAIN: &str = "Transaction ID,Type,Status,Amount,Fee,Net,Currency,Created (UTC),Reference\n\
    t1,Sale,Paid,1234.50,4.50,1230.00,EUR,2026-03-09 09:00:00,A-1\n\
    t2,Sale,Declined,20.00,0.00,0.00,EUR,2026-03-09 09:10:00,A-2\n\
    t3,Refund,Paid,-45.00,0.30,-45.30,EUR,2026-03-09 09:20:00,A-1\n";

#[test]
fn a_file_that_says_everything_gives_a_profile_that_reads_it() {
    let scene = scene(PLAIN);
    let told = scene.say("profiles infer export.csv --name own");
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (0, ""),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout.contains("# certain: name and values"),
        "{}",
        told.stdout
    );
    scene.write("own.toml", &told.stdout);
    let told = diff(&scene, "--profile own.toml");
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (1, ""),
        "{}",
        told.stdout
    );
    let report = told.json();
    assert_eq!(report["summary"]["operations"], 3);
    assert_eq!(report["summary"]["matched"], 1, "{report}");
    assert_eq!(report["totals"][0]["fees"]["minor"], 480, "{report}");
}

#[test]
fn what_a_file_cannot_say_is_asked_and_the_profile_refused_until_it_is_answered() {
    let export = "Report of the month\n\nDate;Type;Id;Amount;Fee;Order\n\
        03/04/2026;Sale;t1;1.234;2;A-1\n05/06/2026;Refund;t2;5;1;A-1\n05/06/2026;Bonus;t2;5;1;A-1\n";
    let scene = scene(export);
    let told = scene.say("profiles infer export.csv");
    assert_eq!(
        asked(&told),
        [
            "records.default.occurred_at.format",
            "records.default.occurred_at.zone",
            "records.default.operation_id",
            "records.default.money.unit",
            "records.default.money.decimal",
            "records.default.money.amount.currency",
            "records.default.money.fee_total.sign",
            "records.default.money.amount",
            "maps.status",
        ],
        "{}\n{}",
        told.stdout,
        told.stderr
    );
    for part in [
        "header_match = { first_cell = \"Date\"",
        "delimiter = \";\"",
        "reference = \"Order\"",
        "\"Refund\" = { kind = \"refund\" }",
        "# \"Bonus\" = { kind",
        "name = \"export\"",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    for question in [
        "\\\"03/04/2026\\\" can be read",
        "in which time zone",
        "\\\"1.234\\\" can be read in two ways",
    ] {
        assert!(
            told.stdout.contains(question),
            "{question}: {}",
            told.stdout
        );
    }
    scene.write("own.toml", &told.stdout);
    let refused = diff(&scene, "--profile own.toml");
    assert_eq!(refused.code, 2);
    for part in [
        "9 open questions",
        "in which order do day and month stand?",
        "time zone",
        "two ways",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    // Deleting the questions answers none of them.
    let from = told.stdout.find("open_questions = [").expect("the list");
    let to = from + told.stdout[from..].find("\n]\n").expect("its end") + 3;
    let mut text = told.stdout.clone();
    text.replace_range(from..to, "");
    text = text.replace(
        "operation_id = [\"Id\"]",
        "operation_id = [\"Id\", \"Type\"]",
    );
    for (open, answer) in [
        ("format = \"?\"", "format = \"%d/%m/%Y\""),
        ("zone = \"?\"", "zone = \"Europe/Paris\""),
        ("unit = \"?\"", "unit = \"major\""),
        ("decimal = \"?\"", "decimal = \",\"\ngroup = \".\""),
        ("const:?", "const:EUR"),
        ("sign = \"?\"", "sign = \"cost_positive\""),
    ] {
        scene.write("own.toml", &text);
        let refused = diff(&scene, "--profile own.toml");
        assert_eq!(refused.code, 2, "{open}: {text}");
        assert!(text.contains(open), "{open}: {text}");
        text = text.replace(open, answer);
    }
    scene.write("own.toml", &text);
    let told = diff(&scene, "--profile own.toml");
    assert_eq!((told.code, told.stderr.as_str()), (1, ""), "{text}");
    assert_eq!(told.json()["summary"]["operations"], 3);
}

#[test]
fn a_figure_that_may_be_another_one_is_asked_about() {
    for (export, key, words) in [
        // Whole numbers: yen, or yen with two implied decimals.
        (
            "Id,Type,Amount,Currency,Created (UTC)\nt1,sale,15000,JPY,2026-03-09\nt2,sale,200,JPY,2026-03-09\n",
            "records.default.money.unit",
            "implied:2",
        ),
        // The settled amount beside the customer's currency.
        (
            "Id,Type,Amount,Local currency,Created (UTC)\nt1,sale,254.0104,BRL,2026-03-09\nt2,sale,3.2,BRL,2026-03-09\n",
            "records.default.money.amount.currency",
            "fewer decimals",
        ),
        // A summary whose header begins as that of the rows.
        (
            "Id,Rows,,,\nsum,2,,,\nId,Type,Amount,Currency,Created (UTC)\nt1,sale,2.50,EUR,2026-03-09\nt2,sale,3.20,EUR,2026-03-09\n",
            "csv.header_match",
            "line 1 begins with",
        ),
    ] {
        let told = scene(export).say("profiles infer export.csv");
        assert!(asked(&told).contains(&key), "{key}: {}", told.stderr);
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
}

#[test]
fn a_file_that_is_no_table_is_refused() {
    for export in ["", "one line\n", "1;2\n3;4\n", "<!DOCTYPE html>\n<html>\n"] {
        let told = scene(export).say("profiles infer export.csv");
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{export:?}");
        assert!(
            told.stderr.contains("export.csv") && told.stderr.contains("do: "),
            "{}",
            told.stderr
        );
    }
}

const TOLD: &str = "--profile generic --column operation_id=Id --column kind=Type --column amount=Amount \
    --column occurred_at=Date --column reference=Order --layout currency=EUR --layout unit=major --layout decimal=, \
    --layout group=. --layout time_format=%d/%m/%Y --layout zone=Europe/Paris --layout delimiter=; --kind Sale=charge \
    --kind Refund=refund";

const EXPORT: &str =
    "Date;Type;Id;Amount;Order\n09/03/2026;Sale;t1;1.234,50;A-1\n09/03/2026;Refund;t2;-5,00;\n";

#[test]
fn columns_may_be_named_on_the_command_line_or_in_the_configuration() {
    let scene = scene(EXPORT);
    let told = diff(&scene, TOLD);
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (1, ""),
        "{}",
        told.stdout
    );
    let typed = told.json();
    assert_eq!(typed["summary"]["matched"], 1, "{typed}");
    scene.write(
        "paysweep.toml",
        "[store]\nurl = \"sqlite://paysweep.db\"\n[source.shop]\nkind = \"csv\"\nprofile = \"generic\"\nfiles = [\"export.csv\"]\n\
         start = \"2026-03-01T00:00:00Z\"\n\
         [source.shop.generic]\ncolumns = { operation_id = \"Id\", kind = \"Type\", amount = \"Amount\", occurred_at = \"Date\", reference = \"Order\" }\n\
         layout = { currency = \"EUR\", unit = \"major\", decimal = \",\", group = \".\", time_format = \"%d/%m/%Y\", zone = \"Europe/Paris\", delimiter = \";\" }\n\
         kinds = { Sale = \"charge\", Refund = \"refund\" }\n[intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n",
    );
    let configured = scene.now("diff -f json").json();
    assert_eq!(configured["summary"], typed["summary"]);
    assert_eq!(scene.now("run").code, 1);
    let unknown = std::fs::read_to_string(scene.path("paysweep.toml")).expect("there");
    scene.write(
        "paysweep.toml",
        &unknown.replace("amount = \"Amount\"", "ammount = \"Amount\""),
    );
    let told = scene.now("run");
    assert_eq!(told.code, 2);
    for part in [
        "paysweep.toml:9:",
        "\"ammount\"",
        "did you mean \"amount\"?",
    ] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
}

#[test]
fn a_generic_format_that_leaves_something_open_is_refused_with_what_is_missing() {
    let scene = scene(EXPORT);
    for (word, wanted) in [
        (" --layout zone=Europe/Paris", "no zone"),
        (" --layout decimal=,", "is not told the decimal"),
        (" --layout unit=major", "is not told the unit"),
        (" --column kind=Type", "is not told which column is kind"),
        ("--profile generic ", "--profile is canonical"),
    ] {
        let words = TOLD.replace(word, " ");
        assert_ne!(words, TOLD, "{word}");
        let told = diff(&scene, &words);
        assert_eq!(told.code, 2, "{word}");
        assert!(told.stderr.contains(wanted), "{wanted}: {}", told.stderr);
    }
    let told = scene.say("profiles show generic");
    assert_eq!(told.code, 0);
    for word in ["operation_id", "fee_sign", "time_format"] {
        assert!(told.stdout.contains(word), "{word}");
    }
}
