//! The ahead-of-time compiler: from a package's bytes to machine code, in a child process with limited memory and time.
//!
//! A component that is within all bounds of [`structure`](conductor_package::structure) can still be a bomb for the
//! compiler. So the host does not compile by itself: it starts a program (its own, or another one that is named) as a
//! worker, hands it the component, and takes code. What goes wrong there costs the installation and nothing else.
//!
//! The worker ([`main`]) reads from its standard input the length of the component, eight bytes in little-endian order,
//! and the component; it writes the code to its standard output, or a sentence to its standard error. The input stays
//! open: when it ends early, the host is gone, and the worker ends itself.
//!
//! Before it reads anything, the worker limits itself: the memory that it may write to, its CPU time, the size of files
//! (none), core dumps (none), and its priority. Beside that, the host kills it when the time is up that may pass.
//! Windows has no such limits, and macOS does not enforce the one on memory: there the time that passes is the limit.

use parking_lot::Mutex;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use wasmtime::Engine;

use crate::engine;
use crate::limits::MAX_TEXT;
use conductor_package::file::MAX_PACKAGE;
use conductor_precompiled::Precompiled;
use conductor_terminal::excerpt;

/// The argument by which a program is asked to be the worker.
pub const WORKER: &str = "compile-worker";

/// The environment variable that names the program which compiles.
pub const VARIABLE: &str = "CONDUCTOR_COMPILER";

/// The largest code that is taken from a worker, in bytes (256 MiB); that of a JavaScript engine has 40 MiB.
pub const MAX_CODE: u64 = 256 * 1024 * 1024;

/// Threads of one worker: more would need more memory than [`CompileLimits::memory`].
const MAX_THREADS: usize = 4;

/// How long a worker that has written its code may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// What compiling one package may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Memory that can be written to, in bytes.
    pub memory: u64,
    /// CPU time, in seconds.
    pub cpu: u64,
    /// Code, in bytes.
    pub code: u64,
    /// Time that passes.
    pub timeout: Duration,
}

impl CompileLimits {
    /// What every compiler has that is not given others: 2 GiB, 300 s of CPU, [`MAX_CODE`], 600 s. A JavaScript engine
    /// of 12 MB takes a tenth of that.
    pub const DEFAULT: Self = Self { memory: 2 << 30, cpu: 300, code: MAX_CODE, timeout: Duration::from_secs(600) };
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The compiler's own words: the component uses what this host does not have.
    #[error("{0}")]
    Rejected(String),
    /// A limit of memory was reached.
    #[error("compiling it took more than {} MiB of memory; no feature needs that much", .0 >> 20)]
    Memory(u64),
    /// A limit of CPU time was reached.
    #[error("compiling it took more than {0} s of CPU time; no feature needs that long")]
    CpuTime(u64),
    /// The time was up.
    #[error("compiling it took longer than {} s; no feature needs that long, unless this machine is very busy", .0.as_secs())]
    Timeout(Duration),
    /// The code is larger than a limit, in bytes.
    #[error("its compiled code is larger than {} MiB; no feature needs that much", .0 >> 20)]
    TooLarge(u64),
    /// The worker ended in another way.
    #[error("the compiler ended early: {0}")]
    Crashed(String),
    /// The worker could not be started.
    #[error("the program that compiles features, {}, can't be started: {message}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        message: String,
    },
    /// No program is known.
    #[error(
        "no program is known that compiles features; put `conductor` beside this one, name it in {VARIABLE}, or have the \
         host's builder name one"
    )]
    NoProgram,
    /// [`Compiler::cancel`] was called.
    #[error("the host is stopping")]
    Cancelled,
}

impl CompileError {
    /// Whether the same bytes would fare no better a second time.
    pub(super) const fn is_final(&self) -> bool {
        match self {
            Self::Rejected(_)
            | Self::Memory(_)
            | Self::CpuTime(_)
            | Self::TooLarge(_)
            | Self::Crashed(_)
            | Self::Timeout(_) => true,
            Self::Start { .. } | Self::NoProgram | Self::Cancelled => false,
        }
    }
}

/// What turns packages into machine code. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Compiler {
    kind: Kind,
    limits: CompileLimits,
    cancel: Arc<Cancel>,
    precompiled: Option<Arc<Precompiled>>,
}

#[derive(Debug, Clone)]
enum Kind {
    Program(PathBuf),
    InProcess,
    Missing,
}

/// Closing the channel wakes everybody who waits for a worker.
#[derive(Debug)]
struct Cancel {
    open: Mutex<Option<Sender<()>>>,
    cancelled: Receiver<()>,
}

impl Cancel {
    fn is_cancelled(&self) -> bool {
        self.open.lock().is_none()
    }
}

