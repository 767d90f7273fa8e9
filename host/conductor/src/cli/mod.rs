//! The command line. Every command is a client of the library or of a running host.
//!
//! Exit codes: 0 done, 1 it failed, 2 the command line or the configuration is wrong, 3 unknown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::embedding::make_home;
use conductor_config::{self as config, Diagnostics, Loaded};
use conductor_sandbox::compiler;
use conductor_stdx::nearest::nearest;
use conductor_stdx::plain_file;
use conductor_terminal::{self as terminal, Lines};

mod audit;
mod beside;
mod bindings;
mod chat;
mod completions;
mod config_command;
mod config_file;
mod contributed;
mod demo;
mod devices;
mod doctor;
mod explain;
mod feature;
mod fingerprint;
mod init;
mod learn;
mod learn_mapping;
mod lock;
mod manual;
mod mcp;
mod mode;
mod models;
mod monitor;
mod named;
mod notifications;
mod package;
mod plan;
mod ports;
mod precompile;
mod profile;
mod run;
mod secret;
mod service;
mod shown_effects;
mod signals;
mod simulate;
mod skills;
mod status;
mod suggest;
mod test;
mod tool;
mod tui;
mod ui;

/// What the help says of them.
const EXIT_CODES: &str = "Exit codes:\n  0  it is done\n  1  it failed, or a check did not pass\n  \
                          2  the command line, or the configuration, is wrong; nothing was done\n  \
                          3  unknown: `audit verify` without audit.head, or with a file that can't be read";

