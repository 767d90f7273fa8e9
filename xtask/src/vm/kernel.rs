//! Kernel modules: which are wanted, what those need, and in what order they load.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// What the machine has beyond what Debian builds into its kernel.
const WANTED: [&str; 22] = [
    // the root: this machine's files, below an overlay in memory
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "overlay",
    // ALSA's sequencer, and MIDI devices without hardware
    "snd-seq",
    "snd-seq-dummy",
    "snd-seq-midi",
    "snd-virmidi",
    "snd-hrtimer",
    // USB: a host without hardware, and the MIDI and HID devices that can be plugged into it
    "snd-usb-audio",
    "configfs",
    "libcomposite",
    "dummy_hcd",
    "usb_f_midi",
    "usb_f_hid",
    // game pads, keyboards and mice, by USB or made by a program
    "usbhid",
    "hid-generic",
    "uinput",
    "uhid",
    "evdev",
    "joydev",
    "mousedev",
];

/// The folders of the kernel package that those are in, as patterns of tar.
pub const FOLDERS: [&str; 13] = [
    "*/kernel/sound/*",
    "*/kernel/drivers/input/*",
    "*/kernel/drivers/hid/*",
    "*/kernel/drivers/usb/*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/drivers/char/*",
    "*/kernel/drivers/media/mc/*",
    "*/kernel/fs/9p/*",
    "*/kernel/fs/fscache/*",
    "*/kernel/fs/netfs/*",
    "*/kernel/fs/overlayfs/*",
    "*/kernel/fs/configfs/*",
    "*/kernel/net/9p/*",
];

/// One module, ready to be loaded.
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// The object file, not compressed.
    pub object: Vec<u8>,
}

/// The wanted modules of an unpacked kernel package and all that they need, in an order in which they load.
pub fn modules(folder: &Path) -> Result<Vec<Module>> {
    let mut files = BTreeMap::new();
    list(folder, &mut files)?;
    let builtin =
        fs::read_to_string(folder.join("modules.builtin")).context("the kernel package lists no built-ins")?;
    let builtin: BTreeSet<_> = builtin.lines().filter_map(|line| module_name(Path::new(line))).collect();
    let mut order = Order { files, builtin, seen: BTreeSet::new(), modules: Vec::new() };
    for name in WANTED {
        order.load(&name.replace('-', "_"))?;
    }
    Ok(order.modules)
}

struct Order {
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
    seen: BTreeSet<String>,
    modules: Vec<Module>,
}

impl Order {
    fn load(&mut self, name: &str) -> Result<()> {
        if self.builtin.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(file) = self.files.get(name) else {
            bail!("this kernel package has no module {name}");
        };
        let object = read_object(file)?;
        for needed in needs(&object) {
            self.load(&needed)?;
        }
        self.modules.push(Module { name: name.to_owned(), object });
        Ok(())
    }
}

fn list(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if let Some(name) = module_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// `snd_seq` for `kernel/sound/core/seq/snd-seq.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (name, compression) = file.split_once(".ko")?;
    ["", ".xz", ".zst", ".gz"].contains(&compression).then(|| name.replace('-', "_"))
}

/// A module's object file; newer packages compress them, and the virtual machine could not unpack them.
fn read_object(file: &Path) -> Result<Vec<u8>> {
    let unpack = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    let output = Command::new(unpack)
        .args(["-d", "-c"])
        .arg(file)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {unpack}, which unpacks the kernel's modules"))?;
    if !output.status.success() {
        bail!("{unpack} cannot unpack {}", file.display());
    }
    Ok(output.stdout)
}

/// The modules that a module names as its needs: `depends=a,b` among the NUL-ended strings of `.modinfo`.
fn needs(object: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(start) = object.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let value = object[start + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_needs_are_read_as_the_kernel_means_them() {
        assert_eq!(module_name(Path::new("kernel/sound/core/seq/snd-seq.ko.xz")).as_deref(), Some("snd_seq"));
        assert_eq!(module_name(Path::new("modules.dep")), None);
        assert_eq!(needs(b"ELF\0license=GPL\0depends=snd-seq,snd\0name=x\0"), ["snd_seq", "snd"]);
        assert!(needs(b"ELF\0license=GPL\0depends=\0name=x\0").is_empty());
    }

    #[test]
    fn modules_load_after_what_they_need() {
        let folder = std::env::temp_dir().join(format!("xtask-modules-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let object = |depends: &str| format!("\0depends={depends}\0");
        for (name, depends) in [("a", "b,c"), ("b", "c"), ("c", "built")] {
            fs::write(folder.join(name), object(depends)).expect("a file");
        }
        let files = ["a", "b", "c"].map(|name| (name.to_owned(), folder.join(name))).into();
        let builtin = ["built".to_owned()].into();
        let mut order = Order { files, builtin, seen: BTreeSet::new(), modules: Vec::new() };
        order.load("a").expect("all are there");
        let names: Vec<_> = order.modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
        assert!(order.load("d").is_err());
        fs::remove_dir_all(&folder).expect("its end");
    }
}