impl Compiler {
    fn new(kind: Kind) -> Self {
        let (open, cancelled) = crossbeam_channel::bounded(0);
        let cancel = Arc::new(Cancel { open: Mutex::new(Some(open)), cancelled });
        Self { kind, limits: CompileLimits::DEFAULT, cancel, precompiled: None }
    }

    /// Compiles in workers: `program` is started with the one argument [`WORKER`] and then limits, and has to call
    /// [`main`] with what follows [`WORKER`]. `conductor` does.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self::new(Kind::Program(program.into()))
    }

    /// Compiles in this process, where only the bounds of [`structure`](conductor_package::structure) hold: a package
    /// can take all memory, or occupy a thread for minutes. For packages whose author is trusted, and for tests.
    pub fn in_process() -> Self {
        Self::new(Kind::InProcess)
    }

    /// Compiles in workers of the program that [`VARIABLE`] names; else of this program, if it is `conductor`; else of
    /// the `conductor` beside it (for a program that Cargo has built to test or bench: in the folder above `deps`). If
    /// there is none, nothing can be compiled: [`CompileError::NoProgram`].
    pub fn find() -> Self {
        let named = std::env::var_os(VARIABLE).map(PathBuf::from);
        match named.or_else(|| conductor_of(&std::env::current_exe().ok()?)) {
            Some(program) => Self::program(program),
            None => Self::new(Kind::Missing),
        }
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: CompileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, which need not compile what is there as code already.
    #[must_use]
    pub fn with_precompiled(mut self, precompiled: Precompiled) -> Self {
        self.precompiled = Some(Arc::new(precompiled));
        self
    }

    /// The same, which need not compile those features in this folder that the program was released with.
    #[must_use]
    pub fn with_released(self, features: Option<&Path>) -> Self {
        match features.map(Precompiled::released) {
            Some(Ok(Some(precompiled))) => self.with_precompiled(precompiled),
            Some(Ok(None)) | None => self,
            Some(Err(error)) => {
                tracing::warn!("the bundled features are compiled anew: {error}");
                self
            }
        }
    }

    /// Whether a release has brought code along.
    pub(super) const fn is_released(&self) -> bool {
        self.precompiled.is_some()
    }

    /// The file with the code that a release has brought along for the package with this digest, checked just now.
    pub(super) fn precompiled(&self, package: &str) -> Option<PathBuf> {
        self.precompiled.as_ref()?.file(package, MAX_CODE)
    }

    /// Ends every worker, of all clones, and starts none any more: the host stops.
    pub fn cancel(&self) {
        drop(self.cancel.open.lock().take());
    }

    /// Whether it compiles in other processes, so that several at once are faster.
    pub(super) const fn is_parallel(&self) -> bool {
        matches!(self.kind, Kind::Program(_))
    }

    /// Compiles a component for engines of [`engine::config`]: code as `Engine::precompile_component` returns it.
    /// Blocks.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub(super) fn compile(&self, engine: &Engine, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        match &self.kind {
            Kind::Missing => Err(CompileError::NoProgram),
            Kind::InProcess => precompiled(engine, component),
            Kind::Program(program) => self.by_worker(program, component),
        }
    }

    fn by_worker(&self, program: &Path, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        if self.cancel.is_cancelled() {
            return Err(CompileError::Cancelled);
        }
        let deadline = Instant::now() + self.limits.timeout;
        let start = |error: io::Error| CompileError::Start { program: program.to_owned(), message: error.to_string() };
        let mut child = Worker(self.command(program).spawn().map_err(start)?);
        let (Some(mut input), Some(output), Some(errors)) =
            (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take())
        else {
            return Err(CompileError::Crashed("it has no pipes".to_owned()));
        };
        let (done, ended) = crossbeam_channel::bounded(1);
        std::thread::scope(|scope| {
            // Killing the worker closes the pipes, and so ends the three.
            let feeding = scope.spawn(move || {
                let length = (component.len() as u64).to_le_bytes();
                // A worker that ends before it has read everything says why elsewhere.
                let _ = input.write_all(&length).and_then(|()| input.write_all(component)).and_then(|()| input.flush());
                input
            });
            scope.spawn(move || drop(done.send(read_some(output, self.limits.code.saturating_add(1)))));
            let saying = scope.spawn(move || read_some(errors, MAX_TEXT as u64).unwrap_or_default());
            let code = crossbeam_channel::select! {
                recv(ended) -> code => code.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
                recv(self.cancel.cancelled) -> _ => {
                    child.kill();
                    return Err(CompileError::Cancelled);
                }
                recv(crossbeam_channel::at(deadline)) -> _ => {
                    child.kill();
                    return Err(CompileError::Timeout(self.limits.timeout));
                }
            };
            if code.as_ref().is_ok_and(|code| code.len() as u64 > self.limits.code) {
                child.kill();
                return Err(CompileError::TooLarge(self.limits.code));
            }
            drop(feeding.join());
            let status = child.ended();
            let said = saying.join().unwrap_or_default();
            match (status, code) {
                (Ok(status), Ok(code)) if status.success() && !code.is_empty() => Ok(code),
                (Ok(status), _) => Err(self.explained(status, &String::from_utf8_lossy(&said))),
                (Err(error), _) => Err(CompileError::Crashed(error.to_string())),
            }
        })
    }

    fn command(&self, program: &Path) -> Command {
        /// What a program may need to start at all. Secrets may stand in others.
        const PASSED: [&str; 5] =
            ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SystemRoot", "LLVM_PROFILE_FILE"];
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut command = Command::new(program);
        command
            .arg(WORKER)
            .args([self.limits.memory.to_string(), self.limits.cpu.to_string()])
            .env_clear()
            .envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("RAYON_NUM_THREADS", threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// How a worker failed, by how it ended and what it said.
    fn explained(&self, status: ExitStatus, said: &str) -> CompileError {
        if OUT_OF_MEMORY.iter().any(|words| said.contains(words)) {
            return CompileError::Memory(self.limits.memory);
        }
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&status) == Some(rustix::process::Signal::XCPU.as_raw()) {
            return CompileError::CpuTime(self.limits.cpu);
        }
        let said = excerpt(said.trim(), MAX_TEXT);
        if status.code() == Some(REJECTED) {
            return CompileError::Rejected(said);
        }
        CompileError::Crashed(if said.is_empty() { status.to_string() } else { format!("{status}: {said}") })
    }
}

