//! Application names: those of X clients and Wayland windows, and of their processes.

use std::fs;

use crate::names::program_name;

/// The instance and the class in a `WM_CLASS` property (ICCCM 4.1.2.5): two texts, each ended by a zero.
/// They are Latin-1.
pub(super) fn class(property: &[u8]) -> (String, String) {
    let mut texts = property.split(|&byte| byte == 0).map(|text| text.iter().map(|&byte| char::from(byte)).collect());
    let mut next = || texts.next().unwrap_or_default();
    (next(), next())
}

/// The names in a Wayland application id: of a domain turned round, as the freedesktop.org's desktop entry
/// specification wants it (`org.mozilla.firefox`), people say the last part.
pub(super) fn application_id(id: &str) -> [String; 2] {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let parts: Vec<&str> = id.split('.').collect();
    let name = parts.last().filter(|_| parts.len() > 2 && parts.iter().all(|part| is_part(part)));
    [name.copied().unwrap_or(id).to_owned(), id.to_owned()]
}

/// The name of a process's program; `None` if it is gone or the system does not say.
pub(super) fn program(pid: u32) -> Option<String> {
    let folder = format!("/proc/{pid}");
    program_name(folder.as_ref())
}

/// Whether this is the name of this machine, on which process ids mean something. Clients that do not say
/// where they run are taken to be here.
pub(super) fn is_here(machine: &[u8]) -> bool {
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    machine.is_empty() || machine == here.trim_end().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::Application;
    use super::*;

    #[test]
    fn a_class_is_two_texts() {
        let said = |property: &[u8]| class(property);
        let of = |instance: &str, class: &str| (instance.to_owned(), class.to_owned());
        assert_eq!(said(b"Navigator\0firefox\0"), of("Navigator", "firefox"));
        assert_eq!(said(b"xterm\0XTerm"), of("xterm", "XTerm"));
        assert_eq!(said(b"a\xfc"), of("aü", ""));
        assert_eq!(said(b""), of("", ""));
    }

    #[test]
    fn of_a_domain_turned_round_people_say_the_last_part() {
        let names = |id: &str| Application::named(application_id(id), String::new()).map(|named| named.names);
        let are = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names("org.mozilla.firefox"), are(&["firefox", "org.mozilla.firefox"]));
        assert_eq!(names("foot"), are(&["foot"]));
        assert_eq!(names("ableton live 12.0.exe"), are(&["ableton live 12.0.exe"]));
        assert_eq!(names("player.exe"), are(&["player.exe"]));
        assert_eq!(names(""), None);
    }
}
