//! What a profile is in an answer: short, since a model reads it, and yet every control with what it sends.

use conductor_device_profile::{Control, Light, Profile, name_regexes};
use schemars::JsonSchema;
use serde::Serialize;

/// A controller that was found.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct Entry {
    pub id: String,
    pub vendor: String,
    pub name: String,
    pub kinds: Vec<String>,
    pub controls: usize,
}

impl From<&Profile> for Entry {
    fn from(profile: &Profile) -> Self {
        Self {
            id: profile.id.clone(),
            vendor: profile.vendor.clone(),
            name: profile.name.clone(),
            kinds: profile.kinds.clone(),
            controls: profile.controls.len(),
        }
    }
}

/// What is known of a controller.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct DeviceProfile {
    #[serde(flatten)]
    pub device: Entry,
    pub about: Option<String>,
    pub usb: Vec<String>,
    /// `*` is any text.
    pub ports: Vec<String>,
    /// For conductor_create_binding; a gamepad's protocol is hid.
    pub matchers: Vec<NameMatcher>,
    /// The first is the usual one.
    pub modes: Vec<Mode>,
    pub lights: Vec<LightView>,
    /// Rows and columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<[u16; 2]>,
    pub series: Vec<Series>,
    pub sources: Vec<Source>,
}

/// What a binding matches ports with that are called as the profile says.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct NameMatcher {
    pub r#type: String,
    pub value: String,
}

/// A state of the device.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct Mode {
    pub name: String,
    pub how: Option<String>,
    /// SysEx.
    pub enter: Option<String>,
}

/// How lights are set.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct LightView {
    pub id: String,
    /// note, cc, sysex or osc, with the control's number.
    pub message: String,
    /// Where it is not the control's.
    pub channel: Option<u8>,
    pub sysex: Option<String>,
    /// `red = 5`
    pub values: Vec<String>,
    pub about: Option<String>,
}

/// Controls that differ in name and number alone.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct Series {
    pub kind: String,
    /// `pad 1: note 36 ch 9`
    pub controls: Vec<String>,
    /// Row and column of each, from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub places: Vec<Option<[u16; 2]>>,
    pub range: [u16; 2],
    /// Of an encoder.
    pub encoding: Option<String>,
    pub light: Option<String>,
    /// None is all.
    pub modes: Vec<String>,
    pub source: String,
    pub confidence: String,
}

/// A document.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "every schema is read before a conversation")]
pub struct Source {
    pub id: String,
    pub title: String,
    pub publisher: String,
    pub compared: Option<String>,
}

impl From<&Profile> for DeviceProfile {
    fn from(profile: &Profile) -> Self {
        let modes = profile.modes.iter().map(|mode| Mode {
            name: mode.name.clone(),
            how: mode.how.clone(),
            enter: mode.enter.clone(),
        });
        let sources = profile.sources.iter().map(|source| Source {
            id: source.id.clone(),
            title: source.title.clone(),
            publisher: source.publisher.clone(),
            compared: source.compared.clone(),
        });
        let matcher = |value| NameMatcher { r#type: "name_regex".to_owned(), value };
        Self {
            device: Entry::from(profile),
            about: profile.about.clone(),
            usb: profile.identity.usb.iter().map(ToString::to_string).collect(),
            ports: profile.identity.ports.all().map(str::to_owned).collect(),
            matchers: name_regexes(profile).into_iter().map(matcher).collect(),
            modes: modes.collect(),
            lights: profile.lights.iter().map(LightView::from).collect(),
            layout: None,
            series: series(profile).filter_map(Series::of).collect(),
            sources: sources.collect(),
        }
    }
}

/// The controls of each entry of the file.
fn series(profile: &Profile) -> impl Iterator<Item = &[Control]> {
    profile.controls.chunk_by(|one, other| one.line == other.line)
}

impl DeviceProfile {
    /// The same with the row and the column of each control.
    pub fn with_places(mut self, profile: &Profile) -> Self {
        self.layout = profile.layout.map(|layout| [layout.rows, layout.columns]);
        for (shown, controls) in self.series.iter_mut().zip(series(profile)) {
            shown.places = controls.iter().map(|control| control.place).collect();
        }
        self
    }
}

impl From<&Light> for LightView {
    fn from(light: &Light) -> Self {
        Self {
            id: light.id.clone(),
            message: light.message.as_str().to_owned(),
            channel: light.channel,
            sysex: light.sysex.clone(),
            values: light.values.iter().map(|value| format!("{} = {}", value.name, value.value)).collect(),
            about: light.about.clone(),
        }
    }
}

impl Series {
    fn of(controls: &[Control]) -> Option<Self> {
        let first = controls.first()?;
        Some(Self {
            kind: first.kind.as_str().to_owned(),
            controls: controls.iter().map(|control| format!("{}: {}", control.name, control.message)).collect(),
            places: Vec::new(),
            range: first.range,
            encoding: first.encoding.map(|encoding| encoding.as_str().to_owned()),
            light: first.light.clone(),
            modes: first.modes.clone(),
            source: first.source.clone(),
            confidence: first.confidence.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_device_profile::Library;

    #[test]
    fn no_control_is_left_out() {
        let library = Library::bundled();
        for profile in library.profiles() {
            let view = DeviceProfile::from(profile);
            let shown: usize = view.series.iter().map(|series| series.controls.len()).sum();
            assert_eq!(shown, profile.controls.len(), "{}", profile.id);
        }
    }

    #[test]
    fn what_is_drawn_has_its_places_and_what_a_model_reads_has_none() {
        let library = Library::bundled();
        let profile = library.get("akai-apc-mini").expect("it is known");
        let read = DeviceProfile::from(profile);
        assert!(read.layout.is_none() && read.series.iter().all(|series| series.places.is_empty()));
        let drawn = read.with_places(profile);
        assert_eq!(drawn.layout, Some([10, 9]));
        // 64 pads in rows of eight, and the scenes in the column beside them.
        assert_eq!(drawn.series[0].places[..2], [Some([1, 1]), Some([1, 2])]);
        assert_eq!(drawn.series[0].places[8], Some([2, 1]));
        assert_eq!(drawn.series[1].places[..2], [Some([1, 9]), Some([2, 9])]);
        assert!(drawn.series.iter().all(|series| series.places.len() == series.controls.len()));
    }

    #[test]
    fn what_has_ports_has_matchers_for_them() {
        let library = Library::bundled();
        let matchers = |id| DeviceProfile::from(library.get(id).expect("it is known")).matchers;
        let values: Vec<String> = matchers("akai-apc-mini").into_iter().map(|matcher| matcher.value).collect();
        assert_eq!(values, ["(?i)^.*APC MINI$", "(?i)^.*APC MINI MIDI.*$"]);
        assert!(matchers("touchosc-mk1-mix16").is_empty(), "it sends OSC");
    }

    #[test]
    fn a_series_shows_each_control_with_its_message() {
        let library = Library::bundled();
        let view = DeviceProfile::from(library.get("akai-apc-mini").expect("it is known"));
        assert_eq!(view.series[0].controls[..2], ["pad 1: note 56", "pad 2: note 57"]);
        assert_eq!(view.lights[0].values[..2], ["off = 0", "green = 1"]);
    }
}
