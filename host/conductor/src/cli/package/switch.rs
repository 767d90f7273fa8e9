//! The arguments of `conductor feature enable` and `disable`: a feature, or single contributions of it.

use conductor_package::Contributions;

/// One feature, or contributions of it.
#[derive(Debug, clap::Args)]
pub(in super::super) struct Switched {
    /// The feature
    pub(super) name: String,
    /// An action of it. Can be given several times, as those that follow
    #[arg(long, value_name = "NAME")]
    action: Vec<String>,
    /// A tool of it
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// A hook of it
    #[arg(long, value_name = "POINT")]
    hook: Vec<String>,
    /// A background task of it
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// A provider of it
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// A skill of it
    #[arg(long, value_name = "NAME")]
    skill: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Switched {
    /// The contributions that are named; none if the whole feature is meant.
    pub(super) fn contributions(&self) -> Contributions {
        let Self { action, tool, hook, task, provider, skill, .. } = self;
        Contributions {
            actions: action.clone(),
            tools: tool.clone(),
            hooks: hook.clone(),
            tasks: task.clone(),
            providers: provider.clone(),
            skills: skill.clone(),
        }
    }
}
