//! Other systems that a release can be built for on a Linux machine: what builds for them, and what runs their programs
//! here.
//!
//! Windows by MinGW-w64 and Wine. Linux on 64-bit Arm by GCC, by Debian's libraries for it in a folder of their own, and by
//! QEMU, which runs single programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use conductor_feature_build::rust_target;

use super::debian;
use crate::{process, repo::Repo, setup};

/// The systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// Windows on x86-64.
    #[value(name = "x86_64-pc-windows-gnu")]
    Windows,
    /// Linux on 64-bit Arm.
    #[value(name = "aarch64-unknown-linux-gnu")]
    LinuxArm,
}

impl System {
    /// What Rust calls it.
    pub fn triple(self) -> &'static str {
        match self {
            Self::Windows => "x86_64-pc-windows-gnu",
            Self::LinuxArm => "aarch64-unknown-linux-gnu",
        }
    }

    /// Its processor and its name, as names of archives have them.
    pub fn name(self) -> &'static str {
        match self {
            Self::Windows => "x86_64-windows",
            Self::LinuxArm => "aarch64-linux",
        }
    }

    /// What names of programs end with.
    pub fn program_suffix(self) -> &'static str {
        match self {
            Self::Windows => ".exe",
            Self::LinuxArm => "",
        }
    }

    /// What builds for it and runs its programs: programs or files, why, and the packages that have them.
    fn needs(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Self::Windows => &[
                ("x86_64-w64-mingw32-gcc", "links programs for Windows", "gcc-mingw-w64-x86-64-win32"),
                ("wine", "runs programs for Windows", "wine wine64"),
            ],
            Self::LinuxArm => &[
                ("aarch64-linux-gnu-gcc", "links programs for 64-bit Arm", "gcc-aarch64-linux-gnu"),
                ("/usr/aarch64-linux-gnu/lib/crt1.o", "the C library for 64-bit Arm", "libc6-dev-arm64-cross"),
                ("qemu-aarch64", "runs programs for 64-bit Arm", "qemu-user"),
            ],
        }
    }
}

/// A system that can be built for on this machine, and whose programs run here.
pub struct Foreign {
    system: System,
    /// For Windows, Wine's own folder; for Linux, the libraries of that processor.
    folder: PathBuf,
}

impl Foreign {
    /// Finds what the system needs, or installs it.
    ///
    /// # Errors
    /// What is missing and can't be installed.
    pub fn ready(repo: &Repo, system: System) -> Result<Self> {
        let triple = system.triple();
        if !rust_target::is_there(repo.root(), triple) && !rust_target::add(repo.root(), triple, "another system") {
            bail!("the active Rust can't build for {triple}: run `rustup target add {triple}`, then try again");
        }
        let is_there =
            |what: &str| if what.starts_with('/') { Path::new(what).exists() } else { process::find(what).is_some() };
        let missing = system.needs().iter().filter(|(what, ..)| !is_there(what));
        let missing: Vec<_> =
            missing.flat_map(|(_, why, packages)| packages.split(' ').map(move |name| (name, *why))).collect();
        if !missing.is_empty() {
            setup::install(&missing)?;
        }
        let folder = repo.target().join(format!("dist-{}", system.name()));
        match system {
            System::Windows => wine(&folder)?,
            System::LinuxArm => libraries(&folder)?,
        }
        Ok(Self { system, folder })
    }

    /// Which system it is.
    pub fn system(&self) -> System {
        self.system
    }

    /// Has Cargo build for it.
    pub fn build_for(&self, cargo: &mut Command) {
        cargo.args(["--target", self.system.triple()]);
        match self.system {
            System::Windows => {}
            System::LinuxArm => {
                let configurations = self.folder.join("usr/lib/aarch64-linux-gnu/pkgconfig");
                cargo
                    .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
                    .env("PKG_CONFIG_ALLOW_CROSS", "1")
                    .env("PKG_CONFIG_SYSROOT_DIR", &self.folder)
                    .env("PKG_CONFIG_LIBDIR", configurations);
            }
        }
    }

    /// One of its programs, to be run here.
    pub fn command(&self, program: &Path) -> Command {
        match self.system {
            System::Windows => {
                let mut command = Command::new("wine");
                command.env("WINEPREFIX", &self.folder).env("WINEDEBUG", "-all").env_remove("DISPLAY").arg(program);
                command
            }
            System::LinuxArm => {
                let mut command = Command::new("qemu-aarch64");
                command.arg("-L").arg(&self.folder).arg(program);
                command
            }
        }
    }
}

/// A library that Rust's programs take random numbers from, and Wine has from its version 9 on.
const RANDOM: (&str, &str) = (
    "bcryptprimitives.dll",
    "#include <windows.h>\n\
     BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);\n\
     __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {\n\
         return length <= MAXDWORD && SystemFunction036(data, (ULONG)length);\n\
     }\n",
);

/// Wine's folder, with everything in it that the program needs of Windows.
fn wine(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let part = folder.with_extension("part");
    debian::remove(&part)?;
    fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
    let mut start = Command::new("wine");
    start.args(["wineboot", "--init"]).env("WINEPREFIX", &part).env("WINEDEBUG", "-all").env_remove("DISPLAY");
    process::run(&mut start)?;
    let library = part.join("drive_c/windows/system32").join(RANDOM.0);
    if !library.exists() {
        let source = part.join("random.c");
        fs::write(&source, RANDOM.1)?;
        let mut compile = Command::new("x86_64-w64-mingw32-gcc");
        process::run(compile.args(["-shared", "-O1", "-o"]).arg(library).arg(source).arg("-ladvapi32"))?;
    }
    fs::rename(&part, folder).with_context(|| folder.display().to_string())
}

/// Debian's libraries of 64-bit Arm that the program is linked with, in this folder. Nothing is installed.
fn libraries(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let part = folder.with_extension("part");
    debian::system(&part, &["--variant=extract", "--architectures=arm64", "--include=libasound2-dev,libudev-dev"])?;
    fs::rename(&part, folder).with_context(|| folder.display().to_string())
}
