//! A Stream Deck without hardware: a device of the kernel's uhid, which programs take for a real one.
//!
//! The reports are those of an MK.2, as `elgato-streamdeck` reads and writes them; the numbers of events and the places in them are
//! those of the kernel's include/uapi/linux/uhid.h.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use conductor_tests::wait;

/// Keys of an MK.2.
const KEYS: usize = 15;
/// Bytes of what a picture's report says before the picture.
const HEAD: usize = 8;
/// What a colour may differ by, of 255: a JPEG is not exact.
const TOLERANCE: u8 = 12;

/// Events of uhid.
const DESTROY: u32 = 1;
const OUTPUT: u32 = 6;
const GET_REPORT: u32 = 9;
const GET_REPORT_REPLY: u32 = 10;
const CREATE2: u32 = 11;
const INPUT2: u32 = 12;
const SET_REPORT: u32 = 13;
const SET_REPORT_REPLY: u32 = 14;
/// The most that an event has: its type, and a `uhid_create2_req`.
const EVENT: usize = 4 + 4372;
/// Bytes of data that an output has room for.
const DATA: usize = 4096;

/// An input report of 511 bytes (1), an output report of 1023 (2), and feature reports of 31 (3, 5, 6), of a vendor's own.
const DESCRIPTOR: [u8; 53] = [
    0x06, 0x00, 0xFF, 0x09, 0x01, 0xA1, 0x01, 0x15, 0x00, 0x26, 0xFF, 0x00, 0x75, 0x08, // one byte each
    0x85, 0x01, 0x96, 0xFF, 0x01, 0x09, 0x01, 0x81, 0x02, // in
    0x85, 0x02, 0x96, 0xFF, 0x03, 0x09, 0x01, 0x91, 0x02, // out
    0x95, 0x1F, 0x85, 0x03, 0x09, 0x01, 0xB1, 0x02, // features
    0x85, 0x05, 0x09, 0x01, 0xB1, 0x02, 0x85, 0x06, 0x09, 0x01, 0xB1, 0x02, 0xC0,
];

/// The deck. Dropping it pulls it out.
pub struct Deck {
    file: File,
    pressed: [bool; KEYS],
    /// Keys and their pictures.
    pictures: Receiver<(u8, Vec<u8>)>,
    /// What each key shows that was shown something.
    shown: HashMap<u8, Shown>,
}

/// What a key shows.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// The colour beside its text.
    colour: [u8; 3],
    /// Whether it has a text.
    is_written: bool,
}

impl Shown {
    fn of(picture: &[u8]) -> Self {
        let image = image::load_from_memory(picture).unwrap().into_rgb8();
        let colour = image.get_pixel(0, 0).0;
        let far = |pixel: &[u8; 3]| pixel.iter().zip(colour).any(|(one, other)| one.abs_diff(other) > 100);
        Self { colour, is_written: image.pixels().any(|pixel| far(&pixel.0)) }
    }
}

impl Deck {
    /// Plugs it in.
    pub fn plug(serial: &str) -> Self {
        let mut file = OpenOptions::new().read(true).write(true).open("/dev/uhid").unwrap();
        let mut event = vec![0; EVENT];
        event[..4].copy_from_slice(&CREATE2.to_ne_bytes());
        let mut put = |at: usize, bytes: &[u8]| event[4 + at..4 + at + bytes.len()].copy_from_slice(bytes);
        put(0, b"Elgato Stream Deck MK.2");
        put(128 + 64, serial.as_bytes());
        put(256, &(DESCRIPTOR.len() as u16).to_ne_bytes());
        // USB; the ids of vendor and product; a version.
        put(258, &3_u16.to_ne_bytes());
        put(260, &0x0FD9_u32.to_ne_bytes());
        put(264, &0x0080_u32.to_ne_bytes());
        put(268, &0x0100_u32.to_ne_bytes());
        put(276, &DESCRIPTOR);
        file.write_all(&event).unwrap();
        let (sender, pictures) = mpsc::channel();
        let answering = file.try_clone().unwrap();
        thread::spawn(move || answer(answering, &sender));
        Self { file, pressed: [false; KEYS], pictures, shown: HashMap::new() }
    }

    /// Presses a key or lets it go.
    pub fn key(&mut self, key: usize, pressed: bool) {
        self.pressed[key] = pressed;
        let mut report = vec![1, 0, KEYS as u8, 0];
        report.extend(self.pressed.map(u8::from));
        report.resize(512, 0);
        let mut event = INPUT2.to_ne_bytes().to_vec();
        event.extend(u16::try_from(report.len()).unwrap().to_ne_bytes());
        event.extend(report);
        self.file.write_all(&event).unwrap();
    }

    /// Waits until a key is of this colour.
    pub fn shows(&mut self, key: u8, colour: [u8; 3]) {
        let is_close =
            |shown: Shown| shown.colour.iter().zip(colour).all(|(one, other)| one.abs_diff(other) < TOLERANCE);
        self.becomes(key, &format!("{colour:?}"), is_close);
    }

    /// Waits until a key has a text, or none.
    pub fn is_written(&mut self, key: u8, is_written: bool) {
        self.becomes(key, &format!("with a text: {is_written}"), |shown| shown.is_written == is_written);
    }

    fn becomes(&mut self, key: u8, what: &str, is_so: impl Fn(Shown) -> bool) {
        let (pictures, shown) = (&self.pictures, std::cell::RefCell::new(&mut self.shown));
        wait::until(
            || {
                for (key, picture) in pictures.try_iter() {
                    shown.borrow_mut().insert(key, Shown::of(&picture));
                }
                shown.borrow().get(&key).filter(|shown| is_so(**shown)).map(|_| ())
            },
            || format!("key {key} is {:?} and not {what}", shown.borrow().get(&key)),
        );
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        // The kernel forgets it at once, and the thread that answers ends.
        let _ = self.file.write_all(&DESTROY.to_ne_bytes());
    }
}

/// Answers as the device does, and takes pictures out of the reports that they come in.
fn answer(mut file: File, pictures: &Sender<(u8, Vec<u8>)>) {
    let (mut event, mut picture) = (vec![0; EVENT], Vec::new());
    while file.read(&mut event).is_ok_and(|length| length > 0) {
        let kind = u32::from_ne_bytes(event[..4].try_into().unwrap());
        let id = &event[4..8];
        match kind {
            OUTPUT => {
                let length = usize::from(u16::from_ne_bytes(event[4 + DATA..6 + DATA].try_into().unwrap()));
                let report = &event[4..4 + length];
                // 02 07, the key, whether it is the last, the bytes in it, the number of the report.
                if let [0x02, 0x07, key, is_last, low, high, _, _, rest @ ..] = report {
                    picture.extend(&rest[..usize::from(u16::from_le_bytes([*low, *high])).min(length - HEAD)]);
                    if *is_last == 1 {
                        let _ = pictures.send((*key, std::mem::take(&mut picture)));
                    }
                }
            }
            GET_REPORT => {
                let mut reply =
                    [&GET_REPORT_REPLY.to_ne_bytes(), id, &0_u16.to_ne_bytes()[..], &32_u16.to_ne_bytes()].concat();
                reply.push(event[8]);
                reply.resize(reply.len() + 31, 0);
                let _ = file.write_all(&reply);
            }
            SET_REPORT => {
                let reply = [&SET_REPORT_REPLY.to_ne_bytes(), id, &0_u16.to_ne_bytes()[..]].concat();
                let _ = file.write_all(&reply);
            }
            _ => {}
        }
    }
}