/// Plug in any controller, say what it should do, extend it with features that cannot hurt you.
#[derive(Debug, Parser)]
#[command(name = "conductor", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Arguments {
    /// The configuration [default: config.toml in the home]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder for configuration, cache and socket [default: $CONDUCTOR_HOME, or ~/.conductor]
    #[arg(long, global = true, value_name = "FOLDER")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a first configuration, for the controllers that are there
    Init(Output),
    /// Open the ports and do what the configuration says, until Ctrl-C or SIGTERM
    Run(run::RunArguments),
    /// Show in a few lines how the running host is
    Status(Output),
    /// See the running host on one screen: events as they come, plans to decide about, features, chat, learn
    Tui,
    /// Have the system start a host when you log in, and again when it fails
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// See controllers, rules and a sandboxed feature at work, without any hardware
    Demo(demo::DemoArguments),
    /// Find what is wrong on this machine, and how to mend it; exit code 1 where something is in trouble
    Doctor(Output),
    /// See what was asked of the hosts of this home, and check that the record is as it was written
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Look up controllers: what each control sends, its lights, how its ports are called
    #[command(subcommand)]
    Devices(devices::DevicesCommand),
    /// List profiles, and which one applies for the application in front
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// List ports, with the reason where one can't be used
    Ports(Output),
    /// List bindings and how they are, tell twins apart, mute devices
    #[command(args_conflicts_with_subcommands = true)]
    Bindings(bindings::BindingsArguments),
    /// Show every event as it comes, and the rules that fire
    Monitor(Output),
    /// Show what rules would do for the events of a script; nothing is done
    Simulate(simulate::SimulateArguments),
    /// Say which rules look at an event, which fire, and why the others don't
    Explain(explain::ExplainArguments),
    /// Check tests of mappings: scripts that say which rules should fire
    Test(test::TestArguments),
    /// Check the configuration, bring it to today's form, compare it, or print its schema
    #[command(subcommand)]
    Config(config_command::ConfigCommand),
    /// Install features, say what they may use, list them, or look into a package
    #[command(subcommand)]
    Feature(feature::FeatureCommand),
    /// Say what kind of source each device is, from what it sent
    Fingerprint(fingerprint::FingerprintArguments),
    /// Move a control, and see what it is called in a mapping
    Learn(learn::LearnArguments),
    /// Let an agent talk to the running host over standard input and output (MCP)
    Mcp(mcp::McpOptions),
    /// Talk with a model, which looks with tools and proposes plans that you decide about
    #[command(args_conflicts_with_subcommands = true)]
    Chat(chat::ChatArguments),
    /// Lock the show: only you change anything; agents and lent tokens can't
    Lock(lock::LockArguments),
    /// Unlock the show
    Unlock(Output),
    /// List the modes, and switch
    #[command(subcommand)]
    Mode(mode::ModeCommand),
    /// List the models of the configuration, check them, and say what they cost
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// List what features notified agents of, and what they notify of from now on
    Notifications(notifications::NotificationsArguments),
    /// Print the OpenAPI document of the API
    Openapi,
    /// Look at changes that were proposed, and decide about them
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Take the last applied plan back
    Undo(plan::Agreed),
    /// Apply again what was undone last
    Redo(plan::Agreed),
    /// Keep keys for APIs, in the system's keychain
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// What agents read about Conductor: list, show, check, install and remove skills
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    /// List and call the tools that features contribute
    #[command(subcommand)]
    Tool(tool::ToolCommand),
    /// Show the running host in a browser on this computer, until Ctrl-C
    Ui(ui::UiArguments),
    /// Compile one package, for a host that started this
    #[command(name = compiler::WORKER, hide = true)]
    CompileWorker {
        /// Limits, of memory and of CPU time
        limits: Vec<OsString>,
    },
    /// Compile the bundled features for a release, and write the program that trusts their code
    #[command(hide = true)]
    Precompile(precompile::PrecompileArguments),
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Manual(manual::ManualArguments),
    /// Print what has a shell complete this program's commands
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why a command failed, and with which exit code.
#[derive(Debug)]
enum Failure {
    /// 1
    Failed(anyhow::Error),
    /// 2
    Wrong(String),
    /// 2: the configuration has mistakes.
    Config(Diagnostics),
    /// 3
    Unknown(String),
    /// 130: a signal ended it, as it was meant to.
    Interrupted(String),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

type CommandResult = Result<(), Failure>;

/// Where things are, as the command line and the environment say.
#[derive(Debug)]
struct Paths {
    config: PathBuf,
    home: PathBuf,
    features: Option<PathBuf>,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    terminal::report_panics();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let done = (error.kind() == clap::error::ErrorKind::InvalidSubcommand).then(contributed).flatten();
            return done
                .unwrap_or_else(|| misread(&error, || Arguments::try_parse_from(terminal::escaped_arguments()).err()));
        }
    };
    // One of these is for a host, not for a person: it prints no log.
    if let Command::CompileWorker { limits } = arguments.command {
        return compiler::main(limits);
    }
    // A host that runs tells its story; the other commands have an answer to print.
    let level =
        if matches!(arguments.command, Command::Run(_)) { "info,rmcp=warn" } else { "warn,conductor::notice=info" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("CONDUCTOR_LOG").unwrap_or_else(|_| level.into());
    // A line of the log would be written over the screen.
    if !matches!(arguments.command, Command::Tui) {
        terminal::log::start(filter);
    }
    // An author's commands need no home, and no features that came with the host.
    if let Command::Feature(feature::FeatureCommand::Author(command)) = &arguments.command {
        return ended(feature::author::run(|| home_folder(arguments.home.as_deref()), command));
    }
    if let Command::Completions { shell } = arguments.command {
        return ended(completions::run(shell));
    }
    if let Command::Precompile(arguments) = &arguments.command {
        return ended(precompile::run(arguments));
    }
    if let Command::Manual(arguments) = &arguments.command {
        return ended(manual::run(arguments));
    }
    if let Command::Openapi = &arguments.command {
        return ended(openapi());
    }
    let places = paths(arguments.config.as_deref(), arguments.home.as_deref());
    ended(places.and_then(|places| match &arguments.command {
        Command::Init(Output { json }) => init::run(&places, *json),
        Command::Run(arguments) => run::run(&places, arguments),
        Command::Status(output) => status::run(&places, output.json),
        Command::Tui => tui::run(&places),
        Command::Service(command) => service::run(&places, command),
        // Said already: they need no home.
        Command::Completions { .. } | Command::CompileWorker { .. } | Command::Precompile(_) | Command::Manual(_) => {
            Ok(())
        }
        Command::Demo(demo) => demo::run(&places, demo),
        Command::Doctor(output) => doctor::run(&places, output.json),
        Command::Audit(command) => audit::run(&places, command),
        Command::Devices(command) => devices::run(&places, command),
        Command::Profile(command) => profile::run(&places, command),
        Command::Ports(output) => ports::run(&places, output.json),
        Command::Bindings(arguments) => bindings::run(&places, arguments),
        Command::Monitor(output) => monitor::run(&places, output.json),
        Command::Simulate(simulate) => simulate::run(&places, simulate),
        Command::Explain(explain) => explain::run(&places, explain),
        Command::Test(test) => test::run(&places, test),
        Command::Config(command) => config_command::run(&places, command),
        Command::Feature(command) => feature::run(&places, command),
        Command::Fingerprint(arguments) => fingerprint::run(&places, arguments),
        Command::Learn(arguments) => learn::run(&places, arguments),
        Command::Lock(arguments) => lock::lock(&places, arguments),
        Command::Unlock(output) => lock::unlock(&places, output.json),
        Command::Chat(arguments) => chat::run(&places, arguments),
        Command::Mcp(options) => mcp::run(&places, options),
        Command::Mode(command) => mode::run(&places, command),
        Command::Models(command) => models::run(&places, command),
        Command::Notifications(arguments) => notifications::run(&places, arguments),
        Command::Openapi => openapi(),
        Command::Plan(command) => plan::run(&places, command),
        Command::Undo(agreed) => plan::step(&places, "undo", agreed),
        Command::Redo(agreed) => plan::step(&places, "redo", agreed),
        Command::Secret(command) => secret::run(&places, command),
        Command::Skills(command) => skills::run(&places, command),
        Command::Tool(command) => tool::run(&places, command),
        Command::Ui(arguments) => ui::run(&places, arguments),
    }))
}

