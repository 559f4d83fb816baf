//! The next page of a list, and when a list cannot be trusted.
//!
//! Decisions: the end of a list is what the processor says is its end, never a page that looks short, but where the profile
//! declares that. A list that leads back to where it was is no list. Lists that count places instead of naming rows move
//! under the reader: they are weak, and are read until they say the same twice.

use std::collections::HashSet;

use serde_json::Value;

/// How the pages of a list hang together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// One answer holds everything.
    None,
    /// The id of the last row leads to the next page.
    LastId {
        /// Parameter that carries it.
        param: String,
        /// Where a row has its id.
        id: String,
        /// Where the answer says whether more follows.
        more: String,
    },
    /// The answer holds a token.
    Token {
        /// Parameter that carries it.
        param: String,
        /// Where the answer has it; nothing there = the end.
        token: String,
    },
    /// The answer holds the link to the next page.
    NextUrl {
        /// Where the answer has it; nothing there = the end.
        link: String,
    },
    /// Pages are counted from 1.
    PageNumber {
        /// Parameter that carries the number.
        param: String,
        /// Where the answer says how many there are.
        total_pages: String,
    },
    /// Rows are counted from 0; a page that is not full is the last.
    Offset {
        /// Parameter that carries the number of rows to pass over.
        param: String,
    },
}

/// A list in pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRule {
    /// How they hang together.
    pub kind: PageKind,
    /// Parameter for the size of a page; empty = it cannot be chosen.
    pub size_param: String,
    /// Rows on a page.
    pub size: u64,
    /// More pages than this are no list that ends.
    pub max_pages: u64,
    /// Where a row has its time, in a list newest first that cannot be asked for a stretch: a page of older rows only is
    /// the last one of interest. Empty = every page is.
    pub field: String,
}

impl PageRule {
    /// Whether rows move from page to page while the list is read.
    pub fn is_weak(&self) -> bool {
        matches!(
            self.kind,
            PageKind::PageNumber { .. } | PageKind::Offset { .. }
        )
    }
}

/// Where a walk through a list stands.
#[derive(Debug)]
pub struct Walk<'a> {
    rule: &'a PageRule,
    size: u64,
    pages: u64,
    rows: u64,
    been: HashSet<String>,
}

/// What to ask next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the list is whole.
    Done,
    /// The same question with these parameters more.
    Page(Vec<(String, String)>),
    /// This link.
    Link(String),
}

