//! What the lights and motor faders of one output show.
//!
//! Mappings say what a light shows while they wait, and what it shows when they have fired; [`StateLight`]s show what variables
//! hold. Each mode has a page of its own, over those of the modes below it and one that is for every mode. The page is shown
//! when its mode becomes active and when the port comes (back), so that a device always shows what its controls will do, and
//! how things are.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor_config::{Inputs, NumberExpr};
use conductor_event::{DeviceId, MidiMessage, ModeIx};
use conductor_variables::Variable;

use super::midi_message::MidiTemplate;
use super::variables::View;

/// A light or a fader: the status of the messages that set it, with the channel, and its number.
type Place = (u8, u8);

/// One page: what each light shows. Sorted, so that it is sent in the same order each time.
type Page = BTreeMap<Place, Shown>;

/// What displays in keys say, by note.
pub type Texts = BTreeMap<u8, Arc<str>>;

/// What a light shows.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    message: MidiMessage,
    /// Whether it goes on and off.
    blinks: bool,
}

/// What the lights of one output show.
#[derive(Debug, Clone, Default)]
pub struct OutputLights {
    /// While nothing has happened, by mode; no mode is every mode.
    pub idle: Vec<(Option<ModeIx>, MidiMessage)>,
    /// What variables hold.
    pub state: Vec<Arc<StateLight>>,
    /// What the displays in keys say, by mode and note; no mode is every mode.
    pub texts: Vec<(Option<ModeIx>, u8, Arc<str>)>,
}

/// A light that shows what variables hold.
#[derive(Debug)]
pub struct StateLight {
    /// On which page; `None` if on that for every mode.
    pub mode: Option<ModeIx>,
    /// What sets it.
    pub message: MidiTemplate,
    /// It blinks while this is not 0; `None` if it never does.
    pub blinks: Option<NumberExpr>,
    /// The variables, as the light sees them.
    pub view: View,
    /// Whose value it shows of variables that each device has for itself.
    pub device: DeviceId,
    /// Those that it names.
    pub variables: Vec<Variable>,
}

impl StateLight {
    fn now(&self) -> Shown {
        let none = Inputs::default();
        let blinks = |number: &NumberExpr| number.number(&self.view.of(&none, &self.device)) != 0.0;
        Shown { message: self.message.filled(&none, &self.device), blinks: self.blinks.as_ref().is_some_and(blinks) }
    }
}

/// The lights of one output.
#[derive(Debug)]
pub struct Lights {
    /// By mode; none is for every mode.
    pages: BTreeMap<Option<ModeIx>, Page>,
    /// What the displays in keys say, in the same way.
    texts: BTreeMap<Option<ModeIx>, Texts>,
    below: Arc<[ModeIx]>,
    active: Option<ModeIx>,
    /// With the place that each set last.
    state: Vec<(Arc<StateLight>, Option<Place>)>,
    /// Whether what blinks is on.
    is_on: bool,
    /// What blinked when that was asked last.
    blinking: Page,
}

impl Default for Lights {
    fn default() -> Self {
        Self {
            pages: BTreeMap::new(),
            texts: BTreeMap::new(),
            below: Arc::default(),
            active: None,
            state: Vec::new(),
            is_on: true,
            blinking: Page::new(),
        }
    }
}

impl Lights {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Takes over what lights show, which mode is below which, and which one is active. Returns what is to be sent: lights
    /// that nothing sets any more go dark.
    pub fn replace(
        &mut self,
        OutputLights { idle, state, texts }: OutputLights,
        below: Arc<[ModeIx]>,
        active: Option<ModeIx>,
    ) -> Vec<MidiMessage> {
        let before = self.shown();
        self.pages.clear();
        for (mode, message) in idle {
            self.put(mode, Shown { message, blinks: false });
        }
        self.texts.clear();
        for (mode, note, text) in texts {
            self.texts.entry(mode).or_default().insert(note, text);
        }
        self.state = state.into_iter().map(|light| (light, None)).collect();
        (self.below, self.active) = (below, active);
        self.take_state();
        self.changes(&before)
    }

    /// Variables have changed. Returns what is to be sent.
    pub fn refresh(&mut self) -> Vec<MidiMessage> {
        if self.state.is_empty() {
            return Vec::new();
        }
        let before = self.shown();
        self.take_state();
        self.changes(&before)
    }

