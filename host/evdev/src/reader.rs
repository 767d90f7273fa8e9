//! Reads one device: a thread that waits for what its nodes send, grabs it and lets it go.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use evdev::{EventSummary, InputId, RelativeAxisCode};
use rustix::event::{PollFd, PollFlags, poll};

use crate::grab::{Grab, Step};
use crate::sysfs::Device;

/// Events of a grabbed device that may wait for their handler. Typing does not get so far ahead of a program that works.
const MAX_WAITING: usize = 1024;

/// What a device does. Keys that repeat because they are held do not count again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A key or button goes down or comes up.
    Key {
        /// Its code, 1 to 767 (`input-event-codes.h`).
        code: u16,
        /// Whether it is down now.
        pressed: bool,
    },
    /// A wheel turns.
    Wheel {
        /// Whether it is the one for moving sideways.
        sideways: bool,
        /// By how many steps: positive is up, or to the right.
        steps: i32,
    },
}

/// Why a device can't be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The user may not read this file.
    #[error("{} may not be read", .0.display())]
    Denied(PathBuf),
    /// The file is of another device than the one that was listed: it was unplugged, and another has got its number.
    #[error("{} is of another device by now", .0.display())]
    Changed(PathBuf),
    /// Something else is wrong with this file.
    #[error("{} can't be read: {}", .0.display(), .1)]
    Failed(PathBuf, #[source] io::Error),
    /// The system has no thread left.
    #[error("no thread can be started: {0}")]
    Thread(#[source] io::Error),
}

/// An open device. Dropping it closes it, and so lets it go.
#[derive(Debug)]
pub struct Reader {
    wake: Option<UnixStream>,
    let_go: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Opens a device. What it does is handed to `handler`, on another thread, until the reader is dropped or the device
    /// is unplugged; keys that are down then come up. With `grab` the device is grabbed as soon as no key of it is down.
    ///
    /// A handler of a grabbed device may take its time without keeping anyone from letting the device go by its keys; when
    /// it is 1024 events behind, the device is let go, and what it does not take is lost.
    ///
    /// # Errors
    /// See [`OpenError`]; no node stays open then.
    pub fn open(device: &Device, grab: bool, handler: impl FnMut(Input) + Send + 'static) -> Result<Self, OpenError> {
        let mut nodes = Vec::new();
        let mut down = Vec::new();
        for path in &device.nodes {
            let failed = |error: io::Error| match error.kind() {
                io::ErrorKind::PermissionDenied => OpenError::Denied(path.clone()),
                _ => OpenError::Failed(path.clone(), error),
            };
            let node = evdev::Device::open(path).map_err(failed)?;
            if !is_it(device, node.input_id()) {
                return Err(OpenError::Changed(path.clone()));
            }
            node.set_nonblocking(true).map_err(failed)?;
            down.extend(node.get_key_state().map_err(failed)?.iter().map(|key| key.code()));
            nodes.push(node);
        }
        let (wake, woken) = UnixStream::pair().map_err(OpenError::Thread)?;
        let let_go = Arc::<AtomicBool>::default();
        let mut work =
            Work { name: device.name.clone(), nodes, grab: Grab::new(grab, down), let_go: Arc::clone(&let_go) };
        // If it can be, it is grabbed from the beginning.
        work.step();
        let thread = thread::Builder::new().name("keyboard".into());
        let thread = if grab {
            let (sender, inputs) = mpsc::sync_channel(MAX_WAITING);
            let taker = thread::Builder::new().name("keyboard events".into());
            // It ends with the sender.
            taker.spawn(move || inputs.into_iter().for_each(handler)).map_err(OpenError::Thread)?;
            thread.spawn(move || work.run(&woken, Delivery::<fn(Input)>::Beside(sender)))
        } else {
            thread.spawn(move || work.run(&woken, Delivery::Through(handler)))
        };
        Ok(Self { wake: Some(wake), let_go, thread: Some(thread.map_err(OpenError::Thread)?) })
    }

    /// Whether the device was to be grabbed, and is not any more until it is opened anew: its keys, or a handler that hangs,
    /// have let it go.
    pub fn has_let_go(&self) -> bool {
        self.let_go.load(Ordering::Relaxed)
    }
}

/// Whether a node is of a device that was listed before. By its path alone it may be a keyboard that was not asked for.
fn is_it(device: &Device, id: InputId) -> bool {
    device.ids == (id.vendor(), id.product())
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The other end sees that this one is closed.
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How events reach their handler.
enum Delivery<H> {
    /// On the thread that reads them.
    Through(H),
    /// On a thread beside it.
    Beside(SyncSender<Input>),
}

impl<H: FnMut(Input)> Delivery<H> {
    /// Hands an event on. False if there is no room for it.
    fn put(&mut self, input: Input) -> bool {
        match self {
            Self::Through(handler) => handler(input),
            Self::Beside(sender) => return !matches!(sender.try_send(input), Err(TrySendError::Full(_))),
        }
        true
    }
}

struct Work {
    name: String,
    nodes: Vec<evdev::Device>,
    grab: Grab,
    let_go: Arc<AtomicBool>,
}

impl Work {
    fn run(mut self, woken: &UnixStream, mut delivery: Delivery<impl FnMut(Input)>) {
        let mut inputs = Vec::new();
        loop {
            self.step();
            let mut polled: Vec<PollFd<'_>> = std::iter::once(woken.as_fd())
                .chain(self.nodes.iter().map(|node| node.as_fd()))
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return tracing::warn!("{} can't be waited for: {error}", self.name),
            }
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return;
            }
            let mut is_gone = false;
            for (node, _) in self.nodes.iter_mut().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                match node.fetch_events() {
                    Ok(events) => inputs.extend(events.filter_map(|event| input(event.destructure()))),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // It is unplugged.
                    Err(_) => is_gone = true,
                }
            }
            for input in &inputs {
                if let Input::Key { code, pressed } = *input {
                    self.grab.key(code, pressed);
                }
            }
            // Before the events are handed on: that may take a while.
            self.step();
            for input in inputs.drain(..) {
                if !delivery.put(input) {
                    self.grab.give_up();
                }
            }
            if is_gone {
                for code in self.grab.down() {
                    delivery.put(Input::Key { code, pressed: false });
                }
                return;
            }
        }
    }

    /// Grabs the device or lets it go, if the time has come.
    fn step(&mut self) {
        self.let_go.store(self.grab.is_given_up(), Ordering::Relaxed);
        let Some(step) = self.grab.step() else { return };
        for node in &mut self.nodes {
            let done = match step {
                Step::Take => node.grab(),
                Step::LetGo => node.ungrab(),
            };
            match (step, done) {
                (Step::Take, Err(error)) => tracing::warn!("{} can't be grabbed: {error}", self.name),
                // It is unplugged: then it is let go, too.
                (Step::LetGo, Err(_)) | (_, Ok(())) => {}
            }
        }
        if step == Step::LetGo {
            tracing::warn!("{} is let go until it is opened anew", self.name);
        }
    }
}