impl<'a> Walk<'a> {
    /// Before the first page. `size` overrides that of the profile.
    pub fn new(rule: &'a PageRule, size: Option<u64>) -> Walk<'a> {
        Walk {
            rule,
            size: size.unwrap_or(rule.size),
            pages: 0,
            rows: 0,
            been: HashSet::new(),
        }
    }

    /// The parameters of the first page.
    pub fn first(&self) -> Vec<(String, String)> {
        let mut query = self.sized();
        match &self.rule.kind {
            PageKind::PageNumber { param, .. } => query.push((param.clone(), "1".to_owned())),
            PageKind::Offset { param } => query.push((param.clone(), "0".to_owned())),
            _ => {}
        }
        query
    }

    fn sized(&self) -> Vec<(String, String)> {
        match self.rule.size_param.as_str() {
            "" => Vec::new(),
            param => vec![(param.to_owned(), self.size.to_string())],
        }
    }

    /// How many pages were read.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// What comes behind a page. `Err` = this is no list to trust, and why.
    pub fn next(&mut self, answer: &Value, items: &[Value]) -> Result<Next, String> {
        self.pages += 1;
        self.rows += items.len() as u64;
        let next = self.behind(answer, items)?;
        let place = match &next {
            Next::Done => return Ok(next),
            Next::Page(query) => format!("{query:?}"),
            Next::Link(link) => link.clone(),
        };
        if !self.been.insert(place) {
            return Err("the list leads back to a page that was read before".to_owned());
        }
        if self.pages >= self.rule.max_pages {
            return Err(format!(
                "the list does not end within {} pages",
                self.rule.max_pages
            ));
        }
        if let Next::Page(query) = next {
            let mut all = self.sized();
            all.extend(query);
            return Ok(Next::Page(all));
        }
        Ok(next)
    }

    fn behind(&self, answer: &Value, items: &[Value]) -> Result<Next, String> {
        let page = |param: &str, value: String| Next::Page(vec![(param.to_owned(), value)]);
        Ok(match &self.rule.kind {
            PageKind::None => Next::Done,
            PageKind::LastId { param, id, more } => {
                let has_more = answer
                    .pointer(more)
                    .and_then(Value::as_bool)
                    .ok_or_else(|| {
                        format!("the answer does not say at {more} whether more follows")
                    })?;
                let last = items
                    .last()
                    .and_then(|item| item.pointer(id))
                    .and_then(Value::as_str);
                match (has_more, last) {
                    (false, _) => Next::Done,
                    (true, Some(last)) if !last.is_empty() => page(param, last.to_owned()),
                    (true, _) => {
                        return Err(
                            "the list says that more follows, and names no row to go on from"
                                .to_owned(),
                        );
                    }
                }
            }
            PageKind::Token { param, token } => match text_at(answer, token)? {
                None => Next::Done,
                Some(token) => page(param, token),
            },
            PageKind::NextUrl { link } => match text_at(answer, link)? {
                None => Next::Done,
                Some(link) => Next::Link(link),
            },
            PageKind::PageNumber { param, total_pages } => {
                let total = answer
                    .pointer(total_pages)
                    .and_then(Value::as_u64)
                    .ok_or_else(|| {
                        format!("the answer does not say at {total_pages} how many pages there are")
                    })?;
                if self.pages < total {
                    if items.is_empty() {
                        return Err("a page before the last one is empty".to_owned());
                    }
                    page(param, (self.pages + 1).to_string())
                } else {
                    Next::Done
                }
            }
            PageKind::Offset { param } => {
                if (items.len() as u64) < self.size {
                    Next::Done
                } else {
                    page(param, self.rows.to_string())
                }
            }
        })
    }
}

/// Text or a number; `None` where there is nothing.
fn text_at(answer: &Value, pointer: &str) -> Result<Option<String>, String> {
    match answer.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!(
            "the answer holds no way to the next page at {pointer}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(kind: PageKind) -> PageRule {
        PageRule {
            kind,
            size_param: "limit".to_owned(),
            size: 2,
            max_pages: 3,
            field: String::new(),
        }
    }

    fn last_id() -> PageRule {
        rule(PageKind::LastId {
            param: "after".to_owned(),
            id: "/id".to_owned(),
            more: "/more".to_owned(),
        })
    }

    fn after(id: &str) -> Next {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Next::Page(vec![pair("limit", "2"), pair("after", id)])
    }

    #[test]
    fn a_list_goes_on_from_its_last_row_until_it_says_that_it_ends() {
        let rule = last_id();
        let mut walk = Walk::new(&rule, None);
        let items = [json!({"id": "b"}), json!({"id": "a"})];
        assert_eq!(walk.next(&json!({"more": true}), &items), Ok(after("a")));
        assert_eq!(walk.next(&json!({"more": false}), &[]), Ok(Next::Done));
    }

    #[test]
    fn a_list_that_cannot_be_trusted_is_none() {
        let rule = last_id();
        let item = [json!({"id": "a"})];
        for (answer, items) in [
            (json!({}), &item[..]),
            (json!({"more": "yes"}), &item[..]),
            (json!({"more": true}), &[]),
            (json!({"more": true}), &[json!({"name": "a"})][..]),
        ] {
            assert!(
                Walk::new(&rule, None).next(&answer, items).is_err(),
                "{answer}"
            );
        }
        let mut walk = Walk::new(&rule, None);
        assert!(walk.next(&json!({"more": true}), &item).is_ok());
        assert!(
            walk.next(&json!({"more": true}), &item).is_err(),
            "the same page again"
        );
        let mut walk = Walk::new(&rule, None);
        assert!(
            walk.next(&json!({"more": true}), &[json!({"id": "c"})])
                .is_ok()
        );
        assert!(
            walk.next(&json!({"more": true}), &[json!({"id": "b"})])
                .is_ok()
        );
        assert!(
            walk.next(&json!({"more": true}), &[json!({"id": "a"})])
                .is_err(),
            "too many pages"
        );
    }

    #[test]
    fn every_kind_of_page_finds_its_end() {
        let token = rule(PageKind::Token {
            param: "c".to_owned(),
            token: "/cursor".to_owned(),
        });
        let next = Walk::new(&token, None).next(&json!({"cursor": "x"}), &[]);
        assert!(matches!(next, Ok(Next::Page(_))));
        for end in [json!({}), json!({"cursor": null}), json!({"cursor": ""})] {
            assert_eq!(Walk::new(&token, None).next(&end, &[]), Ok(Next::Done));
        }
        assert!(
            Walk::new(&token, None)
                .next(&json!({"cursor": {}}), &[])
                .is_err()
        );
        let link = rule(PageKind::NextUrl {
            link: "/next".to_owned(),
        });
        let next = Walk::new(&link, None).next(&json!({"next": "/p2"}), &[]);
        assert_eq!(next, Ok(Next::Link("/p2".to_owned())));
        let number = rule(PageKind::PageNumber {
            param: "page".to_owned(),
            total_pages: "/total".to_owned(),
        });
        let mut walk = Walk::new(&number, None);
        assert_eq!(
            walk.first().last().map(|(_, value)| value.as_str()),
            Some("1")
        );
        assert!(walk.next(&json!({"total": 2}), &[]).is_err());
        let mut walk = Walk::new(&number, None);
        assert!(matches!(
            walk.next(&json!({"total": 2}), &[json!(1)]),
            Ok(Next::Page(_))
        ));
        assert_eq!(walk.next(&json!({"total": 2}), &[]), Ok(Next::Done));
        assert!(Walk::new(&number, None).next(&json!({}), &[]).is_err());
        let offset = rule(PageKind::Offset {
            param: "skip".to_owned(),
        });
        let mut walk = Walk::new(&offset, None);
        assert!(matches!(
            walk.next(&json!({}), &[json!(1), json!(2)]),
            Ok(Next::Page(_))
        ));
        assert_eq!(walk.next(&json!({}), &[json!(3)]), Ok(Next::Done));
    }
}
