//! The profiles that come with the program.

use serde::Serialize;

use crate::check::Mistake;
use crate::message::Message;
use crate::port::{PortFit, fits, like};
use crate::profile::{Profile, UsbId};

/// The files, each with its name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Words of a query that count.
const MAX_WORDS: usize = 16;

/// Profiles of devices, in the order of their ids.
#[derive(Debug, Clone, Default)]
pub struct Library {
    profiles: Vec<Profile>,
}

/// Two profiles that the same port fits, by a name of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// The id of the profile that has the name.
    pub of: String,
    /// The id of the other one.
    pub with: String,
    /// The name.
    pub name: String,
}

impl Library {
    /// The profiles that come with the program. Files with mistakes are left out, of which there are none: see
    /// [`Self::mistakes`].
    pub fn bundled() -> Self {
        let read = |(_, text): &(&str, &str)| Profile::parse(text).ok();
        Self { profiles: FILES.iter().filter_map(read).collect() }
    }

    /// The files that come with the program: name and text.
    pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
        FILES.iter().copied()
    }

    /// The mistakes of the files that come with the program, with the file's name.
    pub fn mistakes() -> Vec<(&'static str, Mistake)> {
        let of = |(name, text): &(&'static str, &str)| {
            let name = *name;
            Profile::parse(text).err().into_iter().flatten().map(move |mistake| (name, mistake))
        };
        FILES.iter().flat_map(of).collect()
    }

    /// A library of these profiles.
    pub fn new(mut profiles: Vec<Profile>) -> Self {
        profiles.sort_by(|one, other| one.id.cmp(&other.id));
        Self { profiles }
    }

    /// All profiles.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The profile with this id.
    pub fn get(&self, id: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.id == id)
    }

    /// The ids that are nearest to a misspelled one, at most three.
    pub fn near(&self, id: &str) -> Vec<&str> {
        let mut near: Vec<(usize, &str)> =
            self.profiles.iter().map(|profile| (strsim::osa_distance(&profile.id, id), profile.id.as_str())).collect();
        near.retain(|(distance, of)| *distance <= of.len() / 3);
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, id)| id).collect()
    }

    /// The profiles that have every word of a query at the beginning of a word of theirs, or as a part of their id: maker,
    /// name, kinds, words, USB ids, names of ports. Those that have them in maker and name come first, and of these the ones
    /// whose name says nothing else.
    pub fn search(&self, query: &str) -> Vec<&Profile> {
        let query = query.to_lowercase();
        let words: Vec<&str> = query.split_whitespace().take(MAX_WORDS).collect();
        let mut found: Vec<((u8, usize), &Profile)> = self
            .profiles
            .iter()
            .filter_map(|profile| {
                let title = format!("{} {}", profile.vendor, profile.name).to_lowercase();
                let usb = profile.identity.usb.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                let ports = profile.identity.ports.all().collect::<Vec<_>>().join(" ");
                let more =
                    format!("{} {} {usb} {ports}", profile.kinds.join(" "), profile.words.join(" ")).to_lowercase();
                let in_title = |word: &&str| begins_a_word(&title, word) || profile.id.contains(word);
                let rank = match () {
                    () if profile.name.to_lowercase() == query || title == query || profile.id == query => 0,
                    () if words.iter().all(in_title) => 1,
                    () if words.iter().all(|word| in_title(word) || begins_a_word(&more, word)) => 2,
                    () => return None,
                };
                let unasked = profile.name.to_lowercase();
                let unasked = unasked.split_whitespace().filter(|word| !words.contains(word)).count();
                Some(((rank, unasked), profile))
            })
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, profile)| profile).collect()
    }

    /// The profile of the device that a port is of, by its name and its USB ids, as far as they are known; the one that it
    /// fits best. `None` if no profile fits, or several do equally well.
    pub fn of_port(&self, name: &str, usb: Option<UsbId>) -> Option<(&Profile, PortFit)> {
        let mut fitting: Vec<(PortFit, &Profile)> =
            self.profiles.iter().filter_map(|profile| Some((fits(profile, name, usb)?, profile))).collect();
        fitting.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        match &fitting[..] {
            [(fit, profile), (next, _), ..] if fit > next => Some((profile, *fit)),
            [(fit, profile)] => Some((profile, *fit)),
            _ => None,
        }
    }

    /// What a message is called on the device that a port is of: `pad 3`.
    pub fn name_of(&self, port: &str, usb: Option<UsbId>, message: &Message) -> Option<&str> {
        self.of_port(port, usb)?.0.name_of(message)
    }

    /// Names of ports, without `*`, that fit two profiles equally well.
    pub fn overlaps(&self) -> Vec<Overlap> {
        let mut found = Vec::new();
        for of in &self.profiles {
            for name in of.identity.ports.all() {
                let plain = name.replace('*', "");
                let mine = fits(of, &plain, None);
                for with in self.profiles.iter().filter(|with| with.id != of.id) {
                    if with.identity.ports.all().any(|other| like(&other.to_lowercase(), &plain.to_lowercase()))
                        && fits(with, &plain, None) >= mine
                    {
                        found.push(Overlap { of: of.id.clone(), with: with.id.clone(), name: name.to_owned() });
                    }
                }
            }
        }
        found
    }
}

fn begins_a_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric))
}
