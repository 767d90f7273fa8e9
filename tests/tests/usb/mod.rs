//! A real USB-MIDI controller without hardware: the kernel's gadget on one end of an emulated cable, the
//! kernel's driver for class-compliant devices on the other.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conductor_tests::wait;

/// Where the gadget is described.
const GADGET: &str = "/sys/kernel/config/usb_gadget/conductor";
/// The emulated socket that it is plugged into.
const SOCKET: &str = "dummy_udc.0";

/// The controller. One at a time: there is one socket.
pub struct Controller(#[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

static ONE: Mutex<()> = Mutex::new(());

impl Controller {
    /// Builds one with the numbers of the Linux Foundation's gadgets; it is not plugged in yet.
    pub fn new(product: &str) -> Self {
        Self::with_ids(product, 0x1d6b, 0x0104)
    }

    /// Builds one that has another one's numbers.
    pub fn with_ids(product: &str, vendor: u16, model: u16) -> Self {
        // A test that failed has left the socket as its end leaves it.
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let gadget = Path::new(GADGET);
        for folder in ["strings/0x409", "configs/c.1", "functions/midi.usb0"] {
            fs::create_dir_all(gadget.join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| fs::write(gadget.join(file), text).unwrap();
        write("idVendor", &format!("{vendor:#06x}"));
        write("idProduct", &format!("{model:#06x}"));
        write("strings/0x409/manufacturer", "Conductor");
        write("strings/0x409/product", product);
        write("strings/0x409/serialnumber", "1");
        symlink(gadget.join("functions/midi.usb0"), gadget.join("configs/c.1/midi.usb0")).unwrap();
        Self(one)
    }

    /// Plugs it in.
    pub fn plug(&mut self) {
        fs::write(format!("{GADGET}/UDC"), SOCKET).unwrap();
    }

    /// Pulls it out.
    pub fn unplug(&mut self) {
        fs::write(format!("{GADGET}/UDC"), "\n").unwrap();
    }

    /// Plays one message: what is written to the gadget's own card comes out of the cable.
    pub fn play(&mut self, message: &[u8]) {
        let mut port = OpenOptions::new().write(true).open(Self::card()).unwrap();
        port.write_all(message).unwrap();
    }

    /// Takes the messages that come in through the cable from now on, of three bytes each.
    pub fn lights(&self) -> Receiver<[u8; 3]> {
        let mut port = File::open(Self::card()).unwrap();
        let (lit, lights) = channel();
        std::thread::spawn(move || {
            let mut message = [0; 3];
            while port.read_exact(&mut message).is_ok() && lit.send(message).is_ok() {}
        });
        lights
    }

    /// The port of the gadget's own card.
    fn card() -> String {
        let own = |card: &fs::DirEntry| fs::read_to_string(card.path().join("id")).is_ok_and(|id| id.trim() == "fmidi");
        let (card, _) = wait::until(
            || fs::read_dir("/proc/asound").ok()?.flatten().find(own).map(|card| card.file_name()),
            || fs::read_to_string("/proc/asound/cards").unwrap_or_default(),
        );
        let number = card.to_str().unwrap().trim_start_matches("card").to_owned();
        format!("/dev/snd/midiC{number}D0")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Fails only if it is out already.
        let _ = fs::write(format!("{GADGET}/UDC"), "\n");
        // In the order that the kernel wants; what can't be removed is gone with the machine.
        let _ = fs::remove_file(format!("{GADGET}/configs/c.1/midi.usb0"));
        for folder in ["configs/c.1", "functions/midi.usb0", "strings/0x409", ""] {
            let _ = fs::remove_dir(Path::new(GADGET).join(folder));
        }
    }
}
