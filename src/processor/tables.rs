//! The README's table of profiles, made from the profiles.

use super::profile::{Idempotency, Profile, Window};
use super::{BUILT_IN, built_in};
use crate::time::Span;

/// A row for each built-in profile, as Markdown.
pub fn markdown() -> String {
    let mut table = String::from(
        "| profile | report | amounts | zone of times | our reference | delay | a request sent again is recognised |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, _) in BUILT_IN {
        let Ok(profile) = Profile::parse(name, built_in(name).unwrap_or_default()) else {
            continue;
        };
        let about = &profile.about;
        let references: Vec<String> = about
            .references
            .iter()
            .map(|column| format!("`{column}`"))
            .collect();
        table.push_str(&format!(
            "| `{name}` | {} | {} | {} | {} | {} | {} |\n",
            if about.title.is_empty() {
                "paysweep's own"
            } else {
                &about.title
            },
            amounts(&about.unit),
            about.zone,
            references.join(", "),
            match profile.spans.delay {
                Span::ZERO => "–".to_owned(),
                delay => delay.to_string(),
            },
            about.idempotency.as_ref().map_or("–".to_owned(), window),
        ));
    }
    table
}

fn amounts(unit: &str) -> String {
    match unit.strip_prefix("implied:") {
        Some(digits) => format!("{digits} decimals without a sign"),
        None => unit.replace('_', " "),
    }
}

fn window(idempotency: &Idempotency) -> String {
    let length = match idempotency.window {
        Window::AtLeast(span) => format!("at least {span}"),
        Window::Indefinite => "always".to_owned(),
        Window::Unknown => "not published".to_owned(),
    };
    format!(
        "{length}, by `{}` (read {})",
        idempotency.carrier, idempotency.checked_on
    )
}
