//! The profiles that come with the program: every one is right, says where it is from, and is found.

#![allow(clippy::unwrap_used)]

use conductor_device_profile::{Library, Message, PortFit, Profile, UsbId};

#[test]
fn every_bundled_file_is_right_and_called_as_its_id() {
    let mistakes: Vec<String> = Library::mistakes().iter().map(|(file, mistake)| format!("{file}:{mistake}")).collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    for (file, text) in Library::files() {
        let profile = Profile::parse(text).unwrap();
        assert_eq!(file, format!("{}.toml", profile.id));
    }
}

// LRN-4: at least eighty devices.
#[test]
fn there_are_at_least_eighty_devices_of_every_kind() {
    let library = Library::bundled();
    assert!(library.profiles().len() >= 80, "{}", library.profiles().len());
    for kind in ["pads", "keyboard", "faders", "knobs", "encoders", "buttons", "dj", "foot", "gamepad", "layout"] {
        assert!(library.profiles().iter().any(|profile| profile.kinds.iter().any(|has| has == kind)), "{kind}");
    }
}

#[test]
fn no_port_is_of_two_devices() {
    let overlaps = Library::bundled().overlaps();
    assert!(overlaps.is_empty(), "{overlaps:#?}");
}

#[test]
fn every_profile_names_its_sources_and_is_recognised_by_something() {
    for profile in Library::bundled().profiles() {
        let id = &profile.id;
        assert!(!profile.sources.is_empty(), "{id}");
        let identity = &profile.identity;
        assert!(!identity.usb.is_empty() || identity.ports.all().next().is_some(), "{id} fits no port");
        for source in &profile.sources {
            let used = identity.source == source.id
                || profile.controls.iter().any(|control| control.source == source.id)
                || profile.modes.iter().any(|mode| mode.source == source.id)
                || profile.lights.iter().any(|light| light.source == source.id);
            assert!(used, "{id}: nothing is from the source {}", source.id);
        }
        for light in &profile.lights {
            assert!(
                profile.controls.iter().any(|control| control.light.as_ref() == Some(&light.id))
                    || light.message == conductor_device_profile::LightMessage::Sysex,
                "{id}: no control has the light {}",
                light.id
            );
        }
        for mode in &profile.modes {
            let named =
                profile.controls.iter().any(|control| control.modes.is_empty() || control.modes.contains(&mode.name));
            assert!(named, "{id}: no control sends anything in the mode {}", mode.name);
        }
    }
}

#[test]
fn a_port_of_a_known_device_gives_its_controls_their_names() {
    let library = Library::bundled();
    let name = |port: &str, message| library.name_of(port, None, &message).map(str::to_owned);
    let note = |channel, note| Message::Note { channel, note };
    assert_eq!(name("Launchpad X LPX MIDI In", note(0, 11)).as_deref(), Some("pad 57"));
    assert_eq!(name("MIDIIN2 (LPX MIDI)", Message::Cc { channel: 0, cc: 91 }).as_deref(), Some("top 1"));
    assert_eq!(name("nanoKONTROL2 MIDI 1", Message::Cc { channel: 0, cc: 0 }).as_deref(), Some("fader 1"));
    assert_eq!(name("nanoKONTROL2 MIDI 1", Message::Cc { channel: 5, cc: 0 }), None);
    // The first mode counts, where two say something else.
    assert_eq!(name("X-TOUCH MINI", note(10, 8)).as_deref(), Some("button 1"));
    // The pressure on a pad is the pad's.
    assert_eq!(name("LPD8", Message::PolyAftertouch { channel: 0, note: 36 }).as_deref(), Some("pad 1"));
    assert_eq!(name("Some synthesizer", note(0, 36)), None);
}

// ALSA keeps the first 31 characters of a port's name.
#[test]
fn a_name_that_linux_cuts_off_is_of_the_same_device() {
    let library = Library::bundled();
    let cut = |name: &str| name.replace('*', "").chars().take(31).collect::<String>();
    // Those of gamepads are not ALSA's.
    let is_midi = |profile: &&Profile| !profile.kinds.iter().any(|kind| kind == "gamepad");
    for profile in library.profiles().iter().filter(is_midi) {
        for name in &profile.identity.ports.any {
            let (cut, id) = (cut(name), profile.id.as_str());
            assert_eq!(library.of_port(&cut, None).map(|(of, _)| of.id.as_str()), Some(id), "{cut:?} of {name:?}");
        }
    }
    assert!(library.of_port("Launchpad Mini MK3 LPMiniMK3 DA", None).is_none(), "its other port");
}

#[test]
fn usb_ids_count_more_than_a_name() {
    let library = Library::bundled();
    let (profile, fit) = library.of_port("anything", UsbId::parse("0944:0117")).unwrap();
    assert_eq!((profile.id.as_str(), fit), ("korg-nanokontrol2", PortFit::Usb));
    let (_, fit) = library.of_port("nanoKONTROL2", UsbId::parse("0944:0117")).unwrap();
    assert!(fit > PortFit::Usb);
}

#[test]
fn a_long_name_of_a_port_fits_nothing_and_takes_no_time() {
    assert!(Library::bundled().of_port(&"nanoKONTROL2".repeat(6000), None).is_none());
    assert!(Library::bundled().of_port("", None).is_none());
}

#[test]
fn a_search_finds_by_maker_name_kind_words_and_usb_id() {
    let library = Library::bundled();
    let ids = |query: &str| library.search(query).iter().map(|profile| profile.id.as_str()).collect::<Vec<_>>();
    assert_eq!(ids("nanokontrol2"), ["korg-nanokontrol2"]);
    assert_eq!(ids("0944:0117"), ["korg-nanokontrol2"]);
    assert_eq!(ids("Launchpad X"), ["novation-launchpad-x"]);
    assert!(ids("launchpad").len() >= 6);
    // Before its successors, whose names say more.
    assert_eq!(ids("Akai APC mini")[..2], ["akai-apc-mini", "akai-apc-mini-mk2"]);
    assert_eq!(ids("apc mini mk1"), ["akai-apc-mini"]);
    assert_eq!(ids("apc mini mk2"), ["akai-apc-mini-mk2"]);
    assert!(ids("akai pads").contains(&"akai-apc-mini"));
    assert!(ids("zzzz").is_empty());
    assert_eq!(ids("").len(), library.profiles().len());
    assert_eq!(library.near("korg-nanokontrol3").first(), Some(&"korg-nanokontrol"));
}
