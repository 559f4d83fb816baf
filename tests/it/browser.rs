//! The HTML report in a real browser: opened, filtered, sorted, printed, without a word on its console.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paysweep::report::{Form, RunReport};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::forms::{as_form, hostile, long};

/// The browser of this machine.
fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    ["chromium", "chromium-browser", "google-chrome", "chrome"]
        .iter()
        .find_map(|name| {
            let found = folders.iter().map(|folder| folder.join(name));
            found.into_iter().find(|path| path.is_file())
        })
        .expect("a browser shows the HTML report in this test: apt-get install chromium")
}

/// Runs the browser on a page; its stdout, and what its console was told.
fn open(page: &Path, flags: &[&str]) -> (Vec<u8>, Vec<String>) {
    let profile = TempDir::new().expect("a folder");
    let told = Command::new(browser())
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--timeout=60000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(flags)
        .arg(format!("file://{}", page.display()))
        .env("HOME", profile.path())
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{stderr}");
    let console = stderr
        .lines()
        .filter(|line| line.contains(":CONSOLE"))
        .map(str::to_owned)
        .collect();
    (told.stdout, console)
}

/// Opens a report with a script of the test at its end, and gives what that script found. The policy of the page is told
/// the hash of that script, and nothing else of the page is touched.
fn drive(report: &RunReport, script: &str) -> (Value, Vec<String>) {
    let folder = TempDir::new().expect("a folder");
    let page = folder.path().join("report.html");
    let html = as_form(report, Form::Html);
    let script = format!(
        "const out = document.createElement('pre'); out.id = 'found'; out.textContent = JSON.stringify((() => {{ {script} }})()); document.body.append(out);"
    );
    let hash = sha256(&script);
    let with_hash = html.replacen("script-src ", &format!("script-src 'sha256-{hash}' "), 1);
    assert_ne!(with_hash, html);
    let at = with_hash.rfind("</body>").expect("an end");
    let driven = format!(
        "{}<script>{script}</script>\n{}",
        &with_hash[..at],
        &with_hash[at..]
    );
    std::fs::write(&page, driven).expect("a page");
    let (dom, console) = open(&page, &["--dump-dom"]);
    let dom = String::from_utf8_lossy(&dom).into_owned();
    let found = dom
        .rsplit("<pre id=\"found\">")
        .next()
        .and_then(|rest| rest.split("</pre>").next())
        .unwrap_or_else(|| panic!("the script did not run: {console:?}"));
    let found = found
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let value = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"));
    (value, console)
}

/// The base64 of a SHA-256, as OpenSSL's words have it.
fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    base64(&Sha256::digest(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1))
        .collect();
    let mut text: String = bits
        .chunks(6)
        .map(|six| {
            let value = (0..6).fold(0, |sum, n| {
                sum << 1 | usize::from(six.get(n).copied().unwrap_or(0))
            });
            char::from(DIGITS[value])
        })
        .collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn ten_thousand_breaks_are_filtered_sorted_and_paged() {
    let (found, console) = drive(
        &long(10_000),
        "
        const rows = () => Array.from(document.querySelectorAll('#breaks tbody tr'));
        const seen = () => rows().filter((row) => row.offsetHeight > 0);
        const cell = (row, n) => row.cells[n].textContent;
        const type = (id, value, event) => { const it = document.getElementById(id); it.value = value; it.dispatchEvent(new Event(event)); };
        const first = seen().length;
        document.getElementById('more').click();
        const more = seen().length;
        type('find', 'PAY-00042', 'input');
        const filtered = seen().map((row) => cell(row, 3));
        const told = document.getElementById('told').textContent;
        type('find', '', 'input');
        type('severity', 'warning', 'change');
        const none = seen().length;
        document.getElementById('clear').click();
        const heads = Array.from(document.querySelectorAll('#breaks thead th'));
        heads[2].querySelector('button').click();
        const up = [cell(rows()[0], 2), heads[2].getAttribute('aria-sort')];
        heads[2].querySelector('button').click();
        const down = [cell(rows()[0], 2), heads[2].getAttribute('aria-sort')];
        heads[6].querySelector('button').click();
        const labels = Array.from(document.querySelectorAll('input, select')).every((it) => it.labels.length === 1);
        return { first, more, filtered, told, none, up, down, labels, all: rows().length };
        ",
    );
    assert_eq!(
        found,
        json!({
            "first": 200, "more": 1200, "filtered": ["ch_09958"], "told": "1 of 10000 shown, 1 fit", "none": 0,
            "up": ["PAY-00001", "ascending"], "down": ["PAY-10000", "descending"], "labels": true, "all": 10_000,
        })
    );
    assert_eq!(console, Vec::<String>::new());
}

#[test]
fn hostile_text_stays_text() {
    let report = hostile();
    let (found, console) = drive(
        &report,
        "
        const cells = Array.from(document.querySelectorAll('#breaks td')).map((cell) => cell.textContent);
        return {
          harmed: window.harmed === undefined,
          scripts: document.scripts.length,
          images: document.images.length,
          links: Array.from(document.links).map((link) => link.getAttribute('href')),
          isShown: cells.some((text) => text.includes('<' + '/script><' + 'script>window.harmed = 1<' + '/script><img src=x')),
          isNamed: cells.some((text) => text.includes('\\\\u{202e}')),
        };
        ",
    );
    assert_eq!(
        found,
        json!({"harmed": true, "scripts": 2, "images": 0, "links": ["#list"], "isShown": true, "isNamed": true})
    );
    assert_eq!(console, Vec::<String>::new());
}

#[test]
fn the_policy_stops_a_script_that_is_not_ours_and_the_page_is_whole_without_any() {
    let folder = TempDir::new().expect("a folder");
    let html = as_form(&hostile(), Form::Html);
    let foreign = html.replacen(
        "</body>",
        "<script>document.title = 'harmed'</script></body>",
        1,
    );
    let page = folder.path().join("foreign.html");
    std::fs::write(&page, foreign).expect("a page");
    let (dom, console) = open(&page, &["--dump-dom"]);
    assert!(!String::from_utf8_lossy(&dom).contains("<title>harmed"));
    assert_eq!(
        console.len(),
        1,
        "the policy says that it stopped it: {console:?}"
    );

    // Ours taken out: what the file holds is all there, on paper too.
    let (before, rest) = html.rsplit_once("<script>").expect("ours");
    let (_, after) = rest.split_once("</script>").expect("its end");
    let page = folder.path().join("plain.html");
    std::fs::write(&page, format!("{before}{after}")).expect("a page");
    let pdf = folder.path().join("report.pdf");
    let (_, console) = open(
        &page,
        &[
            &format!("--print-to-pdf={}", pdf.display()),
            "--no-pdf-header-footer",
        ],
    );
    assert_eq!(console, Vec::<String>::new());
    let bytes = std::fs::read(&pdf).expect("a PDF");
    assert!(
        bytes.starts_with(b"%PDF-") && bytes.len() > 10_000,
        "{}",
        bytes.len()
    );
    for needed in ["http://", "https://", "src=", "url(", "@import"] {
        let own = html
            .replace("src=x onerror", "")
            .replace("https://www.w3.org", "");
        assert!(!own.contains(needed), "{needed} would need a network");
    }
}