    /// Has a light show this from now on, in this mode. True when it is to be sent now.
    pub fn set(&mut self, mode: Option<ModeIx>, message: &MidiMessage) -> bool {
        let Some(place) = self.put(mode, Shown { message: message.clone(), blinks: false }) else { return true };
        let covers = |upper: &Option<ModeIx>| self.pages.get(upper).is_some_and(|page| page.contains_key(&place));
        let visible = self.visible();
        let at = visible.iter().position(|page| *page == mode);
        at.is_some_and(|at| !visible[at + 1..].iter().any(covers))
    }

    /// Another mode is active. Returns what is to be sent.
    pub fn turn_to(&mut self, mode: ModeIx) -> Vec<MidiMessage> {
        let before = self.shown();
        self.active = Some(mode);
        self.changes(&before)
    }

    /// What the displays in keys say now.
    pub fn texts(&self) -> Texts {
        if self.texts.is_empty() {
            return Texts::new();
        }
        let pages = self.visible().into_iter().filter_map(|page| self.texts.get(&page));
        pages.flatten().map(|(note, text)| (*note, Arc::clone(text))).collect()
    }

    /// Everything that is shown, to be sent to a port that has just come.
    pub fn all(&self) -> Vec<MidiMessage> {
        self.shown().into_values().collect()
    }

    /// What makes everything dark. Nothing is shown any more.
    pub fn out(&mut self) -> Vec<MidiMessage> {
        let before = self.shown();
        self.pages.clear();
        self.texts.clear();
        self.state.clear();
        self.changes(&before)
    }

    /// Whether something that is shown blinks.
    pub fn blink(&self) -> bool {
        if !self.state.iter().any(|(light, _)| light.blinks.is_some()) {
            return false;
        }
        let pages = self.visible().into_iter().filter_map(|page| self.pages.get(&page));
        pages.flat_map(Page::values).any(|shown| shown.blinks)
    }

    /// What lights show where the messages that are sent do not say it: those that blink, as they are when they are on, and
    /// those that blinked when this was asked last and no longer do. With each goes whether it blinks.
    pub fn blinking(&mut self) -> Vec<(MidiMessage, bool)> {
        if self.blinking.is_empty() && !self.blink() {
            return Vec::new();
        }
        let visible = self.visible();
        let pages = visible.iter().filter_map(|page| self.pages.get(page));
        let mut seen: Page = pages.flatten().map(|(place, shown)| (*place, shown.clone())).collect();
        let mut found = Vec::new();
        for (place, Shown { message, .. }) in std::mem::take(&mut self.blinking) {
            match seen.get(&place) {
                Some(shown) if shown.blinks => {}
                Some(shown) => found.push((shown.message.clone(), false)),
                None => found.push((dark(&message).unwrap_or(message), false)),
            }
        }
        seen.retain(|_, shown| shown.blinks);
        found.extend(seen.values().map(|shown| (shown.message.clone(), true)));
        self.blinking = seen;
        found
    }

    /// Has what blinks go on where it is off, and off where it is on. Returns what is to be sent.
    pub fn flip(&mut self) -> Vec<MidiMessage> {
        let before = self.shown();
        self.is_on = !self.is_on;
        self.changes(&before)
    }

    /// Has what begins to blink begin with light.
    pub fn begin_on(&mut self) {
        self.is_on = true;
    }

    /// Puts what a light shows on a page. `None` if the message sets no light.
    fn put(&mut self, mode: Option<ModeIx>, shown: Shown) -> Option<Place> {
        let place = place(&shown.message)?;
        self.pages.entry(mode).or_default().insert(place, shown);
        Some(place)
    }

    fn take_state(&mut self) {
        let mut state = std::mem::take(&mut self.state);
        for (light, at) in &mut state {
            let now = light.now();
            // It may be about another light now than before.
            if let Some(before) = at.take_if(|at| place(&now.message) != Some(*at))
                && let Some(page) = self.pages.get_mut(&light.mode)
            {
                page.remove(&before);
            }
            *at = self.put(light.mode, now);
        }
        self.state = state;
    }

    /// The pages that are seen, the uppermost last.
    fn visible(&self) -> Vec<Option<ModeIx>> {
        let below = |mode: &ModeIx| self.below.get(usize::from(mode.0)).copied().filter(|below| *below != ModeIx::NONE);
        let modes = std::iter::successors(self.active, below).take(self.below.len().max(1));
        let mut pages: Vec<_> = modes.map(Some).chain([None]).collect();
        pages.reverse();
        pages
    }