/// A started worker, which does not outlive this.
struct Worker(Child);

impl Worker {
    fn kill(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits until one that has closed its output has ended.
    fn ended(&mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                self.kill();
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not end"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_some(from: impl io::Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Compiles a component in this process, for a release: for every processor of this system and architecture that is not
/// very old.
///
/// # Errors
/// [`CompileError::Rejected`].
pub fn for_release(component: &[u8]) -> Result<Vec<u8>, CompileError> {
    let engine = engine::baseline().and_then(|config| Engine::new(&config));
    precompiled(&engine.map_err(|error| CompileError::Rejected(format!("{error:#}")))?, component)
}

fn precompiled(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, CompileError> {
    engine.precompile_component(component).map_err(|error| CompileError::Rejected(format!("{error:#}")))
}

/// The `conductor` that a program may use: itself, or the one beside it.
fn conductor_of(program: &Path) -> Option<PathBuf> {
    if program.file_stem()? == "conductor" {
        return Some(program.to_owned());
    }
    let name = format!("conductor{}", std::env::consts::EXE_SUFFIX);
    let folder = program.parent()?;
    // Cargo puts what it builds to test or bench into a folder within the one of the programs.
    let above = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == "deps"));
    [Some(folder), above].into_iter().flatten().map(|folder| folder.join(&name)).find(|beside| beside.is_file())
}

/// What a worker says, among other words, when there is no memory left: the standard library, the system, Wasmtime.
const OUT_OF_MEMORY: [&str; 3] = ["memory allocation of", "Cannot allocate memory", "out-of-memory error"];

/// The exit code of a worker whose component is rejected.
const REJECTED: i32 = 3;

/// The worker: reads a component from standard input and writes its code to standard output. To be called first thing
/// in a process of its own, with the arguments after [`WORKER`].
#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "the host that started it reads both")]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match work(arguments) {
        Ok(code) => match io::stdout().write_all(&code).and_then(|()| io::stdout().flush()) {
            Ok(()) => ExitCode::SUCCESS,
            // The host has closed the pipe.
            Err(_) => ExitCode::FAILURE,
        },
        Err(WorkerError::Rejected(said)) => {
            eprintln!("{said}");
            ExitCode::from(REJECTED as u8)
        }
        Err(WorkerError::Failed(said)) => {
            eprintln!("{said}");
            ExitCode::FAILURE
        }
    }
}

enum WorkerError {
    Rejected(String),
    Failed(String),
}

