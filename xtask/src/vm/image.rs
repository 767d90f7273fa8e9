//! The machine's image: a kernel and an initial file system, made from Debian packages that are downloaded
//! and unpacked, never installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result};

use super::{cpio::Archive, kernel, tool};
use crate::{process, setup::apt};

/// The first program that runs in the machine.
const INIT: &str = include_str!("init.sh");

/// Depends on Debian's newest kernel. Its variant for clouds has no sound.
const KERNEL: &str = "linux-image-amd64";

/// The rules that game pads need, out of udev's many.
const UDEV_RULES: [&str; 4] = ["50-udev-default", "60-input-id", "60-persistent-input", "70-joystick"];

/// What has to change for an old image to be built anew, beside what is in this file.
const REVISION: u32 = 1;

/// The image's two files.
pub struct Image {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initial file system.
    pub initrd: PathBuf,
}

impl Image {
    /// The image in a cache folder, built first if it is not there or was built by another version of this.
    pub fn ready(cache: &Path, fresh: bool) -> Result<Self> {
        let image = Self { kernel: cache.join("vmlinuz"), initrd: cache.join("initrd") };
        let recipe = format!("{REVISION}\n{INIT}");
        let stamp = cache.join("recipe");
        if !fresh && fs::read_to_string(&stamp).is_ok_and(|old| old == recipe) {
            return Ok(image);
        }
        let started = Instant::now();
        // Built aside and moved, so that two at once do no harm.
        let work = cache.join(format!("build-{}", std::process::id()));
        fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
        let built = image.build(&work);
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
        built?;
        fs::write(&stamp, recipe).with_context(|| format!("cannot write {}", stamp.display()))?;
        eprintln!("vm: built the image in {:.0} s", started.elapsed().as_secs_f64());
        Ok(image)
    }

    fn build(&self, work: &Path) -> Result<()> {
        let packages = Packages::download(work)?;
        let kernel = work.join("kernel");
        let kernel_file = unpack_kernel(&packages.kernel, &kernel)?;
        let modules = kernel::modules(&modules_folder(&kernel)?)?;
        let user = work.join("user");
        for package in &packages.user {
            tool(Command::new("dpkg-deb").arg("-x").arg(package).arg(&user))?;
        }
        let initrd = work.join("initrd");
        fs::write(&initrd, initial_file_system(&modules, &user)?)?;
        fs::rename(&kernel_file, &self.kernel)?;
        fs::rename(&initrd, &self.initrd).context("cannot put the image into its folder")
    }
}

/// The downloaded package files.
struct Packages {
    kernel: PathBuf,
    user: Vec<PathBuf>,
}

impl Packages {
    fn download(work: &Path) -> Result<Self> {
        let wanted = names().or_else(|_| apt::update().and_then(|()| names()))?;
        eprintln!("vm: downloading {}", wanted.join(", "));
        let folder = work.join("packages");
        fs::create_dir_all(&folder)?;
        if apt::download(&wanted, &folder).is_err() {
            // Lists that are too old name versions that are gone.
            apt::update()?;
            apt::download(&names()?, &folder)?;
        }
        let (mut kernel, mut user) = (None, Vec::new());
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_kernel = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("linux-image-"));
            if is_kernel { kernel = Some(path) } else { user.push(path) }
        }
        Ok(Self { kernel: kernel.context("apt-get downloaded no kernel")?, user })
    }
}

/// The packages to download: the kernel, a shell for its first steps, and udev, which tells programs what
/// a game pad is; with udev's own needs as far as this machine, whose libraries it uses, lacks them.
fn names() -> Result<Vec<String>> {
    let kernel = apt::dependencies(KERNEL)?
        .into_iter()
        .find(|name| name.starts_with("linux-image-"))
        .with_context(|| format!("apt knows no {KERNEL}: only Debian has it"))?;
    let mut names = vec![kernel, "busybox-static".to_owned(), "udev".to_owned()];
    let needed = apt::dependencies("udev")?;
    names.extend(needed.into_iter().filter(|name| name.starts_with("lib") && !apt::installed(name)));
    Ok(names)
}

/// Unpacks what is wanted of a kernel package, and returns the kernel's file.
fn unpack_kernel(package: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped());
    let mut content = unpack.spawn().context("cannot start dpkg-deb")?;
    let pipe = content.stdout.take().context("a piped output is there")?;
    let mut tar = Command::new("tar");
    tar.arg("-x").arg("-C").arg(folder).args(["--wildcards", "./boot/vmlinuz-*", "*/modules.builtin"]);
    // A pattern without a match is no failure: newer kernels build in some of what older ones had as modules.
    tar.args(kernel::FOLDERS).stdin(pipe).stderr(Stdio::null());
    let _ = tar.status().context("cannot start tar")?;
    process::ensure_success(&unpack, content.wait()?)?;
    only_entry(&folder.join("boot"))
}

/// `lib/modules/<version>`, wherever the package has its `lib`.
fn modules_folder(kernel: &Path) -> Result<PathBuf> {
    let places = ["lib/modules", "usr/lib/modules"].map(|place| kernel.join(place));
    let folder = places.iter().find(|place| place.is_dir()).context("the kernel package has no modules")?;
    only_entry(folder)
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries.next().with_context(|| format!("{} is empty", folder.display()))??.path())
}

/// What the kernel starts with: busybox, the modules, and in `extra` what is laid over this machine's files.
fn initial_file_system(modules: &[kernel::Module], user: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "ro", "rw", "new", "modules"] {
        archive.folder(folder);
    }
    archive.program("bin/busybox", &in_usr(user, "bin/busybox")?);
    archive.link("bin/sh", "busybox");
    let mut order = String::new();
    for module in modules {
        archive.file(&format!("modules/{}.ko", module.name), &module.object);
        order += &format!("{}\n", module.name);
    }
    archive.file("modules/order", order.as_bytes());

    for folder in ["extra", "extra/bin", "extra/rules", "extra/lib"] {
        archive.folder(folder);
    }
    archive.program("extra/bin/udevadm", &in_usr(user, "bin/udevadm")?);
    // The same program, which looks at the name that it was called by.
    archive.link("extra/bin/systemd-udevd", "udevadm");
    for rule in UDEV_RULES {
        let file = format!("{rule}.rules");
        archive.file(&format!("extra/rules/{file}"), &in_usr(user, &format!("lib/udev/rules.d/{file}"))?);
    }
    for (name, library) in libraries(user)? {
        archive.file(&format!("extra/lib/{name}"), &library);
    }
    archive.program("init", INIT.as_bytes());
    Ok(archive.finish())
}

/// A file that a package may have below `/` or below `/usr`.
fn in_usr(root: &Path, path: &str) -> Result<Vec<u8>> {
    let places = [root.join(path), root.join("usr").join(path)];
    let file = places.iter().find(|place| place.is_file()).with_context(|| format!("no package has {path}"))?;
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The shared libraries that came along, under the names that programs ask for.
fn libraries(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for folder in ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let name = entry_name(&path);
            if name.contains(".so") && path.is_file() {
                found.push((name, fs::read(&path)?));
            }
        }
    }
    Ok(found)
}

fn entry_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
