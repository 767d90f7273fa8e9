//! The emulator that the machine runs in: this system's, or else Debian's, unpacked beside the image.

use std::process::Command;

use anyhow::Result;

use crate::{process, setup::unpacked::Unpacked};

const PROGRAM: &str = "qemu-system-x86_64";

/// The folders in which Debian's QEMU looks for the machine's firmware.
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

/// A QEMU for x86-64.
pub enum Qemu {
    /// On the search path.
    Installed,
    /// Unpacked from its package.
    Unpacked(Unpacked),
}

impl Qemu {
    /// The one there is; downloaded if there is none.
    ///
    /// # Errors
    /// apt's, when it can't be downloaded.
    pub fn find() -> Result<Self> {
        if process::find(PROGRAM).is_some() {
            return Ok(Self::Installed);
        }
        let why = "runs the ALSA tests in a virtual machine, on a kernel with a sequencer";
        Unpacked::package("qemu-system-x86", why).map(Self::Unpacked)
    }

    /// The command that starts it, without arguments for the machine. It ends when we do.
    ///
    /// # Errors
    /// When the cache folder's name can't be part of a search path.
    pub fn command(&self) -> Result<Command> {
        let Self::Unpacked(package) = self else { return Ok(process::dying_with_us(PROGRAM)) };
        // Its libraries are for it alone, not for what starts it.
        let mut command = process::dying_with_us("env");
        let mut libraries = std::ffi::OsString::from("LD_LIBRARY_PATH=");
        libraries.push(package.library_path()?);
        command.arg(libraries).arg(package.file("usr/bin").join(PROGRAM));
        for folder in FIRMWARE {
            command.arg("-L").arg(package.file(folder));
        }
        Ok(command)
    }
}
