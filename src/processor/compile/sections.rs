//! Files whose lines say what they are, and headers in several languages.

use std::collections::BTreeMap;

use super::{Compiler, Need};
use crate::exit::Failure;
use crate::processor::moment::TimeFormat;
use crate::processor::profile::HeaderSet;
use crate::processor::sections::{Extent, Role, SectionRule, SectionTotal, Sections};
use crate::processor::wire::{HeaderSetWire, SectionWire};

impl Compiler<'_> {
    pub(super) fn sections(
        &mut self,
        wires: &BTreeMap<String, SectionWire>,
    ) -> Result<Sections, Failure> {
        let mut rules = BTreeMap::new();
        for (words, wire) in wires {
            for word in words.split(',').map(str::trim) {
                let key = format!("sections.{word}");
                let rule = SectionRule {
                    role: self.role(&key, wire)?,
                    is_required: wire.required.unwrap_or(false),
                };
                if word.is_empty() || rules.insert(word.to_owned(), rule).is_some() {
                    return Err(self
                        .refuse(&format!("{key} is empty or there twice"))
                        .remedy("each kind of line has one role"));
                }
            }
        }
        let count = |wanted: fn(&Role) -> bool| {
            let rules = rules.values();
            rules
                .filter(|rule: &&SectionRule| wanted(&rule.role))
                .count()
        };
        if count(|role| matches!(role, Role::Header)) != 1
            || count(|role| matches!(role, Role::Body)) != 1
        {
            return Err(self
                .refuse("[sections] does not name one header and one body")
                .why("rows are read by the names in the header above them")
                .remedy(
                    "write, for example, CH = { role = \"header\" } and SB = { role = \"body\" }",
                ));
        }
        Ok(Sections {
            rules,
            context: self.context.clone(),
        })
    }

    fn role(&mut self, key: &str, wire: &SectionWire) -> Result<Role, Failure> {
        let word = self.word(
            &format!("{key}.role"),
            &wire.role,
            [
                "header", "body", "context", "footer", "count", "begin", "ignore",
            ]
            .map(|word| (word, word)),
        )?;
        let positions = (wire.cells.iter().flatten().map(|(_, position)| *position))
            .chain(wire.currency)
            .chain(wire.cell)
            .chain(wire.totals.iter().flatten().map(|total| total.cell));
        if positions.into_iter().any(|position| position == 0) {
            return Err(self
                .refuse(&format!("{key} names position 0"))
                .why("there is no cell before the first one")
                .remedy("positions are counted from 1; the first cell is the kind of line"));
        }
        let lacks = |what: &str| {
            self.refuse(&format!("{key} has no {what}"))
                .why(format!("a line with the role \"{word}\" is read by it"))
                .remedy("name the position, counted from 1")
        };
        Ok(match word {
            "header" => Role::Header,
            "body" => Role::Body,
            "ignore" => Role::Ignore,
            "begin" => Role::Begin,
            "context" => {
                let cells = wire.cells.as_ref().ok_or_else(|| lacks("cells"))?;
                let mut named = Vec::new();
                for (name, position) in cells {
                    let known = self.context.iter().position(|known| known == name);
                    let index = known.unwrap_or(self.context.len());
                    if known.is_none() {
                        self.context.push(name.clone());
                    }
                    named.push((index, *position));
                }
                Role::Context(named)
            }
            "footer" => {
                let currency = wire.currency.ok_or_else(|| lacks("currency"))?;
                let mut totals = Vec::new();
                for total in wire.totals.iter().flatten() {
                    totals.push(SectionTotal {
                        cell: total.cell,
                        sum_of: self.column(&total.sum_of, Need::Always),
                        currency: self.column(&total.currency, Need::Always),
                        only: match (&total.column, &total.words) {
                            (Some(column), Some(words)) => {
                                Some((self.column(column, Need::Always), words.clone()))
                            }
                            (None, None) => None,
                            _ => {
                                return Err(self
                                    .refuse(&format!("{key}.totals has only one of where and in"))
                                    .remedy("write where = \"Debit or Credit\", in = [\"CR\"]"));
                            }
                        },
                    });
                }
                let of = self.word(
                    &format!("{key}.of"),
                    wire.of.as_deref().unwrap_or("section"),
                    [("section", Extent::Section), ("report", Extent::Report)],
                )?;
                Role::Footer {
                    currency,
                    totals,
                    of,
                }
            }
            _ => Role::Count {
                cell: wire.cell.ok_or_else(|| lacks("cell"))?,
                of: self.word(
                    &format!("{key}.of"),
                    wire.of.as_deref().unwrap_or("section"),
                    [
                        ("section", Extent::Section),
                        ("file", Extent::File),
                        ("report", Extent::Report),
                    ],
                )?,
            },
        })
    }

    pub(super) fn header_sets(&self, wires: &[HeaderSetWire]) -> Result<Vec<HeaderSet>, Failure> {
        let mut sets: Vec<HeaderSet> = Vec::new();
        for wire in wires {
            let key = format!("header_sets \"{}\"", wire.name);
            if wire.name.is_empty() || sets.iter().any(|set| set.name == wire.name) {
                return Err(self
                    .refuse(&format!("{key} has no name of its own"))
                    .why("errors say which of the sets was meant")
                    .remedy("give each set a name: name = \"es\""));
            }
            let mut renamed = BTreeMap::new();
            for (name, written) in &wire.columns {
                if renamed.insert(written.clone(), name.clone()).is_some() {
                    return Err(self
                        .refuse(&format!("{key} gives two columns the name \"{written}\""))
                        .remedy("leave one of the two out"));
                }
            }
            let number = match (&wire.decimal, &wire.group) {
                (None, None) => None,
                (decimal, group) => Some(self.number_format(
                    &key,
                    decimal.as_deref().unwrap_or("."),
                    group.as_deref().unwrap_or_default(),
                )?),
            };
            let mut formats = Vec::new();
            for text in wire.format.iter().flat_map(|format| &format.0) {
                formats.push(self.time_format(&key, text)?);
            }
            if formats.iter().any(TimeFormat::has_offset) {
                return Err(self
                    .refuse(&format!("{key}.format reads an offset"))
                    .why("the zone of the profile's occurred_at is read beside it")
                    .remedy("write strftime words without %z"));
            }
            sets.push(HeaderSet {
                name: wire.name.clone(),
                renamed,
                number,
                formats,
                zone: match &wire.zone {
                    Some(text) => Some(self.zone_rule(&format!("{key}.zone"), text)?),
                    None => None,
                },
                absent: wire.absent.clone(),
            });
        }
        Ok(sets)
    }
}
