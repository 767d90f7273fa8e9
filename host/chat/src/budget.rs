//! The daily budget of tokens and costs, shared by all turns: the most that exchanges under way may take is reserved.
//!
//! An exchange is admitted by what is kept of today and what the others under way have reserved. It is settled in one step
//! with keeping what it took, so that nothing counts twice, or not at all, in between. Where it would fit if the others
//! took nothing, it waits for them: they may take less than they have reserved. A reservation is of this process alone;
//! after a crash what was kept counts.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::costs::{self, Allowance, BudgetError, Spent};
use crate::store::StoreError;
use crate::store::usage::UsageRow;
use conductor_config::Chat;
use conductor_package::descriptor::ModelDeclaration;

/// What all exchanges under way may take.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    reserved: Mutex<Amount>,
    settled: Notify,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    tokens: u64,
    /// Billionths of a dollar, as far as prices are known.
    cost: u64,
}

/// An exchange that is to be admitted.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) limits: Chat,
    pub(crate) declared: Option<ModelDeclaration>,
    /// The model's name under `[models]`.
    pub(crate) model: String,
    /// Bytes of the question.
    pub(crate) question: usize,
    /// The most tokens of its answer, as the configuration says.
    pub(crate) max_tokens: Option<u32>,
    /// What the turn has taken so far.
    pub(crate) turn: Spent,
}

/// Whether an exchange may begin.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It may.
    Admitted(Reservation),
    /// When another one is settled, perhaps.
    Later,
    /// Not today, not in this turn, or not with this model.
    Refused(BudgetError),
}

impl Budget {
    /// Waits for the next exchange to be settled, from now on, whenever it is awaited.
    pub(crate) fn settled(&self) -> Notified<'_> {
        self.settled.notified()
    }

    /// Reserves what an exchange may take, if that is within all limits. `today` is what is kept of today; it is asked only
    /// where there is a limit of a day, and may wait for the disk.
    ///
    /// # Errors
    /// Those of `today`.
    pub(crate) fn admit(
        self: &Arc<Self>,
        exchange: &Candidate,
        today: impl FnOnce() -> Result<UsageRow, StoreError>,
    ) -> Result<Admission, StoreError> {
        let Candidate { limits, declared, model, question, max_tokens, turn } = exchange;
        let mut reserved = self.reserved.lock();
        let is_limited = limits.tokens_per_day.is_some() || limits.dollars_per_day.is_some();
        let today = if is_limited { today()? } else { UsageRow::default() };
        let after = |others: Amount| {
            let spent = Spent {
                day_tokens: (today.tokens.input + today.tokens.output).saturating_add(others.tokens),
                day_cost: today.cost.saturating_add(others.cost),
                ..*turn
            };
            costs::admit(limits, declared.as_ref(), model, *question, *max_tokens, &spent)
        };
        let alone = match after(Amount::default()) {
            Ok(alone) => alone,
            Err(why) => return Ok(Admission::Refused(why)),
        };
        if after(*reserved).as_ref() != Ok(&alone) {
            return Ok(Admission::Later);
        }
        let tokens = alone.input.saturating_add(alone.most_output);
        let amount = Amount { tokens, cost: alone.most_cost.unwrap_or(0) };
        reserved.tokens = reserved.tokens.saturating_add(amount.tokens);
        reserved.cost = reserved.cost.saturating_add(amount.cost);
        Ok(Admission::Admitted(Reservation { budget: Arc::clone(self), amount, allowed: alone }))
    }
}

/// What an exchange under way may take. Dropping it without settling gives it back: nothing was taken.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    amount: Amount,
    /// How long the answer may be.
    pub(crate) allowed: Allowance,
}

impl Reservation {
    /// Keeps what the exchange took, by `keep`, and gives the reservation back, in one step.
    pub(crate) fn settle<T>(mut self, keep: impl FnOnce() -> T) -> T {
        let budget = Arc::clone(&self.budget);
        let mut reserved = budget.reserved.lock();
        let kept = keep();
        self.give_back(&mut reserved);
        kept
    }

