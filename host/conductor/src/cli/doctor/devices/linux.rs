//! Device files as Linux has them: who may open them, and which of them are gamepads.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Access, Member, Node, STREAM_DECK};

/// What this process may do with a device file.
pub(super) fn node(path: PathBuf) -> Node {
    let access = match OpenOptions::new().read(true).open(&path) {
        Ok(_) => Access::Allowed,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied(&path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Access::Missing,
        // A driver that is not there, or busy: the permissions are not what is wrong.
        Err(_) => Access::Allowed,
    };
    Node { path, access }
}

fn denied(path: &Path) -> Access {
    let id = fs::metadata(path).map(|about| about.gid()).unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let user = std::env::var("USER").unwrap_or_default();
    let ours = rustix::process::getgroups().unwrap_or_default();
    let (group, listed) = group(&groups, id, &user);
    let member = match (ours.iter().any(|group| group.as_raw() == id), listed) {
        (true, _) => Member::Yes,
        (false, true) => Member::NotYet,
        (false, false) => Member::No,
    };
    Access::Denied { group, member }
}

/// The name of a group, and whether the user is listed in it.
fn group(groups: &str, id: u32, user: &str) -> (String, bool) {
    let found = groups.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, number, members] = fields[..] else { return None };
        let listed = members.split(',').any(|member| member == user && !user.is_empty());
        (number.parse() == Ok(id)).then(|| (name.to_owned(), listed))
    });
    found.unwrap_or_else(|| (id.to_string(), false))
}

/// The gamepads that the kernel knows, with the device file that their events come from.
pub(super) fn pads() -> Vec<(String, Node)> {
    entries("/sys/class/input", "js").into_iter().filter_map(|joystick| pad(&joystick)).collect()
}

fn pad(joystick: &Path) -> Option<(String, Node)> {
    let device = joystick.join("device");
    let name = fs::read_to_string(device.join("name")).ok()?;
    let events = entries(device.to_str()?, "event").into_iter().next()?;
    Some((name.trim().to_owned(), node(Path::new("/dev/input").join(events.file_name()?))))
}

/// Files of Stream Decks, and those that this host does not open.
pub(super) fn raw() -> Vec<(&'static str, Node)> {
    let hidraw = entries("/dev", "hidraw").into_iter().map(|path| {
        let kind = if is_stream_deck(&path) { STREAM_DECK } else { "hidraw" };
        (kind, node(path))
    });
    let uinput = Path::new("/dev/uinput").exists().then(|| ("uinput", node("/dev/uinput".into())));
    hidraw.chain(uinput).collect()
}

/// Whether the device behind this file has the vendor id of Stream Decks, as the kernel says it: `HID_ID=0003:00000FD9:00000080`.
fn is_stream_deck(hidraw: &Path) -> bool {
    let name = hidraw.file_name().unwrap_or_default();
    let said = fs::read_to_string(Path::new("/sys/class/hidraw").join(name).join("device/uevent")).unwrap_or_default();
    said.lines().filter_map(|line| line.strip_prefix("HID_ID=")).any(|id| id.split(':').nth(1) == Some("00000FD9"))
}

/// What in a folder begins so and goes on with a number.
fn entries(folder: &str, begin: &str) -> Vec<PathBuf> {
    let is = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(begin).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(is).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_by_number() {
        let groups = "root:x:0:\naudio:x:29:eva,jo\nbroken\n";
        assert_eq!(group(groups, 29, "jo"), ("audio".to_owned(), true));
        assert_eq!(group(groups, 29, "joe"), ("audio".to_owned(), false));
        assert_eq!(group(groups, 29, ""), ("audio".to_owned(), false));
        assert_eq!(group(groups, 30, "jo"), ("30".to_owned(), false));
    }

    #[test]
    fn device_files_are_tried() {
        assert_eq!(node("/dev/null".into()).access, Access::Allowed);
        assert_eq!(node("/dev/no such device".into()).access, Access::Missing);
    }
}
