//! The peer: the original engine's compiled rules, which it asks one after the other.

use std::hint::black_box;

use conductor_core::event_processor::ProcessedEvent;
use conductor_core::rule_compiler;
use conductor_core::rule_set::CompiledRuleSet;
use conductor_core::{ActionConfig, Config, Mapping, Mode, Trigger, VelocityLevel};

use super::rules::{self, Played, Spot};
use crate::measure::Work;

/// What it is called in the table.
pub const NAME: &str = "conductor-core 0.1.0";

/// The original engine with its rules.
pub struct Original(CompiledRuleSet);

impl Original {
    /// A rule for each spot.
    pub fn new(spots: &[Spot]) -> Self {
        let mode = |mode| Mode { name: rules::mode(mode), color: None, mappings: Vec::new() };
        let mut modes: Vec<Mode> = (0..rules::modes(spots)).map(mode).collect();
        for &Spot { mode, device, channel, note } in spots {
            modes[usize::from(mode)].mappings.push(Mapping {
                trigger: Trigger::Note {
                    note,
                    velocity_min: Some(rules::SOFTEST),
                    channel: Some(channel),
                    device: Some(rules::device(device)),
                },
                // It copies the action that it finds; this one is quickly copied.
                action: ActionConfig::VolumeControl { operation: "Mute".into(), value: None },
                description: None,
                let_through: false,
            });
        }
        Self(rule_compiler::compile(&config(modes), 1))
    }

    /// Matches one event after the other.
    pub fn work(&self, events: &[Played]) -> Work<'_> {
        let events: Vec<(ProcessedEvent, usize, String)> = events
            .iter()
            .map(|played| {
                let Spot { mode, device, channel, note } = played.spot;
                let event = ProcessedEvent::PadPressed {
                    note,
                    velocity: played.velocity,
                    velocity_level: VelocityLevel::Hard,
                    channel: Some(channel),
                };
                (event, mode.into(), rules::device(device))
            })
            .collect();
        let mut next = (0..events.len()).cycle();
        Box::new(move |calls| {
            for index in next.by_ref().take(calls as usize) {
                let (event, mode, device) = &events[index];
                black_box(self.0.match_event(black_box(event), *mode, Some(black_box(device))));
            }
        })
    }
}

fn config(modes: Vec<Mode>) -> Config {
    Config {
        modes,
        global_mappings: Vec::new(),
        logging: None,
        advanced_settings: Default::default(),
        last_selected_mode: None,
        default_mode: None,
        led: None,
        event_console: None,
        per_app_modes: None,
        endpoints: Vec::new(),
        routes: Vec::new(),
        security: Default::default(),
        config_meta: Default::default(),
        mcp: Default::default(),
    }
}
