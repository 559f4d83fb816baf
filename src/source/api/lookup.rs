//! Single objects by their id: what the lists do not reach, and what they show absent.

use tokio::task::JoinSet;

use crate::exit::Failure;
use crate::model::operation::Family;
use crate::processor::api::Why;
use crate::processor::api::cells::Sheet;
use crate::source::feed::Feed;
use crate::source::http::{Ask, Cause, To, Trouble};

use super::listing::in_path;
use super::{Account, rows_of};

/// What was found by id.
#[derive(Debug, Default)]
pub struct Found {
    /// The rows, as those of a feed.
    pub feed: Feed,
    /// How many ids were asked for.
    pub asked: u64,
    /// Ids that the processor does not know.
    pub unknown: Vec<String>,
}

/// A question for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// Why it is asked.
    pub why: Why,
    /// What it is.
    pub family: Family,
}

impl Account {
    /// Whether an object of this id can be asked for.
    pub fn can_look_up(&self, id: &str, family: Family) -> bool {
        self.profile.lookup(id, family).is_some()
    }

    /// Asks for objects by their ids. An id that nobody can be asked for is passed over. Fails where one of them got no
    /// answer: not to be answered is not to be absent.
    pub async fn look_up(&self, questions: &[Question]) -> Result<Found, Failure> {
        let mut found = Found::default();
        let mut sheet = Sheet::with(self.profile.columns(&self.rules));
        let mut waiting = questions
            .iter()
            .filter(|question| self.can_look_up(&question.id, question.family))
            .cloned();
        let mut under_way = JoinSet::new();
        let mut answers = Vec::new();
        loop {
            while under_way.len() < self.concurrency {
                let Some(Question { id, why, family }) = waiting.next() else {
                    break;
                };
                let account = self.clone();
                under_way.spawn(async move {
                    let lookup = account
                        .profile
                        .lookup(&id, family)
                        .expect("it was asked whether there is one");
                    let ask = Ask {
                        label: format!("GET {}", lookup.path),
                        to: To::Path(lookup.path.replace("{}", &in_path(&id))),
                        query: lookup.query.clone(),
                    };
                    let answer = account.http.get(&ask, &account.budget).await;
                    let item = lookup.item.clone();
                    let request = lookup.request;
                    let answer = answer.and_then(|answer| match answer.json.pointer(&item) {
                        Some(object) if object.is_object() => Ok((object.clone(), answer.bytes)),
                        _ => {
                            let what = "the answer holds no such object".to_owned();
                            Err(Trouble::new(Cause::Body, &ask.label, &what))
                        }
                    });
                    (id, why, request, answer)
                });
            }
            let Some(done) = under_way.join_next().await else {
                break;
            };
            let (id, why, request, answer) = done.expect("a panic ends the process by itself");
            found.asked += 1;
            match answer {
                Ok(answer) => answers.push((id, why, request, answer)),
                Err(trouble) if trouble.cause == Cause::NotFound => found.unknown.push(id),
                Err(trouble) => return Err(trouble.failure(true)),
            }
        }
        // Whoever answers first: the rows have one order.
        answers.sort_by(|left, right| left.0.cmp(&right.0));
        found.unknown.sort();
        let mut bytes = 0;
        for (_, why, request, (object, length)) in answers {
            bytes += length;
            for cells in rows_of(&self.profile, request, &object, None, why) {
                sheet.push(cells);
            }
        }
        if found.asked > 0 {
            self.decode("GET by id", bytes, &sheet, &mut found.feed)?;
        }
        Ok(found)
    }
}
