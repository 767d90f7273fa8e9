//! The devices themselves: which are there, what is done with them, and what their keys show.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use elgato_streamdeck::images::convert_image;
use elgato_streamdeck::info::{ELGATO_VENDOR_ID, Kind};
use elgato_streamdeck::{DeviceStateReader, StreamDeck, StreamDeckError};
use hidapi::HidApi;
use image::DynamicImage;

use crate::layout::{self, Setting};
use crate::picture;

/// How many pictures of colours with a text are kept: all of a page and the one before.
const MOST_PICTURES: usize = 128;

/// Why a deck can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system's HID can't be reached.
    #[error("the system's HID devices can't be reached: {0}")]
    System(hidapi::HidError),
    /// The device can't be opened.
    #[error("{name} can't be opened: {why}")]
    Open {
        /// What the deck is called.
        name: &'static str,
        /// Why, as the system says it.
        why: String,
    },
    /// The device is gone, or does not do what it is told.
    #[error("{}", said(.0))]
    Device(StreamDeckError),
    /// A message that it does not take; what it takes.
    #[error("{0}")]
    Message(String),
}

/// A deck that is plugged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which kind of deck.
    pub kind: Kind,
    /// Its serial number, which tells it from others of its kind.
    pub serial: String,
}

impl Found {
    /// What it is called. Twins have one name.
    pub fn name(&self) -> &'static str {
        layout::name(self.kind)
    }

    /// Its USB vendor and product ids.
    pub fn usb(&self) -> (u16, u16) {
        (self.kind.vendor_id(), self.kind.product_id())
    }

    /// Whether its keys show something.
    pub fn is_lit(&self) -> bool {
        self.kind.is_visual()
    }
}

/// The way to the system's HID. It connects when decks are first asked for.
#[derive(Default)]
pub struct Decks(Option<HidApi>);

impl std::fmt::Debug for Decks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decks")
    }
}

impl Decks {
    fn api(&mut self) -> Result<&mut HidApi, Error> {
        match &mut self.0 {
            Some(api) => Ok(api),
            none => Ok(none.insert(HidApi::new().map_err(Error::System)?)),
        }
    }

    /// Every deck that is plugged in, by kind and serial number. One without a serial number can't be told from others and is
    /// left out.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn list(&mut self) -> Result<Vec<Found>, Error> {
        let api = self.api()?;
        api.reset_devices().map_err(Error::System)?;
        // Only those of the one maker are looked at.
        api.add_devices(ELGATO_VENDOR_ID, 0).map_err(Error::System)?;
        let mut found: Vec<Found> =
            elgato_streamdeck::list_devices(api).into_iter().map(|(kind, serial)| Found { kind, serial }).collect();
        found.sort_by(|one, other| (one.name(), &one.serial).cmp(&(other.name(), &other.serial)));
        Ok(found)
    }

    /// Opens a deck. It may be opened twice, to be read on one thread and lit on another.
    ///
    /// # Errors
    /// [`Error::Open`] and [`Error::System`].
    pub fn open(&mut self, found: &Found) -> Result<Deck, Error> {
        let api = self.api()?;
        let opened = StreamDeck::connect(api, found.kind, &found.serial);
        let device = opened.map_err(|error| Error::Open { name: found.name(), why: said(&error) })?;
        Ok(Deck { device })
    }
}

/// An error without the names of types that it is made of.
fn said(error: &StreamDeckError) -> String {
    match error {
        StreamDeckError::HidError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// A deck that is open.
pub struct Deck {
    device: StreamDeck,
}

impl std::fmt::Debug for Deck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deck({:?})", self.device.kind())
    }
}

impl Deck {
    /// For the thread that reads it.
    pub fn reader(self) -> Reader {
        let kind = self.device.kind();
        #[expect(clippy::arc_with_non_send_sync, reason = "the library wants an `Arc`; it stays with this thread")]
        let device = Arc::new(self.device);
        Reader { kind, reader: device.get_reader() }
    }
}

/// What is done with a deck, for one thread.
pub struct Reader {
    kind: Kind,
    reader: Arc<DeviceStateReader>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({:?})", self.kind)
    }
}

impl Reader {
    /// Waits for the next report and hands over what it says as MIDI messages. Nothing if none came in this time.
    ///
    /// # Errors
    /// [`Error::Device`]: it is gone.
    pub fn next(&self, longest: Duration, take: &mut impl FnMut(&[u8])) -> Result<(), Error> {
        match self.reader.read(Some(longest)) {
            Ok(updates) => {
                let mut send = |message: [u8; 3]| take(&message);
                updates.into_iter().for_each(|update| layout::messages(self.kind, update, &mut send));
                Ok(())
            }
            // A report of a newer firmware, which says nothing of keys.
            Err(StreamDeckError::BadData) => Ok(()),
            Err(error) => Err(Error::Device(error)),
        }
    }
}

