//! What a profile says about itself, for people and for the tables that are made from it.

use super::Compiler;
use crate::exit::Failure;
use crate::processor::profile::{About, Idempotency, Window};
use crate::processor::wire::{
    ColumnWire, DateWire, IdempotencyWire, NameWire, RecordWire, TextOr, TimeWire,
};
use crate::time::Span;

impl Compiler<'_> {
    pub(super) fn about(
        &self,
        name: &NameWire,
        idempotency: Option<&IdempotencyWire>,
        record: &RecordWire,
    ) -> Result<About, Failure> {
        let references = record.reference.iter().flat_map(|rule| &rule.0);
        Ok(About {
            title: name.title.clone().unwrap_or_default(),
            evidence: name.evidence.clone().unwrap_or_default(),
            checked_on: name.checked_on.as_ref().map_or(String::new(), date),
            unit: record.money.unit.clone(),
            zone: zone(&record.occurred_at),
            references: references
                .filter_map(|candidate| match candidate {
                    TextOr::Text(column) => Some(column.clone()),
                    TextOr::Other(candidate) => match (&candidate.column, &candidate.columns) {
                        (Some(column), _) => Some(written(column)),
                        (None, columns) => columns.clone(),
                    },
                })
                .collect(),
            idempotency: match idempotency {
                Some(wire) => Some(Idempotency {
                    carrier: wire.carrier.clone(),
                    window: self.window(&wire.window)?,
                    evidence: wire.evidence.clone(),
                    checked_on: date(&wire.checked_on),
                    proves_absence: match &wire.absence {
                        Some(word) => self.word(
                            "idempotency.absence",
                            word,
                            [("proof", true), ("unknown", false)],
                        )?,
                        None => false,
                    },
                }),
                None => None,
            },
        })
    }

    fn window(&self, text: &str) -> Result<Window, Failure> {
        match (text, Span::parse(text)) {
            ("unknown", _) => Ok(Window::Unknown),
            ("indefinite", _) => Ok(Window::Indefinite),
            (_, Some(span)) => Ok(Window::AtLeast(span)),
            _ => Err(self
                .refuse(&format!("idempotency.window = \"{text}\" is not known"))
                .why("it is a length of time (24h, 7d), \"indefinite\" or \"unknown\"")
                .remedy(
                    "write \"unknown\" where the processor publishes none: it counts as nothing",
                )),
        }
    }
}

fn date(wire: &DateWire) -> String {
    match wire {
        DateWire::Date(date) => date.to_string(),
        DateWire::Text(text) => text.clone(),
    }
}

fn written(column: &ColumnWire) -> String {
    match column {
        ColumnWire::Name(name) => name.clone(),
        ColumnWire::Position(position) => format!("column {position}"),
    }
}

fn zone(time: &TimeWire) -> String {
    match (&time.zone, &time.zone_column) {
        (Some(zone), _) if zone.starts_with("source:zone") => "the source's `zone`".to_owned(),
        (Some(zone), _) => zone.clone(),
        (None, Some(column)) => format!("column {}", written(column)),
        (None, None) => "in the text".to_owned(),
    }
}
