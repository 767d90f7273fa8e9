//! What the chores need from the system: looked for, and installed where that is possible.
//!
//! Everything is looked for by what it does (a program, a library's headers), never by package, so that a
//! system that has it from elsewhere is left alone. Nothing here builds anything.

pub mod apt;
pub mod disk;
pub mod unpacked;

use std::{
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{guest_rust, process, repo::Repo, vm};

/// Install the system packages that the other chores need.
#[derive(clap::Args)]
pub struct Args {
    /// What for; everything if not given.
    #[arg(long = "for", value_enum)]
    purpose: Option<Purpose>,
}

/// What the installed packages are for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    /// Build the host and the features.
    Build,
    /// Run all tests, the virtual machine's too.
    Test,
    /// Run all tests but those.
    TestWithoutVm,
    /// Run the demonstration.
    Demo,
    /// Run commands in the virtual machine.
    Vm,
    /// Run the benchmarks.
    Bench,
}

/// Something that must be there.
struct Need {
    probe: Probe,
    why: &'static str,
    /// The package that has it; of several, the first that apt knows.
    packages: &'static [&'static str],
}

/// How to see whether it is.
#[derive(Clone, Copy)]
enum Probe {
    Program(&'static str),
    Library(&'static str),
}

impl Probe {
    fn finds(self) -> bool {
        match self {
            Self::Program(name) => process::find(name).is_some(),
            Self::Library(name) => process::succeeds(Command::new("pkg-config").args(["--exists", name])),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Program(name) => format!("the program {name}"),
            Self::Library(name) => format!("the headers of the library {name} (pkg-config finds no {name}.pc)"),
        }
    }
}

const BUILD: &[Need] = &[
    Need {
        probe: Probe::Program("pkg-config"),
        why: "finds system libraries when the host is built",
        packages: &["pkg-config", "pkgconf"],
    },
    Need { probe: Probe::Library("alsa"), why: "MIDI on Linux goes through ALSA", packages: &["libasound2-dev"] },
    Need { probe: Probe::Library("libudev"), why: "udev tells which gamepads there are", packages: &["libudev-dev"] },
];

const JACK: &[Need] = &[
    Need {
        probe: Probe::Program("jackd"),
        why: "carries MIDI between programs, without hardware",
        packages: &["jackd2"],
    },
    Need {
        probe: Probe::Program("jack_lsp"),
        why: "tells when the JACK server is ready",
        packages: &["jack-example-tools", "jackd2"],
    },
    Need {
        probe: Probe::Library("jack"),
        why: "builds the host with MIDI through JACK",
        packages: &["libjack-jackd2-dev"],
    },
];

const OSC: &[Need] = &[Need {
    probe: Probe::Program("oscdump"),
    why: "an independent OSC peer for the end-to-end tests",
    packages: &["liblo-tools"],
}];

const ARTNET: &[Need] = &[
    Need { probe: Probe::Program("olad"), why: "an independent Art-Net peer", packages: &["ola"] },
    Need { probe: Probe::Program("ip"), why: "lays a cable to that peer", packages: &["iproute2"] },
];

const GIT: &[Need] = &[Need {
    probe: Probe::Program("git"),
    why: "makes the repositories that the tests have features read",
    packages: &["git"],
}];

const APART: &[Need] = &[
    Need {
        probe: Probe::Program("bwrap"),
        why: "keeps the programs apart that the tests have features run",
        packages: &["bubblewrap"],
    },
    Need { probe: Probe::Program("prlimit"), why: "limits what these take", packages: &["util-linux"] },
];

const SCREEN: &[Need] = &[
    Need {
        probe: Probe::Program("Xvfb"),
        why: "a desktop without a screen, on which the tests strike keys",
        packages: &["xvfb"],
    },
    Need {
        probe: Probe::Program("xev"),
        why: "reports to the tests which keys a window received",
        packages: &["x11-utils"],
    },
    Need {
        probe: Probe::Program("sway"),
        why: "a Wayland desktop without a screen, which tells which window is in front",
        packages: &["sway"],
    },
    Need {
        probe: Probe::Program("kwin_wayland"),
        why: "KDE's, which reports it in another way",
        packages: &["kwin-wayland"],
    },
];

const KEYRING: &[Need] = &[
    Need { probe: Probe::Program("dbus-daemon"), why: "a bus for a desktop of the tests' own", packages: &["dbus"] },
    Need { probe: Probe::Program("gdbus"), why: "locks that desktop's keyring", packages: &["libglib2.0-bin"] },
    Need { probe: Probe::Program("gnome-keyring-daemon"), why: "keeps keys there", packages: &["gnome-keyring"] },
    Need {
        probe: Probe::Program("secret-tool"),
        why: "tells the tests what is kept there",
        packages: &["libsecret-tools"],
    },
];

const BROWSERS: &[Need] = &[
    Need {
        probe: Probe::Program("chromium"),
        why: "a browser without a screen, in which the web shell is tested",
        packages: &["chromium"],
    },
    Need { probe: Probe::Program("firefox-esr"), why: "the other browser for that", packages: &["firefox-esr"] },
];

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let started = Instant::now();
    let purpose = args.purpose.unwrap_or(Purpose::Test);
    ensure(purpose)?;
    if matches!(purpose, Purpose::Test | Purpose::TestWithoutVm) {
        ensure_browsers()?;
    }
    if purpose != Purpose::Vm {
        println!("{}", guest_rust::ensure(repo)?.describe());
    }
    println!("everything is there ({:.1} s)", started.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

/// Makes sure that a purpose can be served on this machine. The Rust for guests has its own place, see
/// [`guest_rust::ensure`].
pub fn ensure(purpose: Purpose) -> Result<()> {
    match purpose {
        Purpose::Build | Purpose::Demo | Purpose::Bench => satisfy(&[BUILD]),
        Purpose::TestWithoutVm => satisfy(&[BUILD, OSC, ARTNET, GIT, APART, SCREEN, KEYRING, JACK]),
        Purpose::Test => satisfy(&[BUILD, OSC, ARTNET, GIT, APART, SCREEN, KEYRING, JACK]).and_then(|()| vm::ensure()),
        Purpose::Vm => vm::ensure(),
    }
}

/// Makes sure that a JACK server can be run and the host be built for it.
pub fn ensure_jack() -> Result<()> {
    satisfy(&[BUILD, JACK])
}

/// Makes sure that the web shell can be tested in a browser. No other test needs one, and some systems have none to
/// install with apt.
pub fn ensure_browsers() -> Result<()> {
    satisfy(&[BROWSERS])
}

fn satisfy(lists: &[&[Need]]) -> Result<()> {
    // Other systems bring their own MIDI, and have neither JACK's dummy driver nor this virtual machine.
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let missing: Vec<&Need> = lists.iter().flat_map(|list| list.iter()).filter(|need| !need.probe.finds()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lacks = || {
        let lines = missing
            .iter()
            .map(|need| format!("\n  {}: {} (Debian's package {})", need.probe.describe(), need.why, need.packages[0]));
        "this system lacks".to_owned() + &lines.collect::<String>()
    };
    if !apt::available() {
        bail!("{}\nand has no apt-get to install that with", lacks());
    }
    install_missing(&missing).with_context(lacks)
}

fn install_missing(missing: &[&Need]) -> Result<()> {
    apt::update()?;
    let mut packages: Vec<(&str, &str)> = Vec::new();
    for need in missing {
        let package = need.packages.iter().find(|name| apt::offers(name)).unwrap_or(&need.packages[0]);
        if !packages.iter().any(|(name, _)| name == package) {
            packages.push((package, need.why));
        }
    }
    install(&packages)
}

/// Installs packages, each with its reason, after telling both.
pub fn install(packages: &[(&str, &str)]) -> Result<()> {
    eprintln!("installing with apt-get:");
    for (name, why) in packages {
        eprintln!("  {name}: {why}");
    }
    let names: Vec<_> = packages.iter().map(|(name, _)| *name).collect();
    apt::install(&names)
}
