//! Gauges in Prometheus' text format, for the textfile collector of the node exporter and for a Pushgateway.
//!
//! Decisions: gauges only, no timestamps, base units, labels with closed sets of values; every known series is written,
//! also at 0, so that an alert rule never waits for one to appear. Times are Unix seconds, not ages. Money is in major units
//! and for graphs: exact amounts stand in the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A family of gauges.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    families: BTreeMap<&'static str, Family>,
}

#[derive(Clone, Debug)]
struct Family {
    help: &'static str,
    /// Labels as they are written, and the value.
    series: BTreeMap<String, String>,
}

impl Gauges {
    /// Sets a series. `value` is decimal text.
    pub fn set(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        let mut text = String::new();
        for (key, value) in labels {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{key}=\"{}\"", escaped(value));
        }
        if !text.is_empty() {
            text = format!("{{{text}}}");
        }
        self.families
            .entry(name)
            .or_insert_with(|| Family {
                help,
                series: BTreeMap::new(),
            })
            .series
            .insert(text, value.to_string());
    }

    /// The text that is scraped.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (name, family) in &self.families {
            let _ = writeln!(text, "# HELP {name} {}", family.help);
            let _ = writeln!(text, "# TYPE {name} gauge");
            for (labels, value) in &family.series {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        }
        text
    }
}

/// Seconds with six decimals.
pub fn seconds(span: std::time::Duration) -> String {
    format!("{}.{:06}", span.as_secs(), span.subsec_micros())
}

/// A label's value as the format has it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_format() {
        let mut gauges = Gauges::default();
        gauges.set(
            "b_seconds",
            "How long.",
            &[],
            seconds(std::time::Duration::from_millis(1500)),
        );
        gauges.set(
            "a_open",
            "How many.",
            &[("source", "x\"y"), ("class", "z")],
            0,
        );
        gauges.set("a_open", "How many.", &[("source", "a"), ("class", "z")], 2);
        assert_eq!(
            gauges.render(),
            "# HELP a_open How many.\n# TYPE a_open gauge\na_open{source=\"a\",class=\"z\"} 2\na_open{source=\"x\\\"y\",class=\"z\"} 0\n# HELP b_seconds How long.\n# TYPE b_seconds gauge\nb_seconds 1.500000\n"
        );
    }
}