    /// What is seen now.
    fn shown(&self) -> BTreeMap<Place, MidiMessage> {
        let pages = self.visible().into_iter().filter_map(|page| self.pages.get(&page));
        let appears = |Shown { message, blinks }: &Shown| match dark(message) {
            Some(dark) if *blinks && !self.is_on => dark,
            _ => message.clone(),
        };
        pages.flatten().map(|(place, shown)| (*place, appears(shown))).collect()
    }

    /// What leads from what was shown before to what is shown now.
    fn changes(&self, before: &BTreeMap<Place, MidiMessage>) -> Vec<MidiMessage> {
        let now = self.shown();
        let gone = before.iter().filter(|(place, _)| !now.contains_key(place)).filter_map(|(_, message)| dark(message));
        let new = now.iter().filter(|(place, message)| before.get(place) != Some(message));
        gone.chain(new.map(|(_, message)| message.clone())).collect()
    }
}

/// The light that a message sets; `None` if it sets none, and is only sent.
fn place(message: &MidiMessage) -> Option<Place> {
    Some(match *message {
        MidiMessage::NoteOn { channel, note, .. } | MidiMessage::NoteOff { channel, note, .. } => {
            (0x90 | channel, note)
        }
        MidiMessage::PolyAftertouch { channel, note, .. } => (0xA0 | channel, note),
        MidiMessage::ControlChange { channel, controller, .. } => (0xB0 | channel, controller),
        MidiMessage::Aftertouch { channel, .. } => (0xD0 | channel, 0),
        MidiMessage::PitchBend { channel, .. } => (0xE0 | channel, 0),
        _ => return None,
    })
}

