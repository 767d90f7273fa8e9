//! What an application is called: the names that X clients and processes have.

use std::fs;

/// The instance and the class in a `WM_CLASS` property (ICCCM 4.1.2.5): two texts, each ended by a zero.
/// They are Latin-1.
pub(super) fn class(property: &[u8]) -> (String, String) {
    let mut texts = property.split(|&byte| byte == 0).map(|text| text.iter().map(|&byte| char::from(byte)).collect());
    let mut next = || texts.next().unwrap_or_default();
    (next(), next())
}

/// The name of a process's program; none if it is gone or the system does not say.
pub(super) fn program(pid: u32) -> Option<String> {
    let folder = format!("/proc/{pid}");
    crate::facts::program_name(folder.as_ref())
}

/// Whether this is the name of this machine, on which process ids mean something. Clients that do not say
/// where they run are taken to be here.
pub(super) fn is_here(machine: &[u8]) -> bool {
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    machine.is_empty() || machine == here.trim_end().as_bytes()
}

/// The names without those that are empty or there already, whatever the case.
pub(super) fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !kept.iter().any(|other| other.to_lowercase() == name.to_lowercase()) {
            kept.push(name);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
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
    fn names_are_told_once() {
        let names = ["XTerm", "xterm", "", "bash", "BASH"].map(str::to_owned);
        assert_eq!(distinct(names), ["XTerm", "bash"]);
    }
}
