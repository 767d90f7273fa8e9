//! From the text of a file to a [`Profile`], or to all its mistakes.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use toml::Spanned;
use toml::de::DeTable;

use crate::check::{self, MAX_FILE, Mistake, Mistakes};
use crate::fields::{FILE, MESSAGES};
use crate::message::Message;
use crate::numbers;
use crate::profile::{
    Confidence, Control, ControlKind, Encoding, Identity, Layout, Light, LightMessage, LightValue, Mode, PortNames,
    Profile, Source, SysExIdentity, UsbId,
};

/// Controls of a device, at most.
const MAX_CONTROLS: usize = 4096;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    id: String,
    vendor: String,
    name: String,
    kinds: Vec<String>,
    words: Vec<String>,
    about: Option<String>,
    sources: Vec<Spanned<Source>>,
    identity: Option<Spanned<IdentityEntry>>,
    layout: Option<Layout>,
    modes: Vec<Spanned<Mode>>,
    lights: Vec<Spanned<LightEntry>>,
    controls: Vec<Spanned<Series>>,
}

#[derive(Debug, Deserialize)]
struct IdentityEntry {
    #[serde(default)]
    usb: Vec<String>,
    #[serde(default)]
    ports: Ports,
    sysex: Option<SysExEntry>,
    source: Spanned<String>,
    confidence: Confidence,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ports {
    any: Vec<String>,
    linux: Vec<String>,
    macos: Vec<String>,
    windows: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct SysExEntry {
    manufacturer: Spanned<String>,
    family: u16,
    model: Option<u16>,
}

#[derive(Debug, Deserialize)]
struct LightEntry {
    id: String,
    message: LightMessage,
    channel: Option<u8>,
    sysex: Option<String>,
    #[serde(default)]
    values: Values,
    about: Option<String>,
    source: Spanned<String>,
    confidence: Confidence,
}

/// Values in the order of the file.
#[derive(Debug, Default)]
struct Values(Vec<LightValue>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of names with numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    values.push(LightValue { name, value });
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_map(Of)
    }
}

/// An entry of `controls`: one control, or a series of them.
#[derive(Debug, Deserialize)]
struct Series {
    name: Option<Spanned<String>>,
    names: Option<Spanned<Vec<String>>>,
    first: Option<usize>,
    kind: ControlKind,
    channel: Option<Spanned<Numbers>>,
    note: Option<Numbers>,
    cc: Option<Numbers>,
    nrpn: Option<Numbers>,
    program: Option<Numbers>,
    poly_aftertouch: Option<Numbers>,
    #[serde(default)]
    aftertouch: bool,
    #[serde(default)]
    pitch_bend: bool,
    osc: Option<Addresses>,
    count: Option<usize>,
    button: Option<Numbers>,
    stick: Option<Numbers>,
    trigger: Option<Numbers>,
    range: Option<Spanned<[u16; 2]>>,
    #[serde(default)]
    fourteen_bit: bool,
    encoding: Option<Encoding>,
    at: Option<Spanned<[u16; 2]>>,
    across: Option<usize>,
    step: Option<u16>,
    #[serde(default)]
    modes: Vec<Spanned<String>>,
    lights: Option<Spanned<String>>,
    source: Spanned<String>,
    confidence: Confidence,
}

/// A number, or a list of them as text.
#[derive(Debug, Clone)]
struct Numbers(Vec<u16>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            One(u16),
            Many(String),
        }
        match Either::deserialize(deserializer)? {
            Either::One(number) => Ok(Self(vec![number])),
            Either::Many(text) => numbers::parse(&text, 0, u16::MAX).map(Self).map_err(de::Error::custom),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Addresses {
    One(String),
    Many(Vec<String>),
}

impl Profile {
    /// Reads a profile's file.
    ///
    /// # Errors
    /// Every mistake with its place, in the order of the file; 200 at most.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Mistakes::new(text);
        if text.len() > MAX_FILE {
            mistakes.add(0..0, format!("the file is longer than {} KiB", MAX_FILE / 1024));
            return Err(mistakes.list());
        }
        let (mut tree, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            mistakes.add(error.span().unwrap_or(text.len()..text.len()), error.message());
        }
        if !errors.is_empty() {
            // What follows a mistake of syntax may be read as something else.
            return Err(mistakes.list());
        }
        let whole = 0..text.len();
        let before = Named::of(tree.get_ref());
        check::table(tree.get_mut(), &whole, FILE, &mut mistakes);
        let intact = before == Named::of(tree.get_ref());
        let profile = match File::deserialize(toml::de::Deserializer::from(tree)) {
            Ok(file) => assemble(file, intact, &mut mistakes),
            Err(error) => {
                mistakes.add(error.span().unwrap_or(0..0), error.message());
                None
            }
        };
        let found = mistakes.list();
        profile.filter(|_| found.is_empty()).ok_or(found)
    }
}

/// How many entries there are that others name. An entry with a mistake is taken out; what names it is not wrong.
#[derive(PartialEq)]
struct Named([usize; 3], bool);

impl Named {
    fn of(tree: &DeTable<'_>) -> Self {
        let count = |name| tree.get(name).and_then(|entry| entry.get_ref().as_array()).map_or(0, |list| list.len());
        Self(["sources", "modes", "lights"].map(count), tree.contains_key("layout"))
    }
}

/// Puts a profile together; what does not go together is a mistake. With `intact`, all is there that can be named.
fn assemble(file: File, intact: bool, mistakes: &mut Mistakes<'_>) -> Option<Profile> {
    twice(file.sources.iter().map(|source| (source.get_ref().id.as_str(), source.span())), "source", mistakes);
    twice(file.modes.iter().map(|mode| (mode.get_ref().name.as_str(), mode.span())), "mode", mistakes);
    twice(file.lights.iter().map(|light| (light.get_ref().id.as_str(), light.span())), "entry of `lights`", mistakes);
    let sources: Vec<Source> = file.sources.into_iter().map(Spanned::into_inner).collect();
    let mut known = |source: &str, place: Range<usize>| {
        if intact && !sources.iter().any(|known| known.id == source) {
            mistakes.add(place, format!("there is no source `{source}` in `sources`"));
        }
    };
    for mode in &file.modes {
        known(&mode.get_ref().source, mode.span());
    }
    for light in &file.lights {
        known(light.get_ref().source.get_ref(), light.get_ref().source.span());
    }
    for series in &file.controls {
        known(series.get_ref().source.get_ref(), series.get_ref().source.span());
    }
    if let Some(identity) = &file.identity {
        known(identity.get_ref().source.get_ref(), identity.get_ref().source.span());
    }
    let identity = file.identity.map(|entry| identity(entry, mistakes));
    for light in &file.lights {
        let entry = light.get_ref();
        if (entry.message == LightMessage::Sysex) != entry.sysex.is_some() {
            mistakes.add(light.span(), "`sysex` belongs to lights with `message = \"sysex\"`, and only to those");
        }
    }
    let lights = file.lights.into_iter().map(|light| {
        let LightEntry { id, message, channel, sysex, values, about, source, confidence } = light.into_inner();
        Light { id, message, channel, sysex, values: values.0, about, source: source.into_inner(), confidence }
    });
    let mut profile = Profile {
        id: file.id,
        vendor: file.vendor,
        name: file.name,
        kinds: file.kinds,
        words: file.words,
        about: file.about,
        sources,
        identity: identity.unwrap_or_default(),
        layout: file.layout,
        modes: file.modes.into_iter().map(Spanned::into_inner).collect(),
        lights: lights.collect(),
        controls: Vec::new(),
    };
    let mut places: Vec<Range<usize>> = Vec::new();
    for series in file.controls {
        let place = series.span();
        let controls = expand(series.into_inner(), &place, &profile, intact, mistakes);
        if profile.controls.len() + controls.len() > MAX_CONTROLS {
            mistakes.add(place, format!("these are more than {MAX_CONTROLS} controls"));
            break;
        }
        let line = mistakes.line(place.start);
        places.extend(controls.iter().map(|_| place.clone()));
        profile.controls.extend(controls.into_iter().map(|control| Control { line, ..control }));
    }
    collisions(&profile, &places, mistakes);
    Some(profile)
}

fn twice<'n>(names: impl Iterator<Item = (&'n str, Range<usize>)>, what: &str, mistakes: &mut Mistakes<'_>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (name, place) in names {
        let line = mistakes.line(place.start);
        if let Some(first) = seen.insert(name, line) {
            mistakes.add(place, format!("the {what} `{name}` is in line {first} already"));
        }
    }
}

