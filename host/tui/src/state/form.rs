//! The form of an action: which action is chosen of the list, and its fields one after the other.

use conductor_learn_mapping::action_form::ActionForm;
use conductor_learn_mapping::action_keys;
use conductor_terminal::typed::Line;
use serde_json::{Value, json};

use super::State;
use super::learn::begins;
use super::overlay::{Overlay, Prompt, Purpose};
use crate::api::{Act, Proposal, Query};

impl State {
    /// The actions whose names begin as what is typed.
    pub(crate) fn fitting_actions(&self, typed: &str) -> impl Iterator<Item = &(String, String)> {
        let typed = typed.split([' ', '{']).next().unwrap_or_default().to_owned();
        self.learn.actions.iter().filter(move |(name, _)| begins(name, &typed))
    }

    /// The action that Enter chooses of the list. `None` where a whole line is typed, or the name of none.
    pub(crate) fn chosen_action(&self, typed: &str) -> Option<&str> {
        if typed.contains([' ', '{']) {
            return None;
        }
        let mut fitting: Vec<&str> = self.fitting_actions(typed).map(|(name, _)| name.as_str()).collect();
        // What is typed to its end is meant, and not what goes on behind it.
        fitting.sort_by_key(|name| !name.eq_ignore_ascii_case(typed));
        fitting.get(self.learn.action_at).or(fitting.last()).copied()
    }

