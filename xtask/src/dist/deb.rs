//! A package for Debian and Ubuntu: the same release, where these systems look for its parts.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{Release, copy_tree, foreign::System};
use crate::process;

/// Where each part of a release goes: its path in the release's folder, and that in the system.
const PLACES: [(&str, &str); 10] = [
    ("conductor", "usr/bin/conductor"),
    ("features", "usr/share/conductor/features"),
    ("man", "usr/share/man/man1"),
    ("completions/conductor.bash", "usr/share/bash-completion/completions/conductor"),
    ("completions/_conductor", "usr/share/zsh/vendor-completions/_conductor"),
    ("completions/conductor.fish", "usr/share/fish/vendor_completions.d/conductor.fish"),
    ("linux/70-conductor.rules", "usr/lib/udev/rules.d/70-conductor.rules"),
    ("linux/conductor.service", "usr/lib/systemd/user/conductor.service"),
    ("linux/conductor.desktop", "usr/share/applications/conductor.desktop"),
    ("share", "usr/share/doc/conductor"),
];

/// What Debian wants to know of the licences, in its own form.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: conductor
Comment: what the program is made of is listed in THIRD-PARTY-LICENSES.txt, beside this file

Files: *
Copyright: Conductor's authors
License: Apache-2.0 or MIT
 The texts of both are LICENSE-APACHE and LICENSE-MIT, beside this file.
";

/// Makes the package of a release and returns its path. `system` is that which it is for, `None` this machine's. `dev`:
/// without compressing it.
///
/// # Errors
/// Where `dpkg-deb` or `readelf` is missing or fails.
pub fn build(release: &Release, system: Option<System>, dev: bool) -> Result<PathBuf> {
    let architecture = match system {
        Some(System::LinuxArm) => "arm64".to_owned(),
        _ => process::read(Command::new("dpkg").arg("--print-architecture"))?,
    };
    let root = release.dist.join("deb");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    }
    for (from, to) in PLACES {
        copy_tree(&release.folder.join(from), &root.join(to))?;
    }
    let (needs, size) = (needs(&release.folder.join("conductor"))?.join(", "), size(&root)?.div_ceil(1024));
    let version = env!("CARGO_PKG_VERSION");
    let control = format!(
        "Package: conductor\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: Conductor's authors <conductor@localhost>\n\
         Section: sound\nPriority: optional\nDepends: {needs}\nInstalled-Size: {size}\n\
         Description: have controllers do what you say\n \
         Plug in any controller (MIDI, gamepad, OSC, Art-Net), say what it should do, and\n \
         extend it with features that are sandboxed.\n"
    );
    fs::create_dir_all(root.join("DEBIAN"))?;
    fs::write(root.join("DEBIAN/control"), control)?;
    fs::write(root.join("usr/share/doc/conductor/copyright"), COPYRIGHT)?;
    set_modes(&root)?;
    let package = release.dist.join(format!("conductor_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", if dev { "-Znone" } else { "-Zxz" }, "--build"]).arg(&root).arg(&package);
    process::read(build.env("SOURCE_DATE_EPOCH", release.time.to_string()))?;
    Ok(package)
}

/// The packages that own the libraries which a program is linked with. They have one name for all processors, so those of
/// this machine are looked at.
fn needs(program: &Path) -> Result<Vec<String>> {
    let sections = process::read(Command::new("readelf").args(["--wide", "--dynamic"]).arg(program))?;
    // `0x... (NEEDED)  Shared library: [libc.so.6]`; the loader is one of them on some processors, and libc's own.
    let needed = sections.lines().filter(|line| line.contains("(NEEDED)"));
    let wanted = needed.filter_map(|line| line.split_once('[')?.1.strip_suffix(']'));
    let wanted: Vec<&str> = wanted.filter(|library| !library.starts_with("ld-linux")).collect();
    let known = process::read(Command::new("ldconfig").arg("-p").env("PATH", with_sbin()))?;
    let mut packages = BTreeSet::new();
    for library in wanted {
        let line = known.lines().find(|line| line.trim_start().starts_with(&format!("{library} ")));
        let path =
            line.and_then(|line| line.split(" => ").nth(1)).with_context(|| format!("{library} is not there"))?;
        // What the loader knows may be a link into a folder that is one itself, and dpkg knows only one of its names.
        let names = [path.to_owned(), fs::canonicalize(path)?.display().to_string()];
        let owner =
            names.iter().flat_map(|name| [name.clone(), name.replacen("/usr/lib", "/lib", 1)]).find_map(|name| {
                let owned = process::read(Command::new("dpkg").arg("-S").arg(name)).ok()?;
                Some(owned.split(':').next()?.to_owned())
            });
        packages.insert(owner.with_context(|| format!("no package owns {path}"))?);
    }
    Ok(packages.into_iter().collect())
}

/// Where `ldconfig` is, which not everybody's `PATH` has.
fn with_sbin() -> String {
    format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default())
}

/// Gives everything in a folder the mode that it has in the system: not that which this user's files get.
fn set_modes(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let about = fs::symlink_metadata(path).with_context(|| path.display().to_string())?;
    let is_program = about.is_file() && about.permissions().mode() & 0o100 != 0;
    let mode = if about.is_dir() || is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(|| path.display().to_string())?;
    if about.is_dir() {
        for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
            set_modes(&entry?.path())?;
        }
    }
    Ok(())
}

/// The bytes of all files of a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        size += if entry.file_type()?.is_dir() { self::size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(size)
}