fn identity(entry: Spanned<IdentityEntry>, mistakes: &mut Mistakes<'_>) -> Identity {
    let place = entry.span();
    let IdentityEntry { usb, ports, sysex, source, confidence } = entry.into_inner();
    let Ports { any, linux, macos, windows } = ports;
    let ports = PortNames { any, linux, macos, windows };
    for name in ports.all().filter(|name| name.chars().filter(|c| c.is_alphanumeric()).count() < 3) {
        mistakes.add(
            place.clone(),
            format!("the name of a port `{name}` has fewer than three letters: too many ports fit it"),
        );
    }
    let sysex = sysex.and_then(|SysExEntry { manufacturer, family, model }| {
        let bytes: Option<Vec<u8>> =
            manufacturer.get_ref().split(' ').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        let manufacturer = match bytes.as_deref() {
            Some(&[byte]) if byte != 0 => [byte, 0, 0],
            Some(&[0, second, third]) => [0, second, third],
            _ => {
                mistakes.add(manufacturer.span(), "`manufacturer` is one byte, or three of which the first is 00");
                return None;
            }
        };
        Some(SysExIdentity { manufacturer, family, model })
    });
    let usb = usb.iter().filter_map(|id| UsbId::parse(id)).collect();
    Identity { usb, ports, sysex, source: source.into_inner(), confidence: Some(confidence) }
}

