//! The shows in `examples/shows`: each is played from its recording, and everything that goes out is compared byte by byte
//! with the file beside it: OSC and Art-Net datagrams, MIDI messages, keys.
//!
//! `SHOWS=write` writes these files anew.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use conductor_config::{self as config, Loaded};
use conductor_engine::{RuleSetHandle, rule_name};
use conductor_event::{DeviceEvent, DeviceId};
use conductor_host::host::{self, Rehearsal};
use conductor_timeline::player::{Happened, Player, Sent};
use conductor_timeline::{Effect, Timeline};

/// The bundled features: where `cargo xtask test` says, else beside the build of this test.
fn built() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
    std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from)
}

/// A folder with the features that shows use, and a home in which they are compiled once for all.
fn shared() -> &'static (PathBuf, PathBuf) {
    static SHARED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shows");
        let (features, home) = (folder.join("features"), folder.join("home"));
        fs::create_dir_all(&features).unwrap();
        fs::create_dir_all(&home).unwrap();
        for feature in ["osc-output.wasm", "artnet-output.wasm"] {
            fs::copy(built().join(feature), features.join(feature)).unwrap();
        }
        host::rehearse(&config::parse("", "config.toml").unwrap(), Some(&home), Some(&features)).unwrap();
        (features, home)
    })
}

/// A show, as a host would load it.
struct Show {
    folder: PathBuf,
    loaded: Loaded,
    recording: Timeline,
}

/// What went out in a show, and the mapping that sent each.
struct Played(Vec<(Sent, Option<String>)>);

impl Show {
    fn load(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shows").join(name);
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let loaded = config::parse(&read("config.toml"), "config.toml");
        let loaded = loaded.unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
        let recording = Timeline::parse(&read("recording.txt")).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        Self { folder, loaded, recording }
    }

    /// Plays the recording, in no time.
    fn play(&self, as_bytes: bool) -> Played {
        let (features, home) = shared();
        let rehearsed = host::rehearse(&self.loaded, Some(home), Some(features));
        let Rehearsal { compiled, mut actions } = rehearsed.unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(compiled.warnings.is_empty(), "{}", compiled.warnings.render(false));
        if as_bytes {
            actions.keep_bytes();
        }
        let rules = Arc::new(RuleSetHandle::new(compiled.rules));
        let set = rules.load();
        let mut player = Player::new(&rules, &Arc::default(), &mut actions);
        let mut happened = Vec::new();
        for entry in self.recording.entries.clone() {
            player.advance(entry.at);
            player.event(entry.at, DeviceEvent { device: DeviceId::new(&entry.device), event: entry.event });
            happened.append(&mut player.happened());
        }
        assert!(player.finish(), "what was started does not end");
        happened.append(&mut player.happened());
        let name = |sent: &Sent| sent.rule.and_then(|rule| set.rules().get(rule.0 as usize)).map(rule_name);
        let sent = happened.into_iter().filter_map(|happened| match happened {
            Happened::Sent(sent) => Some((name(&sent), sent)),
            _ => None,
        });
        Played(sent.map(|(name, sent)| (sent, name)).collect())
    }

    /// What goes out, one a line: the time, the bytes, and as a comment what they say and which mapping sent them.
    fn effects(&self) -> String {
        let (Played(bytes), Played(meanings)) = (self.play(true), self.play(false));
        assert_eq!(bytes.len(), meanings.len(), "each datagram says one thing");
        let mut text = String::new();
        for ((sent, rule), (meaning, _)) in bytes.iter().zip(&meanings) {
            assert_eq!(sent.at, meaning.at);
            let meaning = match &sent.effect {
                Effect::Datagram { .. } => Some(meaning.effect.to_string()),
                effect => effect.comment().map(|comment| comment.trim_start_matches("# ").to_owned()),
            };
            let comment: Vec<String> = meaning.into_iter().chain(rule.clone()).collect();
            let (time, effect) = (sent.at as f64 / 1e6, &sent.effect);
            let _ = writeln!(text, "{time:>10.3} ms  {effect}  # {}", comment.join("; "));
        }
        text
    }
}

/// Plays a show, and compares everything that goes out with what is written.
fn plays(name: &str) {
    let show = Show::load(name);
    let effects = show.effects();
    let file = show.folder.join("effects.txt");
    if std::env::var_os("SHOWS").is_some_and(|what| what == "write") {
        fs::write(&file, &effects).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (effects, written) = (lines(&effects), lines(&written));
    for (number, (is, should)) in effects.iter().zip(&written).enumerate() {
        assert_eq!(is, should, "{name}: effect {}", number + 1);
    }
    assert_eq!(effects.len(), written.len(), "{name}: other effects than are written");
    assert!(effects.len() >= 20, "{name}: {} effects are no show", effects.len());
}

#[test]
fn a_dj_plays_with_two_decks() {
    plays("dj");
}

#[test]
fn a_band_plays_with_backing_tracks() {
    plays("band");
}

#[test]
fn a_streaming_desk_goes_through_a_stream() {
    plays("stream");
}

#[test]
fn the_lights_of_a_play_follow_their_cues() {
    plays("theatre");
}