/// The message that makes the light of another message dark. A motor fader stays where it is: it should not run
/// down because a mode is left.
fn dark(message: &MidiMessage) -> Option<MidiMessage> {
    match *message {
        MidiMessage::NoteOn { channel, note, .. } => Some(MidiMessage::NoteOff { channel, note, velocity: 0 }),
        MidiMessage::ControlChange { channel, controller, value } if value > 0 => {
            Some(MidiMessage::ControlChange { channel, controller, value: 0 })
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use conductor_variables::{Change, Declaration, Key, Kind, Scope, Variables};
    use proptest::prelude::*;

    use super::*;

    fn light(note: u8, velocity: u8) -> MidiMessage {
        MidiMessage::NoteOn { channel: 0, note, velocity }
    }

    fn dark_light(note: u8) -> MidiMessage {
        MidiMessage::NoteOff { channel: 0, note, velocity: 0 }
    }

    fn idle(idle: &[(Option<ModeIx>, MidiMessage)]) -> OutputLights {
        OutputLights { idle: idle.to_vec(), ..OutputLights::default() }
    }

    const PLAY: Option<ModeIx> = Some(ModeIx(0));
    const EDIT: Option<ModeIx> = Some(ModeIx(1));

    // ACT-5: a mode's lights are those of its mappings, and come back with it.
    #[test]
    fn each_mode_has_its_page_over_the_one_for_all() {
        let mut lights = Lights::default();
        let first = [(PLAY, light(1, 10)), (EDIT, light(2, 20)), (None, light(2, 5)), (None, light(3, 30))];
        assert_eq!(lights.replace(idle(&first), Arc::default(), PLAY), [light(1, 10), light(2, 5), light(3, 30)]);
        assert!(lights.set(PLAY, &light(1, 127)));
        assert!(!lights.set(EDIT, &light(2, 99)), "not now");
        assert_eq!(lights.turn_to(ModeIx(1)), [dark_light(1), light(2, 99)]);
        assert!(!lights.set(None, &light(2, 6)), "the mode's own is over it");
        assert_eq!(lights.turn_to(ModeIx(0)), [light(1, 127), light(2, 6)]);
        assert_eq!(lights.all(), [light(1, 127), light(2, 6), light(3, 30)]);
        let after = idle(&[(None, light(3, 30))]);
        assert_eq!(lights.replace(after, Arc::default(), PLAY), [dark_light(1), dark_light(2)]);
        assert_eq!(lights.out(), [dark_light(3)]);
    }

    // A key that a mode leaves to the one below still does what its light says.
    #[test]
    fn the_page_below_is_seen_where_the_upper_one_has_nothing() {
        let mut lights = Lights::default();
        let first = [(PLAY, light(1, 10)), (PLAY, light(2, 20)), (EDIT, light(2, 99)), (None, light(3, 30))];
        let below = [ModeIx::NONE, ModeIx(0)];
        assert_eq!(lights.replace(idle(&first), below.into(), PLAY), [light(1, 10), light(2, 20), light(3, 30)]);
        assert_eq!(lights.turn_to(ModeIx(1)), [light(2, 99)]);
        assert!(lights.set(PLAY, &light(1, 11)), "it is seen");
        assert!(!lights.set(PLAY, &light(2, 21)), "it is below another one");
        assert!(!lights.set(None, &light(1, 12)), "that is below, too");
        assert_eq!(lights.turn_to(ModeIx(0)), [light(2, 21)]);
        assert!(!lights.set(EDIT, &light(1, 5)), "the upper page is not seen");
        // Modes that lie over each other in a circle are refused; here they end.
        lights.replace(idle(&first), [ModeIx(1), ModeIx(0)].into(), PLAY);
        assert_eq!(lights.all().len(), 3);
    }

    // A key's text is its mapping's, and so goes with the mode.
    #[test]
    fn texts_are_those_of_the_pages_that_are_seen() {
        let mut lights = Lights::default();
        let texts = [(PLAY, 1, "Mute"), (None, 2, "Panic"), (EDIT, 2, "Undo")];
        let texts = texts.map(|(mode, note, text)| (mode, note, text.into())).to_vec();
        let seen =
            |lights: &Lights| lights.texts().iter().map(|(note, text)| format!("{note} {text}")).collect::<Vec<_>>();
        lights.replace(OutputLights { texts, ..OutputLights::default() }, Arc::default(), PLAY);
        assert_eq!(seen(&lights), ["1 Mute", "2 Panic"]);
        lights.turn_to(ModeIx(1));
        assert_eq!(seen(&lights), ["2 Undo"]);
        lights.replace(OutputLights::default(), Arc::default(), PLAY);
        assert!(seen(&lights).is_empty());
    }

    #[test]
    fn what_sets_no_light_is_only_sent() {
        let mut lights = Lights::default();
        assert!(lights.set(None, &MidiMessage::ProgramChange { channel: 0, program: 3 }));
        assert!(lights.all().is_empty());
    }

    /// Variables `mute`, a switch, and `gain`, from 0 to 1; and a light of this message.
    fn state(message: &str, blinks: Option<&str>) -> (Variables, Arc<StateLight>) {
        let declared =
            |name: &str, kind| Declaration { name: name.into(), kind, scope: Scope::Global, initial: 0.0, keep: false };
        let gain = Kind::Number { limits: Some(conductor_number::Range { from: 0.0, to: 1.0 }) };
        let all = [declared("mute", Kind::Switch), declared("gain", gain)];
        let variables = Variables::declare(all, &Variables::default());
        let view = View { variables: Arc::new(variables.clone()), mode: Key::EVERYONE };
        let mut message: conductor_config::MidiMessage = toml::from_str(message).unwrap();
        message.bind(|name| variables.bound(name)).unwrap();
        let blinks = blinks.map(|text| {
            let mut number: NumberExpr = text.parse().unwrap();
            number.bind(|name| variables.bound(name)).unwrap();
            number
        });
        let light = StateLight {
            mode: None,
            message: MidiTemplate::new(message, view.clone()),
            blinks,
            view,
            device: DeviceId::new("pads"),
            variables: variables.iter().cloned().collect(),
        };
        (variables, Arc::new(light))
    }

    fn set(variables: &Variables, name: &str, to: f64) {
        variables.find(name).unwrap().change(Key::EVERYONE, &Change::Set, to, 1);
    }

    // ACT-5: a light says what a variable holds, a ring or a motor fader how much, and only what is another is sent.
    #[test]
    fn state_is_shown_as_colour_and_as_a_value() {
        let (variables, pad) = state("message_type = 'NoteOn'\nnote = 36\nvelocity = '{if(mute, 5, 21)}'", None);
        let mut lights = Lights::default();
        let shown =
            |light: &Arc<StateLight>| OutputLights { state: vec![Arc::clone(light)], ..OutputLights::default() };
        assert_eq!(lights.replace(shown(&pad), Arc::default(), PLAY), [light(36, 21)]);
        set(&variables, "mute", 1.0);
        assert_eq!(lights.refresh(), [light(36, 5)]);
        set(&variables, "gain", 1.0);
        assert!(lights.refresh().is_empty());
        assert_eq!(lights.all(), [light(36, 5)], "for a port that comes back");

        let (variables, fader) = state("message_type = 'PitchBend'\nvalue = '{gain -> 0..16383}'", None);
        let at = |value| MidiMessage::PitchBend { channel: 0, value };
        assert_eq!(lights.replace(shown(&fader), Arc::default(), PLAY), [dark_light(36), at(0)]);
        set(&variables, "gain", 0.5);
        assert_eq!(lights.refresh(), [at(8192)]);
    }

    // Devices that blink by themselves do so on another channel: the light is another place then.
    #[test]
    fn a_light_that_is_set_in_another_way_is_not_left_on() {
        let (variables, pad) =
            state("message_type = 'NoteOn'\nchannel = '{if(mute, 2, 0)}'\nnote = 36\nvelocity = 5", None);
        let mut lights = Lights::default();
        lights.replace(OutputLights { state: vec![pad], ..OutputLights::default() }, Arc::default(), PLAY);
        set(&variables, "mute", 1.0);
        let pulses = MidiMessage::NoteOn { channel: 2, note: 36, velocity: 5 };
        assert_eq!(lights.refresh(), [dark_light(36), pulses.clone()]);
        set(&variables, "mute", 0.0);
        let dark = MidiMessage::NoteOff { channel: 2, note: 36, velocity: 0 };
        assert_eq!(lights.refresh(), [dark, light(36, 5)]);
    }

    #[test]
    fn what_blinks_goes_on_and_off_as_long_as_it_is_to() {
        let (variables, pad) = state("message_type = 'NoteOn'\nnote = 36\nvelocity = 5", Some("gain > 0.5"));
        let mut lights = Lights::default();
        lights.replace(OutputLights { state: vec![pad], ..OutputLights::default() }, Arc::default(), PLAY);
        assert!(!lights.blink() && lights.flip().is_empty());
        assert_eq!(lights.blinking(), []);
        lights.begin_on();
        set(&variables, "gain", 1.0);
        assert!(lights.refresh().is_empty() && lights.blink(), "it begins with light");
        assert_eq!(lights.flip(), [dark_light(36)]);
        assert_eq!(lights.flip(), [light(36, 5)]);
        assert_eq!(lights.flip(), [dark_light(36)]);
        assert_eq!(lights.blinking(), [(light(36, 5), true)], "on or off");
        set(&variables, "gain", 0.0);
        assert_eq!(lights.refresh(), [light(36, 5)], "it ends with light");
        assert!(!lights.blink());
        assert_eq!(lights.blinking(), [(light(36, 5), false)]);
        assert_eq!(lights.blinking(), []);
        // One that is off when its page goes is sent nothing.
        set(&variables, "gain", 1.0);
        lights.refresh();
        lights.blinking();
        assert!(lights.out().is_empty());
        assert_eq!(lights.blinking(), [(dark_light(36), false)]);
    }

    proptest! {
        /// A device that gets what is to be sent, and nothing else, shows what it should after every step.
        #[test]
        fn the_device_shows_the_page(steps in prop::collection::vec((0u8..5, 0u8..4, 0u8..3, 1u8..128), 0..60)) {
            let mut lights = Lights::default();
            let (variables, pad) = state("message_type = 'NoteOn'\nnote = '{gain -> 0..3}'\nvelocity = 7", None);
            let mut device: BTreeMap<u8, u8> = BTreeMap::new();
            let mut receive = |messages: Vec<MidiMessage>| {
                for message in messages {
                    match message {
                        MidiMessage::NoteOn { note, velocity, .. } => drop(device.insert(note, velocity)),
                        MidiMessage::NoteOff { note, .. } => drop(device.remove(&note)),
                        other => panic!("{other:?}"),
                    }
                }
                device.clone()
            };
            for (step, note, mode, velocity) in steps {
                let mode_ix = (mode < 2).then_some(ModeIx(mode.into()));
                let message = light(note, velocity);
                let sent = match step {
                    0 => lights.turn_to(ModeIx(u16::from(mode))),
                    1 => {
                        let all = OutputLights { idle: vec![(mode_ix, message)], state: vec![Arc::clone(&pad)], ..OutputLights::default() };
                        // The second mode lies over the first.
                        lights.replace(all, [ModeIx::NONE, ModeIx(0)].into(), lights.active)
                    }
                    2 => {
                        set(&variables, "gain", f64::from(velocity) / 127.0);
                        lights.refresh()
                    }
                    _ => if lights.set(mode_ix, &message) { vec![message] } else { vec![] },
                };
                let shown = receive(sent);
                let expected: BTreeMap<u8, u8> = lights.all().iter().map(|message| match *message {
                    MidiMessage::NoteOn { note, velocity, .. } => (note, velocity),
                    ref other => panic!("{other:?}"),
                }).collect();
                prop_assert_eq!(shown, expected);
            }
            prop_assert!(receive(lights.out()).is_empty());
        }
    }
}