/// What the keys of a deck show. Dropping it gives the deck its own picture back.
#[derive(Debug)]
pub struct Lights {
    deck: Deck,
    keys: Vec<Key>,
    /// The pictures of colours and texts as the device wants them, once they were needed.
    pictures: HashMap<Face, Vec<u8>>,
}

/// What a key shows: the velocity of its colour, and its text.
type Face = (u8, Arc<str>);

/// A key.
#[derive(Debug, Clone)]
struct Key {
    face: Face,
    /// Whether the device has it; `false` if that is not known.
    is_shown: bool,
}

impl Lights {
    /// Takes the keys over; they are dark.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn new(deck: Deck) -> Result<Self, Error> {
        let keys = usize::from(deck.device.kind().key_count());
        let dark = Key { face: (0, Arc::default()), is_shown: false };
        let mut lights = Self { deck, keys: vec![dark; keys], pictures: HashMap::new() };
        lights.darken()?;
        Ok(lights)
    }

    /// Does what a MIDI message says.
    ///
    /// # Errors
    /// [`Error::Message`] if a deck of this kind does not take it, [`Error::Device`] if it is gone.
    pub fn take(&mut self, message: &[u8]) -> Result<(), Error> {
        let kind = self.deck.device.kind();
        match layout::setting(kind, message) {
            Some(Setting::Key(key, velocity)) => self.colour(key, velocity),
            Some(Setting::TouchPoint(point, [red, green, blue])) => {
                self.deck.device.set_touchpoint_color(point, red, green, blue).map_err(Error::Device)
            }
            Some(Setting::Brightness(percent)) => self.deck.device.set_brightness(percent).map_err(Error::Device),
            Some(Setting::Dark) => self.darken(),
            None => Err(Error::Message(layout::taken(kind))),
        }
    }

    /// Has the key of a note say a text, or nothing, on its colour. A note that is no key's is ignored.
    ///
    /// # Errors
    /// [`Error::Device`] if the deck is gone.
    pub fn show_text(&mut self, note: u8, text: Option<&str>) -> Result<(), Error> {
        let Some(key) = layout::key(self.deck.device.kind(), note) else { return Ok(()) };
        let (velocity, _) = self.keys[usize::from(key)].face;
        self.show(key, (velocity, text.unwrap_or_default().into()))
    }

    fn darken(&mut self) -> Result<(), Error> {
        (0..self.deck.device.kind().key_count()).try_for_each(|key| self.colour(key, 0))
    }

    fn colour(&mut self, key: u8, velocity: u8) -> Result<(), Error> {
        let (_, text) = &self.keys[usize::from(key)].face;
        self.show(key, (velocity, Arc::clone(text)))
    }

    fn show(&mut self, key: u8, face: Face) -> Result<(), Error> {
        let shown = &mut self.keys[usize::from(key)];
        if shown.is_shown && shown.face == face {
            return Ok(());
        }
        // Of a key whose picture was cut off it is not known what it shows.
        *shown = Key { face: face.clone(), is_shown: false };
        if self.pictures.len() >= MOST_PICTURES && !self.pictures.contains_key(&face) {
            self.pictures.clear();
        }
        let device = &self.deck.device;
        let picture = match self.pictures.entry(face) {
            std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => {
                let (velocity, text) = free.key();
                let picture = picture(device.kind(), *velocity, text)?;
                free.insert(picture)
            }
        };
        device.write_image(key, picture).and_then(|()| device.flush()).map_err(Error::Device)?;
        shown.is_shown = true;
        Ok(())
    }
}

impl Drop for Lights {
    fn drop(&mut self) {
        // Of a deck that is gone there is nothing to give back.
        let _ = self.deck.device.reset();
    }
}

/// A key in one colour with a text on it, as a deck of this kind wants it.
fn picture(kind: Kind, velocity: u8, text: &str) -> Result<Vec<u8>, Error> {
    let (width, height) = kind.key_image_format().size;
    let side = |pixels: usize| u32::try_from(pixels).unwrap_or(0);
    let image = picture::key(side(width), side(height), velocity, text);
    convert_image(kind, DynamicImage::ImageRgb8(image)).map_err(|error| Error::Device(error.into()))
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    #[test]
    fn a_key_has_its_colour_all_over() {
        let bytes = picture(Kind::Mk2, 96, "").unwrap();
        // A JPEG, as an MK.2 takes it, which fits into a few reports of 1024 bytes.
        assert!(bytes.starts_with(&[0xFF, 0xD8]) && bytes.len() < 4096, "{} bytes", bytes.len());
        let image = image::load_from_memory(&bytes).unwrap().into_rgb8();
        assert_eq!(image.dimensions(), (72, 72));
        for (_, _, Rgb([red, green, blue])) in image.enumerate_pixels() {
            assert!(*red > 240 && *green < 16 && *blue < 16, "{red} {green} {blue}");
        }
        assert!(picture(Kind::Mini, 3, "").unwrap().starts_with(b"BM"), "a Mini takes bitmaps");
    }
}
