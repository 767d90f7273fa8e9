//! Compiles a mapping's condition for the engine.

use conductor_config as config;
use conductor_engine::{AppName, Condition, Day, TimeRange};
use conductor_event::DeviceId;

use super::trigger::{range, values};
use super::variable::Asking;

/// What a person wrote as a condition, as the engine asks it.
///
/// # Errors
/// What is wrong with what it asks of variables.
pub(super) fn condition(written: &config::Condition, asking: &Asking<'_>) -> Result<Condition, String> {
    use config::Condition as Written;
    let each = |conditions: &[Written]| {
        conditions.iter().map(|one| condition(one, asking)).collect::<Result<Vec<_>, String>>()
    };
    let device = |name: &Option<String>| name.as_deref().map(DeviceId::new);
    if let Some(asked) = asking.condition(written)? {
        return Ok(asked);
    }
    Ok(match written {
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
        Written::And { conditions } => Condition::And(each(conditions)?),
        Written::Or { conditions } => Condition::Or(each(conditions)?),
        Written::Not { condition: inner } => Condition::Not(Box::new(condition(inner, asking)?)),
        // These are answered above.
        Written::VariableIs { .. } | Written::Expression { .. } => Condition::Never,
    })
}