    fn give_back(&mut self, reserved: &mut Amount) {
        let Amount { tokens, cost } = std::mem::take(&mut self.amount);
        reserved.tokens = reserved.tokens.saturating_sub(tokens);
        reserved.cost = reserved.cost.saturating_sub(cost);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.amount != Amount::default() {
            let budget = Arc::clone(&self.budget);
            self.give_back(&mut budget.reserved.lock());
        }
        self.budget.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::charge::Charge;
    use crate::record::Tokens;
    use crate::store::ConversationStore;
    use crate::store::usage::{Used, UsedBy};

    const LIMIT: u64 = 20_000;

    fn candidate(question: usize) -> Candidate {
        let limits = Chat { tokens_per_day: Some(LIMIT), ..Chat::default() };
        let (model, turn) = ("m".to_owned(), Spent::default());
        Candidate { limits, declared: None, model, question, max_tokens: Some(1000), turn }
    }

    fn keep(store: &ConversationStore, tokens: Tokens) {
        let charge = Charge { tokens, ..Charge::default() };
        let used = Used { by: UsedBy::Conversation(1), model: "m", provider: "p", charge: &charge };
        store.append_answer(&used, &[]).unwrap();
    }

    fn store() -> ConversationStore {
        let store = ConversationStore::in_memory().unwrap();
        store.begin(None).unwrap();
        store
    }

    // LLM-5
    #[test]
    fn exchanges_at_once_pass_no_limit_of_the_day_together() {
        let (store, budget) = (store(), Arc::new(Budget::default()));
        let refused = AtomicU32::new(0);
        let one = || {
            loop {
                match budget.admit(&candidate(1000), || store.used_today()).unwrap() {
                    Admission::Admitted(reserved) => {
                        std::thread::yield_now();
                        let (input, output) = (reserved.allowed.input, reserved.allowed.most_output);
                        reserved.settle(|| keep(&store, Tokens { input, cached: 0, output }));
                    }
                    Admission::Later => std::thread::yield_now(),
                    Admission::Refused(why) => {
                        assert!(why.to_string().contains("tokens_per_day = 20000"), "{why}");
                        refused.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|all| (0..16).for_each(|_| drop(all.spawn(one))));
        let today = store.used_today().unwrap().tokens;
        let used = today.input + today.output;
        assert!(used <= LIMIT && used > LIMIT - 1500, "{used}");
        assert_eq!((refused.into_inner(), *budget.reserved.lock()), (16, Amount::default()));
    }

    #[test]
    fn one_that_fits_alone_waits_for_those_under_way_and_one_that_does_not_is_refused() {
        let (store, budget) = (store(), Arc::new(Budget::default()));
        let admit = |bytes| budget.admit(&candidate(bytes), || store.used_today()).unwrap();
        let first = admit(30_000);
        assert!(matches!(first, Admission::Admitted(_)), "{first:?}");
        assert!(matches!(admit(20_000), Admission::Later));
        assert!(matches!(admit(40_000), Admission::Refused(_)), "it would not fit alone");
        // The first one takes nothing.
        drop(first);
        assert!(matches!(admit(20_000), Admission::Admitted(_)));
    }

    // A crash: what was kept counts afterwards, and what was reserved does not.
    #[test]
    fn a_reservation_is_of_one_process_alone() {
        let home = tempfile::tempdir().unwrap();
        let open = || ConversationStore::open(home.path()).unwrap();
        let (store, budget) = (open(), Arc::new(Budget::default()));
        let id = store.begin(None).unwrap().id;
        assert_eq!(id, 1);
        keep(&store, Tokens { input: 9000, cached: 0, output: 1000 });
        let under_way = budget.admit(&candidate(10_000), || store.used_today()).unwrap();
        assert!(matches!(under_way, Admission::Admitted(_)));
        std::mem::forget(under_way);
        drop(store);
        let (store, budget) = (open(), Arc::new(Budget::default()));
        let admit = |bytes| budget.admit(&candidate(bytes), || store.used_today()).unwrap();
        assert!(matches!(admit(20_000), Admission::Refused(_)), "10000 of 20000 are used");
        assert!(matches!(admit(16_000), Admission::Admitted(_)), "nothing is under way");
    }
}
