//! Plans that wait for a person, what each changes, and the steps back and forth.

use std::collections::HashMap;

use conductor_host::control::plan::PlanSummary;
use conductor_host::control::plan::risk::Level;
use conductor_host::host::PlanView;

use super::State;
use super::overlay::{About, Phrase, Then};
use crate::api::{Act, Query};
use crate::input::Screen;

/// Plans that are kept with what they change.
const MAX_VIEWS: usize = 16;

/// Plans that wait.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    pub(crate) list: Vec<PlanSummary>,
    pub(crate) at: usize,
    /// The plan that is to be chosen once the list has it.
    pub(super) wanted: Option<String>,
    pub(crate) scroll: usize,
    /// Plans with what they change, by their ids; or why there is none.
    pub(crate) views: HashMap<String, Result<Box<PlanView>, String>>,
    /// What undo and redo would do, or why they would do nothing.
    pub(crate) steps: Option<(Result<String, String>, Result<String, String>)>,
}

impl Plans {
    /// Keeps what a plan changes, or why that is not known.
    pub(super) fn take_view(&mut self, id: String, view: Result<Box<PlanView>, String>) {
        if self.views.len() >= MAX_VIEWS {
            self.views.clear();
        }
        self.views.insert(id, view);
    }
}

impl State {
    /// The list of plans, in which the one that was chosen stays so.
    pub(super) fn take_plans(&mut self, list: Vec<PlanSummary>) {
        let place = |id: &str| list.iter().position(|plan| plan.id == id);
        let wanted = self.plans.wanted.as_deref().and_then(place);
        if wanted.is_some() {
            self.plans.wanted = None;
        }
        let stays = self.plans.list.get(self.plans.at).and_then(|plan| place(&plan.id));
        let at = wanted.or(stays);
        if wanted.is_some() || stays.is_none() {
            self.plans.scroll = 0;
        }
        self.plans.at = at.unwrap_or(self.plans.at).min(list.len().saturating_sub(1));
        self.plans.list = list;
        self.ask_for_chosen_plan();
    }

    /// Asks for what the chosen plan changes, unless that is known.
    pub(super) fn ask_for_chosen_plan(&mut self) {
        if let Some(plan) = self.plans.list.get(self.plans.at) {
            self.ask_for_plan(plan.id.clone());
        }
    }

    pub(super) fn ask_for_plan(&mut self, plan: String) {
        if !self.plans.views.contains_key(&plan) {
            self.requests.ask(Query::Plan(plan));
        }
    }

    /// The plan that a decision would be about: one that a person has before their eyes.
    pub(super) fn plan_to_decide(&self) -> Option<&PlanView> {
        let id = match self.screen {
            Screen::Chat => self.chat.open.as_ref()?.waiting_plan()?,
            _ => self.plans.list.get(self.plans.at)?.id.as_str(),
        };
        self.plans.views.get(id)?.as_deref().ok()
    }

    pub(super) fn ask_apply(&mut self) {
        let Some(view) = self.plan_to_decide() else { return };
        let plan = &view.plan;
        let act = Act::Apply { id: plan.id.clone() };
        let digits = plan.digits();
        let then = match plan.risk.level {
            Level::Privileged => Then::Type {
                asks: format!("Privileged; to apply it, type {digits}"),
                phrase: Phrase::Digits { digits: digits.to_owned(), id: plan.id.clone() },
                act,
            },
            _ => Then::Do(act),
        };
        let about = About::Plan(Box::new(view.clone()));
        self.ask("Apply it?", about, then);
    }

    pub(super) fn ask_reject(&mut self) {
        let Some(view) = self.plan_to_decide() else { return };
        let (id, about) = (view.plan.id.clone(), About::Text(view.plan.description.clone()));
        self.ask("Reject it?", about, Then::Do(Act::Reject { id }));
    }

    pub(super) fn ask_step(&mut self, undo: bool) {
        let Some(steps) = &self.plans.steps else {
            self.requests.ask(Query::Steps);
            return;
        };
        let (step, asks, act) =
            if undo { (&steps.0, "Take it back?", Act::Undo) } else { (&steps.1, "Apply it again?", Act::Redo) };
        match step.clone() {
            Ok(description) => self.ask(asks, About::Text(description), Then::Do(act)),
            Err(why) => self.notice(why, true),
        }
    }
}