fn openapi() -> CommandResult {
    terminal::json(&conductor_api::openapi::document())?;
    Ok(())
}

fn ended(done: CommandResult) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) => {
            terminal::eprint(&message(&format!("conductor: {}", with_causes(&error))));
            ExitCode::from(1)
        }
        Err(Failure::Wrong(text)) => {
            terminal::eprint(&message(&text));
            ExitCode::from(2)
        }
        Err(Failure::Config(diagnostics)) => {
            terminal::eprint(&diagnostics.lines_within(terminal::error_columns()));
            ExitCode::from(2)
        }
        Err(Failure::Unknown(text)) => {
            terminal::eprint(&message(&format!("conductor: {text}")));
            ExitCode::from(3)
        }
        Err(Failure::Interrupted(text)) => {
            terminal::eprint(&message(&format!("conductor: {text}")));
            ExitCode::from(signals::INTERRUPTED)
        }
    }
}

/// An error with its causes. A cause that a message already ends with is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(
            |with_causes, cause| {
                if with_causes.ends_with(&cause) { with_causes } else { format!("{with_causes}: {cause}") }
            },
        )
        .unwrap_or_default()
}

/// A message of the program. What it quotes may have several lines, so that those after the first get a gutter.
fn message(text: &str) -> Lines {
    let mut lines = Lines::new();
    let (first, more) = text.split_once('\n').unwrap_or((text, ""));
    lines.push(first);
    if !more.is_empty() {
        lines.push_text("  | ", more);
    }
    lines
}

/// What clap has to say: the help or the version that was asked for, or what is wrong with the command line. `again`
/// reads a command line whose hidden characters are written out: the message quotes what was typed.
fn misread(error: &clap::Error, again: impl FnOnce() -> Option<clap::Error>) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        terminal::document(&error.render().to_string());
        return code;
    }
    let again = again();
    let mut lines = Lines::new();
    again
        .as_ref()
        .unwrap_or(error)
        .render()
        .to_string()
        .trim_end()
        .split('\n')
        .for_each(|line| lines.push_escaped(line));
    terminal::eprint(&lines);
    code
}

