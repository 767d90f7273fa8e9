//! What is asked of the host: what waits to be sent, and what is under way.

use std::collections::HashMap;

use crate::api::{Act, Query, Request};

/// Requests that wait to be sent, and those that are under way.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) out: Vec<Request>,
    /// Questions that are under way, and whether each has to be asked again after its answer.
    pub(super) queries: HashMap<Query, bool>,
    pub(super) acts: Vec<Act>,
}

impl Requests {
    /// Asks; once more after the answer if the same is under way, since that answer may be too old.
    pub(super) fn ask(&mut self, query: Query) {
        match self.queries.get_mut(&query) {
            Some(again) => *again = true,
            None => {
                self.queries.insert(query.clone(), false);
                self.out.push(Request::Query(query));
            }
        }
    }

    /// Has something done, unless the same is under way.
    pub(super) fn act(&mut self, act: Act) {
        if !self.acts.contains(&act) {
            self.acts.push(act.clone());
            self.out.push(Request::Act(act));
        }
    }

    pub(super) fn answered(&mut self, request: &Request) {
        match request {
            Request::Query(query) => {
                if self.queries.remove(query) == Some(true) {
                    self.ask(query.clone());
                }
            }
            Request::Act(act) => self.acts.retain(|other| other != act),
        }
    }
}
