//! Sets of contributions, by kind and name: those of a feature that a person refused; and why one is left out.
//!
//! A refusal is for a name, whatever package has it: it outlives upgrades, also those in which the contribution is
//! not there.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Descriptor;

/// Contributions of one feature, by kind. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Contributions {
    /// Names of actions. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,

    /// Names of tools. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,

    /// Points of hooks, such as `"pre-tool-call"`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,

    /// Names of background tasks. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,

    /// Names of providers. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,

    /// Names of skills. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

impl Contributions {
    /// Every contribution that a descriptor declares.
    pub fn declared(descriptor: &Descriptor) -> Self {
        Self {
            actions: descriptor.actions.iter().map(|it| it.name.clone()).collect(),
            tools: descriptor.tools.iter().map(|it| it.name.clone()).collect(),
            hooks: descriptor.hooks.iter().map(|it| it.point.as_str().to_owned()).collect(),
            tasks: descriptor.tasks.iter().map(|it| it.name.clone()).collect(),
            providers: descriptor.providers.iter().map(|it| it.name.clone()).collect(),
            skills: descriptor.skills.iter().map(|it| it.name.clone()).collect(),
        }
    }

    /// The names of each kind: the kind (`action`, `tool`, `hook`, `task`, `provider`, `skill`), the key that the
    /// configuration has for it, the names.
    pub fn kinds(&self) -> [(&'static str, &'static str, &Vec<String>); 6] {
        [
            ("action", "actions", &self.actions),
            ("tool", "tools", &self.tools),
            ("hook", "hooks", &self.hooks),
            ("task", "tasks", &self.tasks),
            ("provider", "providers", &self.providers),
            ("skill", "skills", &self.skills),
        ]
    }

    fn lists_mut(&mut self) -> [&mut Vec<String>; 6] {
        [&mut self.actions, &mut self.tools, &mut self.hooks, &mut self.tasks, &mut self.providers, &mut self.skills]
    }

    /// Each of them: its kind and its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.kinds().into_iter().flat_map(|(kind, _, names)| names.iter().map(move |name| (kind, name.as_str())))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether this one is among them.
    pub fn has(&self, kind: &str, name: &str) -> bool {
        self.iter().any(|it| it == (kind, name))
    }

    /// Whether all of `other` are among them.
    pub fn includes(&self, other: &Self) -> bool {
        other.iter().all(|(kind, name)| self.has(kind, name))
    }

    /// Those of both, each once, in the order of names.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        for (names, (_, _, more)) in self.lists_mut().into_iter().zip(other.kinds()) {
            names.extend_from_slice(more);
            names.sort();
            names.dedup();
        }
        self
    }

    /// The same without those of `other`.
    #[must_use]
    pub fn without(mut self, other: &Self) -> Self {
        for (names, (_, _, gone)) in self.lists_mut().into_iter().zip(other.kinds()) {
            names.retain(|name| !gone.contains(name));
        }
        self
    }

    /// Checks that all are known: declared by the descriptor, or in `refused`.
    ///
    /// # Errors
    /// A sentence that names the first which is not, and those of its kind that the feature has.
    pub fn check_known(&self, descriptor: &Descriptor, refused: &Self) -> Result<(), String> {
        let known = Self::declared(descriptor).union(refused);
        let Some((kind, name)) = self.iter().find(|(kind, name)| !known.has(kind, name)) else { return Ok(()) };
        let names: Vec<&str> = known.iter().filter(|(other, _)| *other == kind).map(|(_, name)| name).collect();
        let feature = descriptor.id.name();
        Err(if names.is_empty() {
            format!("{feature} has no {kind} {name:?}; it has none of that kind")
        } else {
            format!("{feature} has no {kind} {name:?}; it has {}", names.join(", "))
        })
    }
}

/// A contribution that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// `action`, `tool`, `hook`, `task`, `provider`, `skill`.
    pub kind: &'static str,
    /// Its name; of a hook, its point.
    pub name: String,
    /// Why.
    pub reason: SkipReason,
}

/// Why a contribution is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It needs the capability with this key, which was not granted.
    NotGranted(String),
    /// A person refused it. With the name of the feature.
    Refused(String),
}

impl Skipped {
    /// Whether it is this contribution.
    pub fn is(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && self.name == name
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, reason } = self;
        match reason {
            SkipReason::NotGranted(key) => write!(f, "{kind} {name}: needs \"{key}\", which is not granted"),
            SkipReason::Refused(feature) => write!(
                f,
                "{kind} {name}: refused by a person; `conductor feature enable {feature} --{kind} {name}` takes it back"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Contributions {
        Contributions { tools: names.iter().map(|name| (*name).to_owned()).collect(), ..Contributions::default() }
    }

    #[test]
    fn a_set_grows_and_shrinks_by_kind_and_name() {
        let hooks = Contributions { hooks: vec!["events".into()], ..Contributions::default() };
        let both = tools(&["b"]).union(&tools(&["a", "b"])).union(&hooks);
        assert_eq!(both.iter().collect::<Vec<_>>(), [("tool", "a"), ("tool", "b"), ("hook", "events")]);
        assert!(both.includes(&hooks) && !hooks.includes(&both));
        assert!(both.has("tool", "a") && !both.has("hook", "a"), "a name is of one kind");
        assert_eq!(both.without(&tools(&["a", "c"])), tools(&["b"]).union(&hooks));
        assert!(Contributions::default().is_empty() && !hooks.is_empty());
    }

    #[test]
    fn what_is_unknown_is_an_error_that_lists_what_there_is() {
        let text = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n\
                    [[tools]]\nname = 'a'\ntier = 'read-only'\nsummary = ''\n";
        let descriptor = Descriptor::parse(text.as_bytes()).unwrap();
        let none = Contributions::default();
        assert_eq!(tools(&["a"]).check_known(&descriptor, &none), Ok(()));
        assert_eq!(tools(&["z"]).check_known(&descriptor, &none).unwrap_err(), "x has no tool \"z\"; it has a");
        assert_eq!(tools(&["old"]).check_known(&descriptor, &tools(&["old"])), Ok(()), "it was refused before");
        let skill = Contributions { skills: vec!["s".into()], ..none.clone() };
        assert_eq!(
            skill.check_known(&descriptor, &none).unwrap_err(),
            "x has no skill \"s\"; it has none of that kind"
        );
    }
}
