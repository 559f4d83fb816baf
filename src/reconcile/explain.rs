//! Why did this row match, or which rule stopped it? The ladder is climbed again for the one component that a row is in, and
//! each rung says whom it found and what differed.
//!
//! The answer comes from the ladder itself: candidates from the look-ups it uses, the link from its own result.

use std::rc::Rc;

use hashbrown::HashMap;

use super::component::{Agreement, Component};
use super::keys::{self, Components, Keys};
use super::ladder::{self, ContestReason, Links};
use super::rules::{Frame, Rules};
use super::{Finding, Snapshot, plan, scope};
use crate::model::verdict::{Disposition, Rule};
use crate::money::{Money, format_minor};

/// Which row is asked about: an index in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An operation.
    Operation(usize),
    /// An intent.
    Intent(usize),
}

/// One rung of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Its name: `stored`, or the rule.
    pub name: &'static str,
    /// What is compared there, with the value: `reference "ORD-7" = an id, key or reference of ours`.
    pub question: String,
    /// Whom it found; empty = nobody.
    pub candidates: Vec<Candidate>,
    /// Whether the row's link was made here.
    pub is_taken: bool,
}

/// A row of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// Whether it became the link.
    pub is_linked: bool,
    /// What differs or stands in the way; empty = nothing.
    pub differs: Vec<String>,
}

/// Why a row stands as it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rungs, in the order in which they are climbed.
    pub rungs: Vec<Rung>,
    /// What stopped the row where it has no link; or what the link is. Sentences.
    pub notes: Vec<String>,
    /// The verdict, as it would be now.
    pub verdict: Disposition,
    /// Breaks that name the row, as they would be now.
    pub findings: Vec<Finding>,
}

/// Explains a row of a snapshot.
pub fn explain(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    subject: Subject,
) -> Explanation {
    let keys = Keys::of(snapshot);
    let truncated = keys::truncated(snapshot, &keys, rules.reference_max_chars);
    let components = Components::of(snapshot, &keys, &truncated);
    let truncated: HashMap<usize, Rc<[usize]>> = truncated.into_iter().collect();
    let open = plan::OpenBreaks::of(snapshot.open, &keys);
    let scope = scope(snapshot, rules, frame, &open, &keys);
    let outcome = super::reconcile(snapshot, rules, frame);
    let (id, account, verdict) = match subject {
        Subject::Operation(row) => {
            let data = snapshot.operations.get(row);
            (data.operation_id, data.account, outcome.operations[row])
        }
        Subject::Intent(row) => (
            snapshot.intents.get(row).intent_id,
            "",
            outcome.intents[row],
        ),
    };
    let is_operation = matches!(subject, Subject::Operation(_));
    let findings = outcome
        .findings
        .iter()
        .filter(|finding| {
            let found = &finding.found;
            if is_operation {
                found.account == account
                    && (found.operation_id == id || finding.also.iter().any(|also| also == id))
            } else {
                found.intent_id == id
            }
        })
        .cloned()
        .collect();
    let mut explanation = Explanation {
        rungs: Vec::new(),
        notes: Vec::new(),
        verdict,
        findings,
    };
    let found = (0..components.len())
        .map(|component| components.get(component))
        .find(|(operations, intents)| match subject {
            Subject::Operation(row) => operations.iter().any(|&it| it as usize == row),
            Subject::Intent(row) => intents.iter().any(|it| it == row),
        });
    if let Some((operations, intents)) = found {
        let component = Component::new(snapshot, &keys, &scope, frame, operations, intents.iter());
        let links = ladder::link(&component, rules, &truncated);
        let view = View {
            component: &component,
            links: &links,
            rules,
            truncated: &truncated,
        };
        match subject {
            Subject::Operation(row) => view.operation(row, &mut explanation),
            Subject::Intent(row) => view.intent(row, frame, &mut explanation),
        }
    }
    explanation
}

struct View<'v, 'a> {
    component: &'v Component<'a>,
    links: &'v Links,
    rules: &'v Rules,
    truncated: &'v HashMap<usize, Rc<[usize]>>,
}

