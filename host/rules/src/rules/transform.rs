//! Compiles the transform of a mapping that forwards messages.

use conductor_midi_transform::{Curve, MidiTransform};

use conductor_config as config;
use conductor_dispatch::conditioner::Forwarding;
use conductor_dispatch::smoothing::Smoothing;

/// The transform of forwarded messages, with what it remembers between them.
pub(super) fn forwarding(transform: &config::MidiTransform) -> Forwarding {
    Forwarding {
        transform: stateless(transform),
        smoothing: transform.smoothing.map(|config::Smoothing { min_cutoff, beta }| Smoothing { min_cutoff, beta }),
        pickup: transform.takeover == config::Takeover::Pickup,
    }
}

/// The part of a transform that remembers nothing.
fn stateless(transform: &config::MidiTransform) -> MidiTransform {
    let range = |bounds: config::DataBounds| {
        let ends = (u8::try_from(bounds.min()).unwrap_or(0), u8::try_from(bounds.max()).unwrap_or(config::DATA_MAX));
        (bounds != config::DataBounds::FULL).then_some(ends)
    };
    MidiTransform {
        input_range: range(transform.input_range),
        output_range: range(transform.output_range),
        channel: transform.channel.map(config::Channel::get),
        controller: transform.cc.map(config::Controller::get),
        note: transform.note.map(config::Note::get),
        velocity_scale: Some(transform.velocity_scale),
        velocity_offset: Some(i16::from(transform.velocity_offset)),
        invert: transform.invert_value,
        curve: Some(match &transform.curve {
            config::Curve::Linear => Curve::Linear,
            config::Curve::Logarithmic => Curve::Logarithmic,
            config::Curve::Exponential => Curve::Exponential,
            config::Curve::S => Curve::SCurve,
            config::Curve::Lut(lut) => Curve::Lut(Box::new(*lut.numbers())),
        }),
    }
}
