//! The worker that starts programs, with timeouts and an upper bound on how many run.
//!
//! Programs are started in the order in which they are asked for. At most [`MAX_RUNNING`] commands run
//! at once; the next one waits in a queue without blocking its caller. A command with a timeout is killed
//! with its whole process group, at the timeout and at shutdown.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use conductor_config::{Launch, Shell};
use conductor_event::DeviceId;
use conductor_expression::{Expression, Mistake, Names, Slots};
use conductor_number::Shown;
use conductor_observer::{Observation, Observer};
use conductor_scheduling::release_child;
use conductor_stdx::hidden::hide_line;
use conductor_stdx::template;
use conductor_terminal::excerpt;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::queue::{Inbox, Job, Next, Queue};
use super::variables::View;
use super::{Envelope, Reason, WorkerCounters};

/// Commands that run at once.
pub const MAX_RUNNING: usize = 16;
/// Bytes that are kept of what a command complains about; what is beyond is read and thrown away.
pub const MAX_OUTPUT: usize = 64 * 1024;
/// How long what a command has left in its pipes may take to be read after its end: something that it
/// started may hold them open for good.
const OUTPUT_GRACE: Duration = Duration::from_millis(100);
/// How long the end of all commands may take at shutdown, after they were killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// What to start.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessAction {
    /// A program that is left to itself, and the variables that its arguments may name.
    Launch(Launch, View),
    /// A command that is waited for, and the same.
    Shell(Shell, View),
}

impl ProcessAction {
    /// What it is, for everybody who watches the host: without private values.
    pub fn describe(&self) -> String {
        match self {
            Self::Launch(launch, _) => format!("Launch {}", hide_line(&launch.app)),
            Self::Shell(shell, _) => format!("Shell {}", hide_line(&shell.command)),
        }
    }