/// The controls of a series.
fn expand(
    series: Series,
    place: &Range<usize>,
    profile: &Profile,
    intact: bool,
    mistakes: &mut Mistakes<'_>,
) -> Vec<Control> {
    let channels = series.channel.as_ref().map_or_else(|| vec![0], |channel| channel.get_ref().0.clone());
    let names = series.names.as_ref().map(|names| names.get_ref().len());
    let Some((what, messages)) = messages(&series, &channels, names, place, mistakes) else { return Vec::new() };
    let length = messages.len();
    if let Some(names) = &series.names
        && names.get_ref().len() != length
    {
        mistakes.add(names.span(), format!("there are {} names for {length} of `{what}`", names.get_ref().len()));
    }
    match (&series.name, &series.names) {
        (None, None) => mistakes.add(place.clone(), "a control has a `name`, or a series of them `names`"),
        (Some(name), Some(_)) => {
            mistakes.add(name.span(), "there is `name`, and `names` in its place: one of them goes")
        }
        _ => {}
    }
    for mode in &series.modes {
        if intact && !profile.modes.iter().any(|known| known.name == *mode.get_ref()) {
            mistakes.add(mode.span(), format!("there is no mode `{}` in `modes`", mode.get_ref()));
        }
    }
    if let Some(lights) = &series.lights
        && intact
        && !profile.lights.iter().any(|known| known.id == *lights.get_ref())
    {
        mistakes.add(lights.span(), format!("there is no entry `{}` in `lights`", lights.get_ref()));
    }
    if series.fourteen_bit && !messages.iter().all(|message| matches!(message, Message::Cc { cc: 0..=31, .. })) {
        mistakes.add(place.clone(), "`fourteen_bit` is for control changes from 0 to 31");
    }
    let highest = messages.first().map_or(127, Message::highest);
    let highest = if series.fourteen_bit { 16_383 } else { highest };
    let range = series.range.as_ref().map_or([0, highest], |range| *range.get_ref());
    if let Some(given) = &series.range
        && range[1] > highest
    {
        mistakes
            .add(given.span(), format!("`range` goes to {}, and `{what}` carries no more than {highest}", range[1]));
    }
    let across = series.across.unwrap_or(length).max(1);
    let step = series.step.unwrap_or(1);
    let at = |index: usize| {
        let [row, column] = *series.at.as_ref()?.get_ref();
        let of = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Some([row.saturating_add(of(index / across)), column.saturating_add(of(index % across).saturating_mul(step))])
    };
    if let Some(first) = &series.at {
        match profile.layout {
            None if !intact => {}
            None => mistakes.add(first.span(), "`at` is a place in the `layout`, and there is none"),
            Some(Layout { rows, columns }) => {
                if let Some(outside) = (0..length).filter_map(at).find(|[row, column]| *row > rows || *column > columns)
                {
                    let [row, column] = outside;
                    mistakes.add(
                        first.span(),
                        format!(
                            "row {row}, column {column} is outside the layout of {rows} rows and {columns} columns"
                        ),
                    );
                }
            }
        }
    }
    let start = series.first.unwrap_or(1);
    let name = |index: usize| match (&series.names, &series.name) {
        (Some(names), _) => names.get_ref().get(index).cloned().unwrap_or_default(),
        (None, Some(name)) if length > 1 || series.first.is_some() => format!("{} {}", name.get_ref(), start + index),
        (None, Some(name)) => name.get_ref().clone(),
        (None, None) => String::new(),
    };
    let of = |(index, message)| Control {
        name: name(index),
        kind: series.kind,
        message,
        range,
        fourteen_bit: series.fourteen_bit,
        encoding: series.encoding,
        place: at(index),
        modes: series.modes.iter().map(|mode| mode.get_ref().clone()).collect(),
        light: series.lights.as_ref().map(|light| light.get_ref().clone()),
        source: series.source.get_ref().clone(),
        confidence: series.confidence,
        line: 0,
    };
    messages.into_iter().enumerate().map(of).collect()
}