/// A command line that is none of the program's.
#[derive(Debug, Parser)]
#[command(name = "conductor")]
struct Unknown {
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[arg(long, global = true)]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: UnknownCommand,
}

#[derive(Debug, Subcommand)]
enum UnknownCommand {
    #[command(external_subcommand)]
    Words(Vec<OsString>),
}

/// Runs the command of a feature that the command line names. `None` if it names none. No feature takes the name of one of
/// the program's commands, nor one that is so near that a person may have meant that: `secrets set` would be given keys.
fn contributed() -> Option<ExitCode> {
    let Unknown { config, home, command: UnknownCommand::Words(words) } = Unknown::try_parse().ok()?;
    let program = <Arguments as clap::CommandFactory>::command();
    let own = program
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    if nearest(words.first()?.to_str()?, own).is_some() {
        return None;
    }
    contributed::run(&paths(config.as_deref(), home.as_deref()).ok()?, &words)
}

fn paths(config: Option<&Path>, home: Option<&Path>) -> Result<Paths, Failure> {
    let home = home_folder(home)?;
    let config = config.map_or_else(|| home.join("config.toml"), Path::to_owned);
    Ok(Paths { config, features: features_folder(), home })
}

/// The home: the one that is named, else that of the environment, else `.conductor` in the user's folder.
fn home_folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    match (named, std::env::var_os("CONDUCTOR_HOME")) {
        (Some(home), _) => Ok(home.to_owned()),
        (None, Some(home)) => Ok(home.into()),
        (None, None) => std::env::home_dir()
            .map(|folder| folder.join(".conductor"))
            .ok_or_else(|| Failure::Wrong("conductor: there is no home folder; give one with --home".into())),
    }
}

/// The bundled features lie beside the program, or where the environment says.
fn features_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("CONDUCTOR_FEATURES") {
        return Some(folder.into());
    }
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    let folder = [beside.join("features"), beside.join("../features"), beside.join("../share/conductor/features")]
        .into_iter()
        .find(|folder| folder.is_dir());
    if folder.is_none() {
        tracing::warn!(
            "the bundled features are not there: no folder `features` beside {}; build them with \
             `cargo xtask features`, or name their folder in CONDUCTOR_FEATURES",
            program.display()
        );
    }
    folder
}

/// Reads the configuration.
fn load(path: &Path) -> Result<Loaded, Failure> {
    let text = plain_file::read_text(path, plain_file::MAX_TEXT).map_err(|error| unreadable(path, &error))?;
    config::read(&text, &path.display().to_string()).map_err(wrong)
}

/// A configuration that can't be read.
fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let hint = if error.kind() == std::io::ErrorKind::NotFound {
        "\n`conductor init` writes one, --config names another, and `conductor demo` needs none."
    } else {
        ""
    };
    Failure::Wrong(format!("conductor: {}: {error}{hint}", path.display()))
}

fn wrong(diagnostics: Diagnostics) -> Failure {
    Failure::Config(diagnostics)
}

/// Prints what is doubtful, if anything is.
fn warn(warnings: &Diagnostics) {
    if !warnings.is_empty() {
        terminal::eprint(&warnings.lines_within(terminal::error_columns()));
    }
}

/// A configuration that is wrong is another failure than a machine that is.
fn started(error: conductor_host::host::StartError) -> Failure {
    match error {
        conductor_host::host::StartError::Config(diagnostics) => wrong(diagnostics),
        other => Failure::Failed(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such file");
        let tells_it = conductor_package::file::PackageError::Io { path: "p.wasm".into(), source: missing() };
        assert_eq!(with_causes(&tells_it.into()), "p.wasm: can't be read: no such file");
        assert_eq!(with_causes(&anyhow::Error::from(missing()).context("reading")), "reading: no such file");
    }
}