    /// The program that is started for an event, then its arguments.
    pub fn command_line(&self, envelope: &Envelope) -> Vec<String> {
        let command = match self {
            Self::Launch(launch, view) => command_of_launch(launch, view, envelope),
            Self::Shell(shell, view) => command_of_shell(shell, view, envelope),
        };
        let command = command.as_std();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// The way to the worker. Clones share it.
pub type ProcessQueue = Queue<(Envelope, Arc<ProcessAction>)>;

impl Job for (Envelope, Arc<ProcessAction>) {
    fn may_switch_off(&self) -> bool {
        false
    }
}

/// The worker that was started.
#[derive(Debug)]
pub struct Processes {
    /// The way to it.
    pub queue: ProcessQueue,
    /// Ends it, and kills what runs; what waits for a place is left undone.
    pub stopping: CancellationToken,
    /// Its thread.
    pub thread: JoinHandle<()>,
}

/// Starts the worker.
///
/// # Errors
/// When the system has no thread left.
pub fn start(observer: Observer) -> std::io::Result<Processes> {
    let (queue, inbox) = Queue::new("processes");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("processes")
        .enable_io()
        .enable_time()
        .build()?;
    let reporter =
        Reporter { name: Arc::clone(queue.name()), counters: Arc::clone(queue.counters()), observer: observer.clone() };
    let stopping = CancellationToken::new();
    let stopped = stopping.clone();
    let thread = std::thread::Builder::new()
        .name("processes".into())
        .spawn(move || run(&runtime, inbox, &stopped, &reporter))?;
    Ok(Processes { queue, stopping, thread })
}

#[derive(Clone)]
struct Reporter {
    name: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
}

impl Reporter {
    fn report(&self, envelope: &Envelope, result: Result<(), Reason>) {
        match result {
            Ok(()) => drop(self.counters.done.fetch_add(1, Ordering::Relaxed)),
            Err(reason) => {
                self.counters.failure(&reason);
                self.observer.put(Observation::Failure(envelope.failure(&self.name, reason)));
            }
        }
    }
}

fn run(
    runtime: &Runtime,
    mut inbox: Inbox<(Envelope, Arc<ProcessAction>)>,
    stopping: &CancellationToken,
    reporter: &Reporter,
) {
    let places = Arc::new(Semaphore::new(MAX_RUNNING));
    let running = TaskTracker::new();
    loop {
        let (envelope, action) = match inbox.next(None) {
            Next::Job(job) => job,
            Next::Stop => break,
            // A program that was started was started; it holds nothing that could be let go of.
            Next::Command(()) | Next::Release(_) | Next::ReleaseAll | Next::Timeout | Next::Look => continue,
        };
        match &*action {
            ProcessAction::Launch(launch, view) => {
                let started = {
                    let _in_runtime = runtime.enter();
                    started(command_of_launch(launch, view, &envelope))
                };
                let result = started.map_err(|error| not_started(&launch.app, &error));
                reporter.report(
                    &envelope,
                    result.map(|mut child| {
                        // It is asked for its end only so that the system can forget it.
                        runtime.spawn(async move { drop(leader(&mut *child).wait().await) });
                    }),
                );
            }
            ProcessAction::Shell(shell, view) => {
                let place = stopping.run_until_cancelled(Arc::clone(&places).acquire_owned());
                let Some(Ok(place)) = runtime.block_on(place) else { break };
                let started = {
                    let _in_runtime = runtime.enter();
                    started(command_of_shell(shell, view, &envelope))
                };
                let child = match started {
                    Ok(child) => child,
                    Err(error) => {
                        reporter.report(&envelope, Err(not_started(&shell.command, &error)));
                        continue;
                    }
                };
                let (reporter, stopping) = (reporter.clone(), stopping.clone());
                let within = Duration::from_millis(shell.timeout_ms.into());
                running.spawn_on(
                    async move {
                        let result = until_its_end(child, within, &stopping).await;
                        drop(place);
                        reporter.report(&envelope, result);
                    },
                    runtime.handle(),
                );
            }
        }
    }
    stopping.cancel();
    running.close();
    let ended = runtime.block_on(async { tokio::time::timeout(STOP_TIMEOUT, running.wait()).await });
    if ended.is_err() {
        tracing::warn!("a command did not end within {} s of being killed", STOP_TIMEOUT.as_secs());
    }
}

fn not_started(program: &str, error: &std::io::Error) -> Reason {
    let program = hide_line(program);
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => Reason::Denied(format!("{program} can't be started: {error}")),
        _ => Reason::Failed(format!("{program} can't be started: {error}")),
    }
}

/// Waits for the end of a command, and kills what there is of it when it takes longer, or when everything
/// stops.
async fn until_its_end(
    mut child: Box<dyn ChildWrapper>,
    within: Duration,
    stopping: &CancellationToken,
) -> Result<(), Reason> {
    // Both pipes are read, or a talkative command would stop at a full one.
    let silent = child.stdout().take().map(|out| tokio::spawn(first_bytes(out, 0)));
    let said = child.stderr().take().map(|err| tokio::spawn(first_bytes(err, MAX_OUTPUT)));
    let ended = tokio::select! {
        ended = leader(&mut *child).wait() => ended.map_err(|error| Reason::Failed(error.to_string())),
        () = tokio::time::sleep(within) => Err(Reason::Timeout(within)),
        () = stopping.cancelled() => Err(Reason::Gone),
    };
    let status = match ended {
        Ok(status) => status,
        Err(reason) => {
            // It fails where all of them have ended.
            let _ = child.start_kill();
            let _ = leader(&mut *child).wait().await;
            return Err(reason);
        }
    };
    if let Some(silent) = silent {
        silent.abort();
    }
    let said = match said {
        Some(mut said) => match tokio::time::timeout(OUTPUT_GRACE, &mut said).await {
            Ok(said) => said.unwrap_or_default(),
            Err(_) => {
                said.abort();
                Vec::new()
            }
        },
        None => Vec::new(),
    };
    if status.success() { Ok(()) } else { Err(Reason::Failed(how_it_ended(status, &said))) }
}

/// Reads to the end, and returns this many bytes of the beginning.
async fn first_bytes(mut pipe: impl AsyncRead + Unpin, most: usize) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..length.min(most - kept.len())]);
    }
    kept
}

