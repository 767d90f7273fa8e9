//! Migration of old forms of a configuration in memory; the file stays as it is.
//!
//! The values keep their places in the file, so that a message about one shows what the person wrote.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::diagnostic::Diagnostic;

/// Makes bindings of `[[devices]]` and `[device]`, in the order of the file, and reports what is dropped; has
/// each `Conditional` say its parts by today's names, and what stands under `[llm]` where it stands today.
///
/// What is not of the expected kind stays as it is, for the checker to refuse.
pub(super) fn upgrade(root: &mut Spanned<DeTable<'_>>, report: &mut dyn FnMut(Diagnostic)) {
    let root = root.get_mut();
    let bindings = root.get("bindings");
    if bindings.is_none_or(|bindings| bindings.get_ref().is_array()) {
        device_to_binding(root);
        devices_to_bindings(root, report);
    }
    super::llm::upgrade(root, report);
    actions(root, &mut conditional);
}

/// Shows every action of a mapping to `look`, the outer ones first.
fn actions<'i>(root: &mut DeTable<'i>, look: &mut impl FnMut(&mut DeTable<'i>)) {
    for_each(root, "global_mappings", &mut |mapping| {
        for_each(mapping, "action", &mut |action| actions_in(action, look))
    });
    for_each(root, "modes", &mut |mode| {
        for_each(mode, "mappings", &mut |mapping| for_each(mapping, "action", &mut |action| actions_in(action, look)));
    });
}

fn actions_in<'i>(action: &mut DeTable<'i>, look: &mut dyn FnMut(&mut DeTable<'i>)) {
    look(action);
    let inside: &[&str] = match action.get("type").and_then(|name| name.get_ref().as_str()) {
        Some("Sequence" | "sequence") => &["actions"],
        Some("Repeat" | "repeat") => &["action"],
        Some("Conditional" | "conditional") => &["then", "else"],
        // What a feature calls its parameters is its own business.
        _ => &[],
    };
    for key in inside {
        for_each(action, key, &mut |action| actions_in(action, look));
    }
}

/// Shows the table under a key, or each table of the array there.
fn for_each<'i>(table: &mut DeTable<'i>, key: &str, look: &mut dyn FnMut(&mut DeTable<'i>)) {
    match table.get_mut(key).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => look(table),
        Some(DeValue::Array(items)) => {
            for item in items.iter_mut() {
                if let DeValue::Table(table) = item.get_mut() {
                    look(table);
                }
            }
        }
        _ => {}
    }
}

/// `then_action` and `else_action` become `then` and `else`; `if` is another word for `condition`.
fn conditional(action: &mut DeTable<'_>) {
    if matches!(action.get("type").and_then(|name| name.get_ref().as_str()), Some("Conditional" | "conditional")) {
        for (old, new) in [("if", "condition"), ("then_action", "then"), ("else_action", "else")] {
            if !action.contains_key(new)
                && let Some((key, value)) = action.remove_entry(old)
            {
                action.insert(Spanned::new(key.span(), Cow::Borrowed(new)), value);
            }
        }
    }
}

/// `[device]` becomes a binding that is called `main` unless it has a name.
fn device_to_binding(root: &mut DeTable<'_>) {
    let device = root.get("device");
    if !device.is_some_and(|device| device.get_ref().is_table()) {
        return;
    }
    let Some((key, mut device)) = root.remove_entry("device") else {
        return;
    };
    let span = device.span();
    if let DeValue::Table(table) = device.get_mut()
        && !table.contains_key("alias")
    {
        let alias = DeValue::String(Cow::Borrowed("main"));
        let key = Spanned::new(span.clone(), Cow::Borrowed("alias"));
        table.insert(key, Spanned::new(span.clone(), alias));
    }
    add_bindings(root, key.span(), span, [device]);
}

/// `[[devices]]` becomes `[[bindings]]`.
fn devices_to_bindings(root: &mut DeTable<'_>, report: &mut dyn FnMut(Diagnostic)) {
    let devices = root.get("devices");
    if !devices.is_some_and(|devices| devices.get_ref().is_array()) {
        return;
    }
    let Some((key, mut devices)) = root.remove_entry("devices") else {
        return;
    };
    let span = devices.span();
    if let DeValue::Array(devices) = devices.get_mut() {
        for device in devices.iter_mut() {
            if let DeValue::Table(device) = device.get_mut()
                && let Some((key, direction)) = device.remove_entry("direction")
            {
                match direction.get_ref().as_str() {
                    Some("output") => matchers_to_output(device, key.span()),
                    // An instrument's own lights are reached under the same name, so more is not a mistake.
                    Some("input" | "bidirectional") => {}
                    _ => {
                        let error = Diagnostic::error(direction.span(), "`direction` is not one of the old values");
                        report(error.with_allowed("\"input\", \"output\", \"bidirectional\""));
                    }
                }
            }
        }
        let devices = mem::replace(devices, DeArray::new());
        add_bindings(root, key.span(), span, devices);
    }
}

/// What told the ports of both directions tells those of the output only: an instrument is not listened to.
fn matchers_to_output(device: &mut DeTable<'_>, place: Range<usize>) {
    let spanned = |value| Spanned::new(place.clone(), value);
    let key = |name| Spanned::new(place.clone(), Cow::Borrowed(name));
    let matchers = match (device.remove("matchers"), device.remove("name")) {
        (Some(matchers), _) => matchers,
        (None, Some(name)) => {
            let kind = spanned(DeValue::String(Cow::Borrowed("name_contains")));
            let matcher = DeTable::from_iter([(key("type"), kind), (key("value"), name)]);
            spanned(DeValue::Array(DeArray::from_iter([spanned(DeValue::Table(matcher))])))
        }
        (None, None) => return,
    };
    let output = DeTable::from_iter([(key("matchers"), matchers)]);
    device.insert(key("output"), spanned(DeValue::Table(output)));
}

/// Puts `more` among the bindings, where they come by their place in the file; `key` and `span` are where
/// the bindings are if there have been none.
fn add_bindings<'i>(
    root: &mut DeTable<'i>,
    key: Range<usize>,
    span: Range<usize>,
    more: impl IntoIterator<Item = Spanned<DeValue<'i>>>,
) {
    if let Some(bindings) = root.get_mut("bindings") {
        if let DeValue::Array(bindings) = bindings.get_mut() {
            let old = mem::replace(bindings, DeArray::new());
            let mut all: Vec<_> = old.into_iter().chain(more).collect();
            all.sort_by_key(|binding| binding.span().start);
            *bindings = all.into_iter().collect();
        }
    } else {
        let key = Spanned::new(key, Cow::Borrowed("bindings"));
        let bindings = DeValue::Array(more.into_iter().collect());
        root.insert(key, Spanned::new(span, bindings));
    }
}