/// The rungs as they are climbed: name, and the rule that a link made there bears; `None` = one that an earlier run stored.
const RUNGS: [(&str, Option<Rule>); 6] = [
    ("stored", None),
    ("processor_ref", Some(Rule::ProcessorRef)),
    ("reference", Some(Rule::Reference)),
    ("shared_reference", Some(Rule::SharedReference)),
    ("reference_truncated", Some(Rule::ReferenceTruncated)),
    ("parent", Some(Rule::Parent)),
];

impl View<'_, '_> {
    /// Intents that a rung leads an operation to.
    fn on(&self, at: usize, rung: &str) -> Vec<usize> {
        let operation = &self.component.operations[at];
        let keys = operation.keys;
        let Some(family) = operation.family() else {
            return Vec::new();
        };
        let mut found: Vec<usize> = match rung {
            "stored" => operation
                .link
                .and_then(|link| self.intent_at(link.intent))
                .into_iter()
                .collect(),
            "processor_ref" => self
                .component
                .with_processor(keys.id, family)
                .chain(self.component.with_processor(keys.object, family))
                .collect(),
            "reference" => self
                .component
                .with_reference(keys.reference, family)
                .collect(),
            "shared_reference" => self.component.with_parent(keys.reference, family).collect(),
            "reference_truncated" => self
                .truncated
                .get(&operation.row)
                .into_iter()
                .flat_map(|rows| rows.iter())
                .filter_map(|&row| self.intent_at(row))
                .collect(),
            _ => self.of_parent(at),
        };
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Rows of the operation's own family under the payment that it hangs on.
    fn of_parent(&self, at: usize) -> Vec<usize> {
        let operation = &self.component.operations[at];
        let Some(payment) = self.links.parent_intent[at] else {
            return Vec::new();
        };
        let payment = self.component.intents[payment].keys.id;
        let Some(family) = operation.family() else {
            return Vec::new();
        };
        self.component.with_parent(payment, family).collect()
    }

    fn intent_at(&self, row: usize) -> Option<usize> {
        self.component.intents.iter().position(|it| it.row == row)
    }

    fn is_taken(&self, at: usize, rule: Option<Rule>) -> bool {
        match (self.links.of[at], rule) {
            (Some(_), None) => self.links.is_stored[at],
            (Some((_, Rule::Sum)), Some(Rule::Reference)) => !self.links.is_stored[at],
            (Some((_, made_by)), Some(rule)) => !self.links.is_stored[at] && made_by == rule,
            (None, _) => false,
        }
    }

    fn operation(&self, row: usize, explanation: &mut Explanation) {
        let Some(at) = self
            .component
            .operations
            .iter()
            .position(|it| it.row == row)
        else {
            explanation
                .notes
                .push("it is a repetition of another row of the file".to_owned());
            return;
        };
        let operation = &self.component.operations[at];
        let data = &operation.row_data;
        for (name, rule) in RUNGS {
            let candidates = self
                .on(at, name)
                .into_iter()
                .map(|intent| self.candidate_intent(at, intent))
                .collect();
            let question = match name {
                "stored" => "a link that an earlier run stored".to_owned(),
                "processor_ref" if data.object_id.is_empty() => {
                    format!(
                        "a row of ours whose processor_ref is \"{}\"",
                        data.operation_id
                    )
                }
                "processor_ref" => format!(
                    "a row of ours whose processor_ref is \"{}\" or \"{}\"",
                    data.operation_id, data.object_id
                ),
                _ if name.contains("reference") && data.reference.is_empty() => {
                    "it bears no reference of ours".to_owned()
                }
                "reference" => format!(
                    "a row of ours whose reference, id or key is \"{}\"",
                    data.reference
                ),
                "shared_reference" => {
                    format!("rows of ours that share the payment \"{}\"", data.reference)
                }
                "reference_truncated" => match self.rules.reference_max_chars {
                    Some(chars) => format!(
                        "one row of ours that begins with \"{}\", which the processor cuts at {chars}",
                        data.reference
                    ),
                    None => format!(
                        "rows of ours that begin with \"{}\"; they are only proposed, as nothing declares that the processor cuts",
                        data.reference
                    ),
                },
                _ => match self.links.parent_operation[at] {
                    Some(parent) => format!(
                        "a row of ours under the payment of {}, which it names",
                        self.component.operations[parent].row_data.operation_id
                    ),
                    None if data.parent_id.is_empty() => "it names no parent".to_owned(),
                    None => format!("its parent \"{}\" is not known", data.parent_id),
                },
            };
            explanation.rungs.push(Rung {
                name,
                question,
                candidates,
                is_taken: self.is_taken(at, rule),
            });
        }
        self.notes_of_operation(at, explanation);
    }

    fn notes_of_operation(&self, at: usize, explanation: &mut Explanation) {
        let operation = &self.component.operations[at];
        let mut note = |text: String| explanation.notes.push(text);
        if !operation.invalid.is_empty() {
            note(format!("it cannot be used: {}", operation.invalid));
        }
        if let Some(reason) = operation.row_data.ignore {
            note(format!(
                "it is set aside before anything is compared: {reason}"
            ));
        }
        if operation.family().is_none() {
            note(format!(
                "nothing of ours asks for a {}",
                operation.row_data.kind
            ));
        }
        if !operation.moved {
            note("it moved no money".to_owned());
        }
        match self.links.of[at] {
            Some((intent, rule)) => {
                let id = self.component.intents[intent].row_data.intent_id;
                let when = if self.links.is_stored[at] {
                    ", as an earlier run found and stored"
                } else {
                    ""
                };
                note(format!("it belongs to {id} by {rule}{when}"));
            }
            None => note("no rung led to a row of ours that it belongs to".to_owned()),
        }
        if let Some(contest) = self.links.contests.iter().find(|it| it.operation == at) {
            note(
                match contest.why {
                    ContestReason::Several => {
                        "its reference names several rows that do not belong together, and none dominates"
                    }
                    ContestReason::Truncated => {
                        "its reference is the beginning of a longer one of ours, which only proposes"
                    }
                    ContestReason::Contradiction => {
                        "its reference names one payment and its parent another"
                    }
                    ContestReason::SharedAmount => {
                        "its reference is shared, and its amount fits none of the rows that are left"
                    }
                }
                .to_owned(),
            );
        }
        if let Some((_, intent)) = self.links.excess.iter().find(|(it, _)| *it == at) {
            let id = self.component.intents[*intent].row_data.intent_id;
            note(format!("it is beyond what {id} and its like ask for"));
        }
        if let Some((_, intents)) = self.links.recorded_twice.iter().find(|(it, _)| *it == at) {
            let ids: Vec<&str> = intents
                .iter()
                .map(|&intent| self.component.intents[intent].row_data.intent_id)
                .collect();
            note(format!("{} each record it as their own", ids.join(" and ")));
        }
    }

    fn intent(&self, row: usize, frame: &Frame, explanation: &mut Explanation) {
        let Some(at) = self.intent_at(row) else {
            return;
        };
        let intent = &self.component.intents[at];
        let data = &intent.row_data;
        for (name, rule) in RUNGS {
            let operations: Vec<usize> = (0..self.component.operations.len())
                .filter(|&operation| self.on(operation, name).contains(&at))
                .collect();
            let is_taken = operations.iter().any(|&operation| {
                self.links.of[operation].is_some_and(|(of, _)| of == at)
                    && self.is_taken(operation, rule)
            });
            let candidates = operations
                .into_iter()
                .map(|operation| self.candidate_operation(operation, at))
                .collect();
            let question = match name {
                "stored" => "links that earlier runs stored".to_owned(),
                "processor_ref" if data.processor_ref.is_empty() => {
                    "it has no processor_ref".to_owned()
                }
                "processor_ref" => format!(
                    "operations whose id or object is \"{}\"",
                    data.processor_ref
                ),
                "reference" => format!(
                    "operations that bear its reference, id or key ({})",
                    [data.intent_id, data.reference, data.idempotency_key]
                        .iter()
                        .filter(|text| !text.is_empty())
                        .map(|text| format!("\"{text}\""))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                "shared_reference" | "parent" if data.parent_intent_id.is_empty() => {
                    "it has no parent".to_owned()
                }
                "shared_reference" => format!(
                    "operations that bear the reference \"{}\", which it shares",
                    data.parent_intent_id
                ),
                "reference_truncated" => {
                    "operations whose reference is the beginning of its own".to_owned()
                }
                _ => format!(
                    "operations that hang on its payment \"{}\"",
                    data.parent_intent_id
                ),
            };
            explanation.rungs.push(Rung {
                name,
                question,
                candidates,
                is_taken,
            });
        }
        let mut note = |text: String| explanation.notes.push(text);
        if !data.invalid.is_empty() {
            note(format!("it cannot be used: {}", data.invalid));
        }
        let linked: Vec<&str> = (0..self.component.operations.len())
            .filter(|&it| self.links.of[it].is_some_and(|(of, _)| of == at))
            .map(|it| self.component.operations[it].row_data.operation_id)
            .collect();
        if linked.is_empty() {
            let due = data.created_at.plus(self.rules.grace.of(data.kind));
            note("no operation belongs to it".to_owned());
            match frame.covered_for(data) {
                Some(covered) if due <= covered => note(format!(
                    "its counterpart was due at {due}, and the source has been read whole up to {covered}"
                )),
                Some(covered) => note(format!(
                    "its counterpart is due at {due}, and the source has been read whole up to {covered} only"
                )),
                None => note(format!(
                    "its counterpart is due at {due}, and how far the source is complete is not known"
                )),
            }
        } else {
            note(format!("{} belongs to it", linked.join(" and ")));
        }
        if intent.elsewhere.is_some() {
            note(
                "an operation of another source answers it, or one that is no longer stored"
                    .to_owned(),
            );
        }
    }

    /// What differs between an operation and an intent, whoever asks.
    fn differs(&self, operation: usize, intent: usize) -> Vec<String> {
        let (row, local) = (
            &self.component.operations[operation].row_data,
            &self.component.intents[intent].row_data,
        );
        let mut differs = Vec::new();
        match self.component.agreement(operation, intent, self.rules) {
            Agreement::Agrees { delta: 0 } => {}
            Agreement::Agrees { delta } => differs.push(format!(
                "the amount by {}, which is tolerated",
                Money::new(delta, row.currency)
            )),
            Agreement::Amount { .. } => differs.push(format!(
                "the amount: {} {} at the processor, {} {} with us",
                format_minor(i128::from(row.amount_minor), row.currency),
                row.currency,
                format_minor(i128::from(local.amount_minor), local.currency),
                local.currency
            )),
            Agreement::Currency => differs.push(format!(
                "the currency: {} at the processor, {} with us",
                row.currency, local.currency
            )),
        }
        if row.status.as_str() != local.status.as_str() {
            differs.push(format!(
                "the status: {} at the processor, {} with us",
                row.status, local.status
            ));
        }
        differs
    }

    fn candidate_intent(&self, operation: usize, intent: usize) -> Candidate {
        let local = &self.component.intents[intent];
        let mut differs = self.differs(operation, intent);
        let others: Vec<&str> = (0..self.component.operations.len())
            .filter(|&other| other != operation)
            .filter(|&other| self.links.of[other].is_some_and(|(of, _)| of == intent))
            .map(|other| self.component.operations[other].row_data.operation_id)
            .collect();
        if !others.is_empty() {
            differs.push(format!("{} belongs to it as well", others.join(" and ")));
        }
        if local.elsewhere.is_some() {
            differs.push(
                "an operation of another source answers it, or one that is no longer stored"
                    .to_owned(),
            );
        }
        Candidate {
            id: local.row_data.intent_id.to_owned(),
            is_linked: self.links.of[operation].is_some_and(|(of, _)| of == intent),
            differs,
        }
    }

    fn candidate_operation(&self, operation: usize, intent: usize) -> Candidate {
        let mut differs = self.differs(operation, intent);
        let row = &self.component.operations[operation];
        if !row.moved {
            differs.push("it moved no money".to_owned());
        }
        let link = self.links.of[operation];
        if let Some((other, _)) = link.filter(|(other, _)| *other != intent) {
            let id = self.component.intents[other].row_data.intent_id;
            differs.push(format!("it belongs to {id}"));
        }
        Candidate {
            id: row.row_data.operation_id.to_owned(),
            is_linked: link.is_some_and(|(of, _)| of == intent),
            differs,
        }
    }
}