/// What the controls of a series send, and the field that says so.
fn messages(
    series: &Series,
    channels: &[u16],
    names: Option<usize>,
    place: &Range<usize>,
    mistakes: &mut Mistakes<'_>,
) -> Option<(&'static str, Vec<Message>)> {
    type Make = fn(u8, u16) -> Message;
    let byte = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
    let numbered: [(&'static str, &Option<Numbers>, Make); 8] = [
        ("note", &series.note, |channel, note| Message::Note { channel, note: note as u8 }),
        ("cc", &series.cc, |channel, cc| Message::Cc { channel, cc: cc as u8 }),
        ("nrpn", &series.nrpn, |channel, number| Message::Nrpn { channel, number }),
        ("program", &series.program, |channel, program| Message::Program { channel, program: program as u8 }),
        ("poly_aftertouch", &series.poly_aftertouch, |channel, note| Message::PolyAftertouch {
            channel,
            note: note as u8,
        }),
        ("button", &series.button, |_, button| Message::Button { button: button as u8 }),
        ("stick", &series.stick, |_, axis| Message::Stick { axis: axis as u8 }),
        ("trigger", &series.trigger, |_, trigger| Message::Trigger { trigger: trigger as u8 }),
    ];
    let mut found: Vec<(&'static str, Vec<Message>)> = Vec::new();
    for (what, given, make) in numbered {
        let Some(Numbers(given)) = given else { continue };
        let length = given.len().max(channels.len());
        if channels.len() > 1 && given.len() > 1 && channels.len() != given.len() {
            let place = series.channel.as_ref().map_or(place.clone(), Spanned::span);
            mistakes.add(place, format!("there are {} channels for {} of `{what}`", channels.len(), given.len()));
            return None;
        }
        let of = |index: usize| {
            let channel = channels[if channels.len() == 1 { 0 } else { index }];
            make(byte(channel), given[if given.len() == 1 { 0 } else { index }])
        };
        found.push((what, (0..length).map(of).collect()));
    }
    if series.aftertouch {
        found.push((
            "aftertouch",
            channels.iter().map(|channel| Message::Aftertouch { channel: byte(*channel) }).collect(),
        ));
    }
    if series.pitch_bend {
        found.push((
            "pitch_bend",
            channels.iter().map(|channel| Message::PitchBend { channel: byte(*channel) }).collect(),
        ));
    }
    match &series.osc {
        None => {}
        Some(Addresses::Many(list)) => {
            found.push(("osc", list.iter().map(|address| Message::Osc { address: address.clone() }).collect()));
        }
        Some(Addresses::One(address)) => {
            let count = series.count.or(names).unwrap_or(1);
            let at = |number: usize| Message::Osc { address: address.replace("{n}", &number.to_string()) };
            found.push(("osc", (1..=count).map(at).collect()));
        }
    }
    if found.len() > 1 {
        let those: Vec<String> = found.iter().map(|(what, _)| format!("`{what}`")).collect();
        mistakes.add(place.clone(), format!("a control sends one message, and these are {}", those.join(" and ")));
    } else if found.is_empty() {
        mistakes.add(place.clone(), format!("what it sends is missing, one of {}", MESSAGES.join(", ")));
    }
    found.into_iter().next()
}

/// Whether two controls can be in the same mode.
fn meet(one: &Control, other: &Control) -> bool {
    one.modes.is_empty() || other.modes.is_empty() || one.modes.iter().any(|mode| other.modes.contains(mode))
}

/// Two controls with one message, one name, or at one place. `places` has the place in the file of each control.
fn collisions(profile: &Profile, places: &[Range<usize>], mistakes: &mut Mistakes<'_>) {
    let mut by_message: HashMap<Message, Vec<usize>> = HashMap::new();
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut by_place: HashMap<[u16; 2], Vec<usize>> = HashMap::new();
    for (index, control) in profile.controls.iter().enumerate() {
        let mut other = |others: &mut Vec<usize>, says: &dyn Fn(&Control) -> String| {
            if let Some(first) = others.iter().map(|at| &profile.controls[*at]).find(|first| meet(first, control)) {
                mistakes.add(places[index].clone(), says(first));
            }
            others.push(index);
        };
        let mut messages = vec![control.message.clone()];
        if let (true, Message::Cc { channel, cc }) = (control.fourteen_bit, &control.message) {
            messages.push(Message::Cc { channel: *channel, cc: cc.saturating_add(32) });
        }
        for message in messages {
            other(by_message.entry(message.clone()).or_default(), &|first| {
                format!("{} sends `{message}`, as {} of line {} does", control.name, first.name, first.line)
            });
        }
        other(by_name.entry(&control.name).or_default(), &|first| {
            format!("the name {} is that of a control of line {}, too", control.name, first.line)
        });
        if let Some(place) = control.place {
            other(by_place.entry(place).or_default(), &|first| {
                let [row, column] = place;
                format!(
                    "{} is at row {row}, column {column}, where {} of line {} is",
                    control.name, first.name, first.line
                )
            });
        }
    }
}