    /// Goes to another field, or chooses another action of the list.
    pub(super) fn step_line(&mut self, by: isize) {
        if self.typed_field().is_some() {
            self.step_field(by, false);
            return;
        }
        let Some(Overlay::Line(Prompt { line, purpose: Purpose::Action, .. })) = &self.overlay else { return };
        let count = self.fitting_actions(line.text().trim()).count();
        self.learn.action_at = self.learn.action_at.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Asks for an action by a line.
    pub(super) fn ask_action_line(&mut self, text: &str) {
        (self.learn.action_at, self.learn.wanted) = (0, None);
        self.overlay = Some(Overlay::Line(Prompt::new("action", Line::new(text), Purpose::Action)));
        self.look_for_keys(text);
    }

    /// Has an action filled in, once it is known which keys it takes. Until then its line stands there.
    pub(super) fn want_form(&mut self, action: Value) {
        let kind = action["type"].as_str().unwrap_or_default().to_owned();
        self.learn.wanted = Some(action);
        if self.learn.schema.as_ref().is_some_and(|(known, _)| *known == kind) {
            self.show_wanted_form();
        } else if self.learn.keys.as_ref().is_none_or(|(asked, _)| *asked != kind) {
            self.requests.ask(Query::ActionKeys(kind));
        }
    }

    /// Takes in which keys an action takes, or why that is not known.
    pub(super) fn take_keys(&mut self, action: String, schema: Result<Value, String>) {
        match schema {
            Ok(schema) => {
                self.learn.keys = Some((action.clone(), action_keys::keys(&schema)));
                self.learn.schema = Some((action, schema));
                self.show_wanted_form();
            }
            Err(why) => {
                // It is asked for again with the next letter.
                self.learn.keys.take_if(|(known, _)| *known == action);
                if self.learn.wanted.take_if(|wanted| wanted["type"] == action).is_some()
                    && let Some(Overlay::Line(prompt @ Prompt { purpose: Purpose::Action, .. })) = &mut self.overlay
                {
                    prompt.refused = Some(why);
                }
            }
        }
    }

    fn show_wanted_form(&mut self) {
        let is_asked = matches!(&self.overlay, Some(Overlay::Line(Prompt { purpose: Purpose::Action, .. })));
        let (Some((kind, schema)), true) = (&self.learn.schema, is_asked) else { return };
        let Some(action) = self.learn.wanted.take_if(|wanted| wanted["type"] == *kind) else { return };
        let is_bare = action.as_object().is_some_and(|keys| keys.len() == 1);
        // What was typed in the form of the same action before is not lost.
        let kept = self.learn.form.take().filter(|form| is_bare && form.kind == *kind);
        let form = kept.unwrap_or_else(|| ActionForm::of(&action, schema.clone()));
        let (first, line) = (form.fields().into_iter().next(), form.line());
        self.learn.form = Some(form);
        match first {
            Some(first) => self.ask_field(&first.name, None),
            None => {
                self.overlay = None;
                self.submit_action(line);
            }
        }
    }

    /// Asks for what is to be in a field of the form.
    pub(super) fn ask_field(&mut self, name: &str, refused: Option<String>) {
        let Some(form) = &self.learn.form else { return };
        let (asks, line) = (format!("{} {name}", form.kind), Line::new(form.typed(name)));
        let prompt = Prompt::new(asks, line, Purpose::Field(name.to_owned()));
        self.overlay = Some(Overlay::Line(Prompt { refused, ..prompt }));
    }

    /// The field that is typed, and its form.
    pub(crate) fn typed_field(&self) -> Option<(&ActionForm, &str)> {
        match &self.overlay {
            Some(Overlay::Line(Prompt { purpose: Purpose::Field(name), .. })) => {
                Some((self.learn.form.as_ref()?, name.as_str()))
            }
            _ => None,
        }
    }

    /// Goes to another field, after the last to the first; if what is typed is to be checked, only where it can be taken.
    pub(super) fn step_field(&mut self, by: isize, is_checked: bool) {
        let Some((form, name)) = self.typed_field() else { return };
        let name = name.to_owned();
        if let Some(why) = form.mistake_in(&name).filter(|_| is_checked) {
            self.ask_field(&name, Some(why));
            return;
        }
        let fields = form.fields();
        let at = fields.iter().position(|field| field.name == name).unwrap_or_default();
        let next = at.saturating_add(fields.len()).saturating_add_signed(by).checked_rem(fields.len());
        if let Some(field) = next.and_then(|next| fields.get(next)) {
            self.ask_field(&field.name, None);
        }
    }

    /// Takes a field, and goes on to the next that is needed; where none is, the action is done.
    pub(super) fn submit_field(&mut self, name: &str) {
        let Some(form) = &self.learn.form else { return };
        if let Some(why) = form.mistake_in(name) {
            self.ask_field(name, Some(why));
        } else if let Some((next, why)) = form.mistake() {
            let is_typed = !form.typed(&next).trim().is_empty();
            self.ask_field(&next, is_typed.then_some(why));
        } else {
            let line = form.line();
            self.submit_action(line);
        }
    }

    /// Shows the fields of the form as the line that they come to.
    pub(super) fn show_as_line(&mut self) {
        if let Some((form, _)) = self.typed_field() {
            let line = form.line();
            self.ask_action_line(&line);
        }
    }

    /// Has the action that was typed proposed: for the mapping that is changed, or else for the chosen control.
    pub(super) fn submit_action(&mut self, action: String) {
        self.learn.refused = None;
        if let Some(place) = self.learn.changed.clone() {
            self.requests.act(Act::ChangeAction { place, action });
            return;
        }
        let mode = self.learn.mode.clone();
        let (learned, control, any) = (self.learn.learned.clone(), self.learn.at, self.learn.any);
        let is_plain = self.learn.is_plain;
        let name = learned.controls.get(control).map(|control| self.name_of(control).to_owned()).unwrap_or_default();
        self.propose(Proposal { learned, control, name, action, mode, any, is_plain, light: None });
    }

    /// Takes the line of an action: a name alone is chosen of the list, and filled in.
    pub(super) fn submit_action_line(&mut self, text: String) {
        match self.chosen_action(&text).map(str::to_owned) {
            Some(kind) => {
                self.ask_action_line(&kind);
                self.want_form(json!({ "type": kind }));
            }
            None if text.is_empty() => {}
            None => self.submit_action(text),
        }
    }

    /// What Enter does with the line in front, where that is not to end it.
    pub(crate) fn submit_word(&self) -> Option<&'static str> {
        match &self.overlay {
            Some(Overlay::Line(Prompt { line, purpose: Purpose::Action, .. })) => {
                self.chosen_action(line.text().trim()).map(|_| "choose")
            }
            _ => {
                let (form, name) = self.typed_field()?;
                form.mistake().filter(|(wrong, _)| wrong != name).map(|_| "next")
            }
        }
    }
}
