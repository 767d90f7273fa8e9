//! Art-Net peers of others: OLA's daemon with its tools, on a machine of its own as far as the network goes.
//!
//! Art-Net has one port, so two that listen there can't share a machine. A test that wants OLA runs once more, in a
//! network of its own; the daemon gets another one, and a cable is put between the two.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{Process, are_there};
use crate::wait;

/// Where OLA is, on the cable.
pub const OLA: &str = "10.9.0.1";
/// Where the test is.
const TEST: &str = "10.9.0.2";
/// The port that OLA's tools ask the daemon at, as the kernel writes it: 9010.
const ASKED_AT: &str = ":2332";

/// What says that a test runs in a network of its own already.
const INSIDE: &str = "CONDUCTOR_TEST_NETWORK";

/// Whether this is the run of the test `name` that has a network of its own. The other run waits for that one, and
/// has nothing else to do; it says why where there can be none.
///
/// # Panics
/// When the test fails in there.
pub fn in_a_network_of_its_own(name: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let ola = ["olad", "ola_dev_info", "ola_patch", "ola_recorder", "ola_set_dmx"];
    if !are_there(&ola) || !are_there(&["unshare", "nsenter", "setpriv", "ip"]) {
        return false;
    }
    let cable = "ip link set lo up && ip link add probe0 type veth peer name probe1";
    let probe = Command::new("unshare").args(["-n", "sh", "-c", cable]).output().unwrap();
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr).trim().to_owned();
        println!("skipped: no network of its own can be made here (it takes root, and veth in the kernel): {why}");
        return false;
    }
    let again = "ip link set lo up && exec \"$0\" --exact \"$1\" --nocapture";
    let mut inside = Command::new("unshare");
    inside.args(["-n", "sh", "-c", again]).arg(env::current_exe().unwrap()).arg(name).env(INSIDE, "1");
    let output = inside.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
    false
}

/// A running olad. Dropping it ends it.
#[derive(Debug)]
pub struct Ola {
    folder: PathBuf,
    // Ended before its network.
    _daemon: Process,
    network: Process,
    device: String,
}

impl Ola {
    /// Starts the daemon, and lays the cable to it.
    pub fn start() -> Self {
        let network = Process::start(Command::new("unshare").args(["-n", "sleep", "infinity"]));
        let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let id = network.id().to_string();
        wait::until(|| (of(&id)? != of("self")?).then_some(()), || "no second network".to_owned());
        let here = format!(
            "ip link add test type veth peer name ola netns {id} && ip addr add {TEST}/24 brd + dev test && \
             ip link set test up"
        );
        done(Command::new("sh").args(["-c", &here]));
        let there = format!("ip link set lo up && ip addr add {OLA}/24 brd + dev ola && ip link set ola up");
        done(Command::new("nsenter").args(["-t", &id, "-n", "sh", "-c", &there]));

        let folder = env::temp_dir().join(format!("cond-ola-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        for plugin in OTHER_PLUGINS.split(' ') {
            fs::write(folder.join(format!("ola-{plugin}.conf")), "enabled = false\n").unwrap();
        }
        let settings = format!("enabled = true\nip = {OLA}\nnet = 0\nsubnet = 0\nalways_broadcast = true\n");
        fs::write(folder.join("ola-artnet.conf"), settings).unwrap();
        // It refuses to run as root.
        let mut daemon = Command::new("nsenter");
        daemon.args(["-t", &id, "-n", "setpriv", "--reuid=olad", "--regid=nogroup", "--clear-groups", "olad", "-c"]);
        daemon.arg(&folder).args(["--no-http", "--no-register-with-dns-sd", "-l", "1"]).env("HOME", &folder);
        let daemon = Process::start(&mut daemon);
        let mut ola = Self { folder, _daemon: daemon, network, device: String::new() };
        // Before it listens, its tools would start one of their own.
        wait::until(|| ola.sockets("0A").then_some(()), || "olad does not listen".to_owned());
        let device = || {
            let listed = ola.asked(&["ola_dev_info"]).lines().find(|line| line.contains("ArtNet"))?.to_owned();
            Some(listed.split([' ', ':']).nth(1)?.to_owned())
        };
        ola.device = wait::until(device, || ola.asked(&["ola_dev_info"])).0;
        ola
    }

    /// Takes what comes on Art-Net's universe of this number, 1 to 15, for OLA's.
    pub fn hears(&self, universe: u8) {
        self.asked(&["ola_patch", "-d", &self.device, "-i", "-p", "0", "-u", &universe.to_string()]);
    }

    /// Sends OLA's universe of this number, 1 to 15, as Art-Net's.
    pub fn sends(&self, universe: u8) {
        self.asked(&["ola_patch", "-d", &self.device, "-p", "0", "-u", &universe.to_string()]);
    }

    /// Sets the first channels of a universe.
    pub fn set(&self, universe: u8, levels: &str) {
        self.asked(&["ola_set_dmx", "-u", &universe.to_string(), "-d", levels]);
    }

    /// Every frame of a universe that OLA got while `play` played, as it wrote them down.
    pub fn recorded(&self, universe: u8, play: impl FnOnce()) -> Vec<Vec<u8>> {
        let file = self.folder.join("show");
        let _ = fs::remove_file(&file);
        let id = self.network.id().to_string();
        let mut recorder = Command::new("nsenter");
        recorder.args(["-t", &id, "-n", "ola_recorder", "-u", &universe.to_string(), "-r"]).arg(&file);
        let recorder = Process::start(&mut recorder);
        wait::until(|| self.sockets("01").then_some(()), || "the recorder does not ask olad".to_owned());
        play();
        recorder.signal("INT");
        recorder.wait();
        let show = fs::read_to_string(&file).unwrap_or_default();
        let frame = |line: &str| {
            let (number, levels) = line.split_once(' ')?;
            (number.parse() == Ok(universe)).then(|| levels.split(',').filter_map(|level| level.parse().ok()).collect())
        };
        // Before each frame stands how long after the last one it came.
        show.lines().filter_map(frame).collect()
    }

    /// What a tool of OLA's prints.
    fn asked(&self, arguments: &[&str]) -> String {
        let id = self.network.id().to_string();
        let output = Command::new("nsenter").args(["-t", &id, "-n"]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether a socket on the daemon's side is in this state, as the kernel numbers them: 01 is connected, 0A listens.
    fn sockets(&self, state: &str) -> bool {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.network.id())).unwrap_or_default();
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1).is_some_and(|local| local.ends_with(ASKED_AT)) && fields.get(3) == Some(&state)
        })
    }
}

impl Drop for Ola {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Everything that is not Art-Net.
const OTHER_PLUGINS: &str = "dummy e131 espnet ftdidmx gpio karate kinet milinst opendmx openpixelcontrol osc pathport \
    renard sandnet shownet spi stageprofi usbdmx usbserial uartdmx nanoleaf usbpro";

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