fn input(event: EventSummary) -> Option<Input> {
    Some(match event {
        EventSummary::Key(_, key, value @ (0 | 1)) => Input::Key { code: key.code(), pressed: value == 1 },
        EventSummary::RelativeAxis(_, RelativeAxisCode::REL_WHEEL, steps) => Input::Wheel { sideways: false, steps },
        EventSummary::RelativeAxis(_, RelativeAxisCode::REL_HWHEEL, steps) => Input::Wheel { sideways: true, steps },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::capabilities::Class;

    #[test]
    fn repeats_and_movements_are_no_keys() {
        let event =
            |kind: evdev::EventType, code, value| input(evdev::InputEvent::new(kind.0, code, value).destructure());
        assert_eq!(event(evdev::EventType::KEY, 183, 1), Some(Input::Key { code: 183, pressed: true }));
        assert_eq!(event(evdev::EventType::KEY, 183, 2), None);
        assert_eq!(event(evdev::EventType::KEY, 183, 0), Some(Input::Key { code: 183, pressed: false }));
        assert_eq!(event(evdev::EventType::RELATIVE, 8, -2), Some(Input::Wheel { sideways: false, steps: -2 }));
        assert_eq!(event(evdev::EventType::RELATIVE, 0, 5), None);
        assert_eq!(event(evdev::EventType::MISC, 4, 1), None);
    }

    fn keys(ids: (u16, u16)) -> Device {
        Device {
            name: "Keys".into(),
            class: Class::Keyboard,
            ids,
            sysfs: "/".into(),
            nodes: vec!["/dev/input/no such device".into()],
            plugging: 0,
        }
    }

    #[test]
    fn a_number_that_another_device_has_got_is_not_the_same_device() {
        let id = |vendor, product| InputId::new(evdev::BusType::BUS_USB, vendor, product, 0);
        assert!(is_it(&keys((0xfeed, 0x6060)), id(0xfeed, 0x6060)));
        assert!(!is_it(&keys((0xfeed, 0x6060)), id(0xfeed, 0x6061)));
        assert!(!is_it(&keys((0, 0)), id(0x046d, 0xc31c)));
    }

    #[test]
    fn a_device_that_is_not_there_says_so() {
        let error = Reader::open(&keys((0, 0)), false, |_| ()).unwrap_err();
        assert!(error.to_string().starts_with("/dev/input/no such device can't be read: "), "{error}");
    }

    #[test]
    fn a_handler_that_hangs_is_left_behind() {
        let (sender, waiting) = mpsc::sync_channel(2);
        let mut delivery: Delivery<fn(Input)> = Delivery::Beside(sender);
        let key = Input::Key { code: 30, pressed: true };
        assert_eq!([delivery.put(key), delivery.put(key), delivery.put(key)], [true, true, false]);
        drop(waiting);
        assert!(delivery.put(key), "one that has ended misses nothing");
        let (sender, heard) = channel();
        let mut delivery = Delivery::Through(move |input| sender.send(input).unwrap());
        assert!(delivery.put(key));
        assert_eq!(heard.recv(), Ok(key));
    }
}
