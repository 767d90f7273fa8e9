//! Defaults for devices that the configuration does not mention.

/// Events that a device may send in a second if its binding does not say.
pub const USUAL_RATE: u32 = 10_000;

/// How far a stick has to leave its middle, of its whole way, if its binding does not say.
pub const USUAL_DEAD_ZONE: f32 = 0.1;