impl<E: std::fmt::Display> From<E> for WorkerError {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

fn work(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<u8>, WorkerError> {
    let mut numbers = arguments.into_iter().map(|argument| argument.to_str()?.parse::<u64>().ok());
    let (Some(Some(memory)), Some(Some(cpu)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Err(WorkerError::Failed(format!("{WORKER} takes a number of bytes and a number of seconds")));
    };
    limit(memory, cpu)?;
    let mut input = io::stdin().lock();
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_PACKAGE {
        return Err(WorkerError::Failed(format!("a component has at most {MAX_PACKAGE} bytes")));
    }
    let mut component = Vec::new();
    (&mut input).take(length).read_to_end(&mut component)?;
    if component.len() as u64 != length {
        return Err(WorkerError::Failed("the component ended early".to_owned()));
    }
    drop(input);
    // The host never writes more: this ends when the host does, or has its code.
    std::thread::Builder::new().name("host".into()).spawn(|| {
        let _ = io::stdin().lock().read(&mut [0]);
        std::process::abort();
    })?;
    let engine = Engine::new(&engine::config()).map_err(|error| format!("{error:#}"))?;
    precompiled(&engine, &component).map_err(|error| WorkerError::Rejected(error.to_string()))
}

/// Limits this process.
#[cfg(unix)]
fn limit(memory: u64, cpu: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, nice, setrlimit};
    let to = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, to(0))?;
    setrlimit(Resource::Fsize, to(0))?;
    // At the first of them the system says so, a second later it kills.
    setrlimit(Resource::Cpu, Rlimit { current: Some(cpu), maximum: Some(cpu.saturating_add(1)) })?;
    // On Linux this counts all private memory that can be written to; elsewhere only what comes from `brk`.
    setrlimit(Resource::Data, to(memory))?;
    // Address space is reserved in larger pieces than are used: by allocators, and for the program itself.
    let address_space = setrlimit(Resource::As, to(memory.saturating_add(4 << 30)));
    if cfg!(target_os = "linux") {
        address_space?;
    }
    // A host that has the lowest priority already is no reason not to go on.
    let _ = nice(10);
    Ok(())
}

/// This system has no such limits.
#[cfg(not(unix))]
fn limit(_memory: u64, _cpu: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_beside_another_one() {
        let folder = std::env::temp_dir().join(format!("conductor-compiler-{}", std::process::id()));
        let deps = folder.join("deps");
        std::fs::create_dir_all(&deps).unwrap();
        let conductor = folder.join(format!("conductor{}", std::env::consts::EXE_SUFFIX));
        assert_eq!(conductor_of(&folder.join("shell")), None);
        assert_eq!(conductor_of(&conductor), Some(conductor.clone()), "itself");
        std::fs::write(&conductor, "").unwrap();
        assert_eq!(conductor_of(&folder.join("shell")), Some(conductor.clone()));
        assert_eq!(conductor_of(&deps.join("hostile-0123")), Some(conductor));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn without_a_program_nothing_is_compiled() {
        let engine = Engine::new(&engine::config()).unwrap();
        assert_eq!(Compiler::new(Kind::Missing).compile(&engine, b""), Err(CompileError::NoProgram));
        let gone = Compiler::program("/nonexistent/conductor").compile(&engine, b"");
        assert!(matches!(gone, Err(CompileError::Start { .. })), "{gone:?}");
    }

    /// A program that is no worker: whatever it does, there is an error within the time.
    #[cfg(unix)]
    #[test]
    fn a_program_that_is_no_worker_is_an_error() {
        let engine = Engine::new(&engine::config()).unwrap();
        let short = CompileLimits { timeout: Duration::from_millis(300), ..CompileLimits::DEFAULT };
        let echo = Compiler::program("/bin/false").compile(&engine, b"component");
        assert!(matches!(echo, Err(CompileError::Crashed(_))), "{echo:?}");
        let folder = std::env::temp_dir().join(format!("conductor-worker-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (script, wanted) in [
            ("exec sleep 1000", CompileError::Timeout(short.timeout)),
            ("exec cat /dev/zero", CompileError::TooLarge(1000)),
            ("kill -XCPU $$", CompileError::CpuTime(300)),
            ("echo 'memory allocation of 8 bytes failed' >&2; kill -ABRT $$", CompileError::Memory(2 << 30)),
            ("echo 'unhandled out-of-memory error: out of memory' >&2; exit 101", CompileError::Memory(2 << 30)),
            ("echo no >&2; exit 3", CompileError::Rejected("no".to_owned())),
            ("exit 0", CompileError::Crashed("exit status: 0".to_owned())),
        ] {
            let file = folder.join("worker");
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            let limits = match &wanted {
                CompileError::Timeout(_) => short,
                CompileError::TooLarge(code) => CompileLimits { code: *code, ..CompileLimits::DEFAULT },
                _ => CompileLimits::DEFAULT,
            };
            // Another thread that forks just now may hold the script open for writing.
            let deadline = Instant::now() + Duration::from_secs(10);
            let failed = loop {
                match Compiler::program(&file).with_limits(limits).compile(&engine, b"component") {
                    Err(CompileError::Start { .. }) if Instant::now() < deadline => {}
                    other => break other,
                }
            };
            assert_eq!(failed, Err(wanted), "{script}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn cancelling_ends_a_worker_and_starts_no_other() {
        let engine = Engine::new(&engine::config()).unwrap();
        let compiler = Compiler::program("/bin/cat");
        compiler.cancel();
        assert_eq!(compiler.clone().compile(&engine, b""), Err(CompileError::Cancelled));
    }
}
