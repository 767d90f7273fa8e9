//! Compiles a mapping's condition for the engine.

use conductor_engine::{AppName, Condition, Day, DeviceId, TimeRange};

use super::trigger::{range, values};
use conductor_config as config;

/// What a person wrote as a condition, as the engine asks it.
pub(crate) fn condition(written: &config::Condition) -> Condition {
    use config::Condition as Written;
    let device = |name: &Option<String>| name.as_deref().map(DeviceId::new);
    match written {
        Written::Always {} => Condition::Always,
        Written::Never {} => Condition::Never,
        Written::ModeIs { mode } => Condition::ModeIs(mode.as_str().into()),
        Written::TimeRange { start, end } => {
            // 24:00 is where the next day begins.
            Condition::TimeRange(TimeRange { from: start.second() % 86_400, to: end.second() })
        }
        Written::DayOfWeek { days } => Condition::DayOfWeek(days.iter().map(|&day| Day::ALL[day as usize]).collect()),
        Written::AppRunning { app } => Condition::AppRunning(AppName::new(app)),
        Written::AppFrontmost { app } => Condition::AppFrontmost(AppName::new(app)),
        Written::NoteHeld { note, channel, device: name } => Condition::NoteHeld {
            notes: range(*note),
            channel: channel.map(config::Channel::get),
            device: device(name),
        },
        Written::CcValueInRange { cc, value_range, channel, device: name } => Condition::CcValueInRange {
            controller: cc.get(),
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
            device: device(name),
        },
        Written::And { conditions } => Condition::And(conditions.iter().map(condition).collect()),
        Written::Or { conditions } => Condition::Or(conditions.iter().map(condition).collect()),
        Written::Not { condition: inner } => Condition::Not(Box::new(condition(inner))),
    }
}