/// `it ended with exit status: 3: no such lamp`, with the last line of its complaints.
fn how_it_ended(status: ExitStatus, said: &[u8]) -> String {
    const MAX_LINE: usize = 200;
    let said = String::from_utf8_lossy(said);
    let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = excerpt(line.trim(), MAX_LINE);
    if line.is_empty() { format!("it ended with {status}") } else { format!("it ended with {status}: {line}") }
}

/// Starts a program in a group of its own, with the limits that this process began with.
fn started(command: Command) -> std::io::Result<Box<dyn ChildWrapper>> {
    let child = in_a_group(command).spawn()?;
    if let Some(id) = child.id() {
        release_child(id);
    }
    Ok(child)
}

/// The program in a process group (Windows: a job) of its own: Ctrl-C in Conductor's terminal is not meant for it, and
/// it can be killed together with everything that it started.
fn in_a_group(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command
}

/// The program that was started itself, without its group: a command ends when it ends, whatever it leaves behind.
fn leader(child: &mut dyn ChildWrapper) -> &mut dyn ChildWrapper {
    child.inner_mut()
}

fn command_of_launch(launch: &Launch, view: &View, envelope: &Envelope) -> Command {
    let numbers = envelope.numbers();
    // macOS finds applications by their names, and starts them by its own program.
    let mut command = if cfg!(target_os = "macos") && !launch.app.contains('/') {
        let mut open = Command::new("open");
        open.args(["-a", &launch.app]);
        if !launch.args.is_empty() {
            open.arg("--args");
        }
        open
    } else {
        Command::new(&launch.app)
    };
    command
        .args(launch.args.iter().map(|arg| filled(arg, view, &numbers, &envelope.device)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    around(&mut command, launch.working_dir.as_deref(), &launch.env);
    command
}

fn command_of_shell(shell: &Shell, view: &View, envelope: &Envelope) -> Command {
    let numbers = envelope.numbers();
    let args = shell.args.iter().map(|arg| filled(arg, view, &numbers, &envelope.device));
    let mut command = if shell.shell {
        let mut line = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
        line.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(&shell.command);
        if !cfg!(windows) {
            // What `$0` is.
            line.arg("sh");
        }
        line
    } else {
        Command::new(&shell.command)
    };
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    around(&mut command, shell.working_dir.as_deref(), &shell.env);
    // The words of the event come as data, never as part of a command line.
    command
        .env("CONDUCTOR_DEVICE", envelope.device.as_str())
        .env("CONDUCTOR_VALUE", envelope.event.value().to_string())
        .env("CONDUCTOR_NOTE", numbers.record.number.to_string())
        .env("CONDUCTOR_CHANNEL", numbers.record.channel.to_string())
        .env("CONDUCTOR_N", numbers.record.position.to_string());
    command
}

fn around(command: &mut Command, folder: Option<&str>, env: &BTreeMap<String, String>) {
    command.stdin(Stdio::null()).envs(env);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
}

/// What is wrong with the expressions in such a text. Only what scales is surely meant to be one.
pub fn mistake(text: &str, view: &View) -> Option<Mistake> {
    let inner = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
    let scaled = inner.map(|(inner, _)| inner).filter(|inner| inner.contains(" -> "));
    scaled.filter_map(|inner| parsed(inner, view).err()).next()
}

fn parsed(text: &str, view: &View) -> Result<Expression, Mistake> {
    let mut expression = Expression::parse(text, Names::EventAndVariables)?;
    expression.bind(|name| view.variables.bound(name))?;
    Ok(expression)
}

/// The text with the numbers of the event, and variables, in it.
fn filled(text: &str, view: &View, event: &impl Slots, device: &DeviceId) -> String {
    template::fill(text, ["{", "}"], |inner| {
        // What is no expression stays as it is: braces have a meaning of their own in many commands.
        let expression = parsed(inner, view).ok().filter(|expression| !expression.is_fixed())?;
        Some(Shown { number: expression.eval(&view.of(event, device)), unit: expression.unit() }.to_string().into())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use conductor_event::{Answers, MidiMessage, RuleId};
    use crossbeam_channel::Receiver;
    use proptest::prelude::*;

    use super::*;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_observer::{self as observer, Observed};

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn a_command_is_described_without_passwords() {
        let shell =
            "command = 'API_KEY=hunter2 deploy', shell = true, working_dir = '/nowhere/at/all'".replace(", ", "\n");
        let described = ProcessAction::Shell(toml::from_str(&shell).unwrap(), View::default()).describe();
        assert_eq!(described, "Shell API_KEY=<hidden> deploy");
        let stage = Stage::new();
        stage.shell(&shell);
        let why = format!("{:?}", stage.failure());
        assert!(why.contains("API_KEY=<hidden> deploy can't be started"), "{why}");
    }

    #[test]
    fn a_command_line_is_the_one_that_is_started() {
        let line =
            |toml: &str| ProcessAction::Shell(toml::from_str(toml).unwrap(), View::default()).command_line(&envelope());
        assert_eq!(line("command = 'say'\nargs = ['{n}', 'a b']"), ["say", "3", "a b"]);
        assert_eq!(line("command = 'say $1'\nshell = true\nargs = ['x']"), ["sh", "-c", "say $1", "sh", "x"]);
    }

    struct Stage {
        processes: Processes,
        failures: Receiver<Observation>,
        _observed: Observed,
    }

    impl Stage {
        fn new() -> Self {
            let (_, said) = SinkQueue::new();
            let (observer, observed, _) = observer::start(said, None).unwrap();
            let failures = observed.subscribe();
            Self { processes: start(observer).unwrap(), failures, _observed: observed }
        }

        fn shell(&self, toml: &str) {
            let shell: Shell = toml::from_str(toml).unwrap();
            self.processes.queue.try_put((envelope(), Arc::new(ProcessAction::Shell(shell, View::default())))).unwrap();
        }

        fn failure(&self) -> Reason {
            match self.failures.recv_timeout(TEST_TIMEOUT).unwrap() {
                Observation::Failure(failure) => failure.reason,
                other => panic!("{other:?}"),
            }
        }

        fn done(&self, count: u64) {
            let deadline = std::time::Instant::now() + TEST_TIMEOUT;
            while self.processes.queue.counters().done.load(Ordering::Relaxed) < count {
                assert!(std::time::Instant::now() < deadline, "{:?}", self.processes.queue.counters());
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn envelope() -> Envelope {
        Envelope {
            at: 0,
            device: DeviceId::new("pads"),
            event: MidiMessage::NoteOn { channel: 9, note: 39, velocity: 64 }.into(),
            position: 3,
            pattern: None,
            answers: Answers::default(),
            rule: RuleId(0),
            generation: 0,
            mode: None,
            tries: None,
        }
    }

    #[test]
    fn arguments_are_a_list_and_never_a_command_line() {
        let folder = std::env::temp_dir().join(format!("conductor-shell-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let stage = Stage::new();
        stage.shell(&format!(
            "command = 'sh'\nworking_dir = '{}'\nenv = {{ LAMP = 'red' }}\n\
             args = ['-c', 'printf \"%s|\" \"$@\" $LAMP $CONDUCTOR_DEVICE $CONDUCTOR_VALUE > out', 'sh', '$(touch x); {{note}}', '{{n}}+{{value}}']",
            folder.display()
        ));
        stage.done(1);
        assert_eq!(std::fs::read_to_string(folder.join("out")).unwrap(), "$(touch x); 39|3+64|red|pads|64|");
        assert!(!folder.join("x").exists());
        stage.shell(&format!(
            "command = 'echo \"$1\" | tr a-z A-Z > \"$0.out\"'\nshell = true\nargs = ['loud']\nworking_dir = '{}'",
            folder.display()
        ));
        stage.done(2);
        assert_eq!(std::fs::read_to_string(folder.join("sh.out")).unwrap(), "LOUD\n");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_command_that_fails_says_how() {
        let stage = Stage::new();
        stage.shell("command = 'echo no such lamp >&2; exit 3'\nshell = true");
        assert_eq!(stage.failure(), Reason::Failed("it ended with exit status: 3: no such lamp".into()));
        stage.shell("command = '/no/such/program'");
        let Reason::Failed(text) = stage.failure() else { panic!() };
        assert!(text.starts_with("/no/such/program can't be started: No such file"), "{text}");
        stage.shell("command = '/etc/passwd'");
        assert!(matches!(stage.failure(), Reason::Denied(_)));
    }

    #[test]
    fn a_talkative_command_is_read_to_its_end() {
        let stage = Stage::new();
        stage.shell("command = 'head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2'\nshell = true");
        stage.done(1);
    }

    // ACT-3: what takes too long is killed, and so is what it started.
    #[test]
    fn a_timeout_kills_the_whole_group() {
        let stage = Stage::new();
        let file = std::env::temp_dir().join(format!("conductor-group-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        stage.shell(&format!(
            "command = 'sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait'\nshell = true\ntimeout_ms = 500",
            file.display()
        ));
        assert_eq!(stage.failure(), Reason::Timeout(Duration::from_millis(500)));
        ends(&std::fs::read_to_string(&file).unwrap());
        let _ = std::fs::remove_file(&file);
    }

    // ACT-3: nothing that was started with a time to end by outlives the host.
    #[test]
    fn stopping_kills_what_runs() {
        let stage = Stage::new();
        let file = std::env::temp_dir().join(format!("conductor-stop-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        stage.shell(&format!(
            "command = 'sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait'\nshell = true\ntimeout_ms = 3000000",
            file.display()
        ));
        let deadline = std::time::Instant::now() + TEST_TIMEOUT;
        while !file.exists() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        stage.processes.queue.stop();
        stage.processes.stopping.cancel();
        stage.processes.thread.join().unwrap();
        ends(&std::fs::read_to_string(&file).unwrap());
        let _ = std::fs::remove_file(&file);
    }

    /// Waits until there is no such process, or only what is left of it for its parent to read.
    fn ends(pid: &str) {
        let deadline = std::time::Instant::now() + TEST_TIMEOUT;
        let stat = format!("/proc/{}/stat", pid.trim());
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(std::time::Instant::now() < deadline, "{pid} still runs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    // ACT-2: those that hang fill their places, and no more than those run.
    #[test]
    fn no_more_run_at_once_than_there_are_places() {
        let stage = Stage::new();
        let folder = std::env::temp_dir().join(format!("conductor-places-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for n in 0..=MAX_RUNNING {
            stage.shell(&format!(
                "command = 'touch {0}/{n}; until test -e {0}/go; do sleep 0.01; done'\nshell = true\ntimeout_ms = 60000",
                folder.display()
            ));
        }
        let running = || std::fs::read_dir(&folder).unwrap().count();
        let deadline = std::time::Instant::now() + TEST_TIMEOUT;
        while running() < MAX_RUNNING {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!folder.join(MAX_RUNNING.to_string()).exists(), "the last one waits for a place");
        std::fs::write(folder.join("go"), "").unwrap();
        stage.done(MAX_RUNNING as u64 + 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    proptest! {
        #[test]
        fn filling_a_text_keeps_what_is_no_variable(text in "[^{}]{0,20}") {
            prop_assert_eq!(filled(&text, &View::default(), &conductor_expression::Inputs::default(), &DeviceId::new("pads")), text);
        }
    }
}
