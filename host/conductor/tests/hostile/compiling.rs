//! Bombs for the compiler that are within every bound of structure: each costs its own installation.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_config as config;
use conductor_host::host::Host;
use conductor_package::{Grants, Package};
use conductor_sandbox::{CompileError, CompileLimits, Compiler, PrepareError, Sandbox};

use crate::lab::{Folder, Lab, compiler, guest};
use crate::packages::{PLAIN, add_section, feature};

/// A function just below a mebibyte, which a compiler needs half a minute and hundreds of mebibytes for.
fn slow() -> Package {
    let step = "(local.set 0 (i32.add (local.get 1) (call $f))) (if (local.get 0) (then (local.set 1 (i32.const 1))))";
    let module = format!("(func $f (result i32) (i32.const 1)) (func (local i32 i32) {})", step.repeat(50_000));
    let mut bytes = wat::parse_str(feature(&module)).unwrap();
    add_section(&mut bytes, PLAIN.as_bytes());
    Package::from_bytes(Path::new("slow.wasm"), bytes).unwrap()
}

fn sandbox(limits: CompileLimits) -> (Lab, Sandbox) {
    let lab = Lab::new();
    let sandbox = Sandbox::new(None, Arc::clone(&lab.services), compiler().with_limits(limits)).unwrap();
    (lab, sandbox)
}

fn refused(sandbox: &Sandbox, package: &Package) -> CompileError {
    match sandbox.prepare(package, Grants::default()) {
        Err(PrepareError::Compile(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was compiled"),
    }
}

/// This package is compiled and works, also after another one failed.
fn goes_on(lab: &Lab) {
    let tools = lab.sandbox.prepare(&guest("tests/hostile-tools"), lab.grants()).unwrap();
    crate::lab::Tools::new(tools).goes_on();
}

#[test]
fn that_take_too_much_memory() {
    let memory = 64 << 20;
    let (lab, sandbox) = sandbox(CompileLimits { memory, ..CompileLimits::DEFAULT });
    let error = refused(&sandbox, &slow());
    assert_eq!(error, CompileError::Memory(memory));
    assert!(error.to_string().contains("more than 64 MiB of memory"), "{error}");
    goes_on(&lab);
}

#[test]
fn that_take_too_much_of_the_processor() {
    let (lab, sandbox) = sandbox(CompileLimits { cpu: 1, ..CompileLimits::DEFAULT });
    let package = slow();
    assert_eq!(refused(&sandbox, &package), CompileError::CpuTime(1));
    // Nothing is tried again.
    assert_eq!(refused(&sandbox, &package), CompileError::CpuTime(1));
    goes_on(&lab);
}

#[test]
fn that_take_too_long() {
    let timeout = Duration::from_secs(1);
    let (lab, sandbox) = sandbox(CompileLimits { timeout, ..CompileLimits::DEFAULT });
    assert_eq!(refused(&sandbox, &slow()), CompileError::Timeout(timeout));
    goes_on(&lab);
}

#[test]
fn that_come_to_too_much_code() {
    let (lab, sandbox) = sandbox(CompileLimits { code: 1000, ..CompileLimits::DEFAULT });
    let mut bytes = wat::parse_str(feature("")).unwrap();
    add_section(&mut bytes, PLAIN.as_bytes());
    let package = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap();
    assert_eq!(refused(&sandbox, &package), CompileError::TooLarge(1000));
    goes_on(&lab);
}

#[test]
fn a_host_that_stops_ends_what_is_being_compiled() {
    let compiler = compiler();
    let lab = Lab::new();
    let sandbox = Sandbox::new(None, Arc::clone(&lab.services), compiler.clone()).unwrap();
    let package = slow();
    let refused = std::thread::scope(|scope| {
        let compiling = scope.spawn(|| refused(&sandbox, &package));
        // Whether it has begun by now or not, it ends.
        compiler.cancel();
        compiling.join().unwrap()
    });
    assert_eq!(refused, CompileError::Cancelled);
    goes_on(&lab);
}

/// A worker that never ends blocks the change that needs it, and nothing else; and not for long.
#[cfg(unix)]
#[test]
fn a_host_answers_while_a_package_is_compiled() {
    let folder = Folder::new();
    let (worker, begun) = (folder.path().join("worker"), folder.path().join("begun"));
    fs::write(&worker, format!("#!/bin/sh\ntouch '{}'\nexec sleep 1000\n", begun.display())).unwrap();
    fs::set_permissions(&worker, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut bytes = wat::parse_str(feature("")).unwrap();
    add_section(&mut bytes, PLAIN.as_bytes());
    fs::write(folder.path().join("x.wasm"), bytes).unwrap();

    let file = folder.path().join("config.toml").display().to_string();
    let loaded = config::parse("", &file).unwrap();
    let host = Host::builder().home(folder.path()).compiler(Compiler::program(&worker)).start(&loaded).unwrap();
    std::thread::scope(|scope| {
        let reloading = scope.spawn(|| host.reload("[features.x]\npath = 'x.wasm'", &file).map(drop));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !begun.exists() {
            assert!(Instant::now() < deadline, "no compiler was started");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (answered, answer) = std::sync::mpsc::channel();
        let host = &host;
        let asking = scope.spawn(move || {
            let (status, features, tools) = (host.status(), host.features(), host.tools());
            let (modes, skills, plans) = (host.modes(), host.skills(), host.plans());
            let config = host.config_in_force();
            assert!(features.is_empty() && tools.is_empty() && skills.is_empty() && status.refused.is_none());
            assert!(
                modes.0.is_none()
                    && plans.unwrap().is_empty()
                    && config.0.text().is_empty()
                    && host.is_in_force("", &config::include::Included::default())
            );
            answered.send(()).unwrap();
        });
        let in_time = answer.recv_timeout(Duration::from_secs(30));
        assert!(!reloading.is_finished(), "it waits for the compiler");
        host.cancel_compilation();
        asking.join().unwrap();
        in_time.expect("who only asks does not wait");
        assert!(reloading.join().unwrap().is_ok());
    });
    let refused = host.features()[0].refused.clone().unwrap();
    assert!(refused.contains("the host is stopping"), "{refused}");
    host.stop();
}

/// A host that was killed closes the worker's input, and that is all the worker needs.
#[test]
fn a_host_that_is_killed_leaves_no_compiler_behind() {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_conductor"))
        .args(["compile-worker", "2147483648", "300"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = worker.stdin.take().unwrap();
    let bytes = slow().bytes;
    input.write_all(&(bytes.len() as u64).to_le_bytes()).unwrap();
    input.write_all(&bytes).unwrap();
    drop(input);
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = worker.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it goes on compiling for a caller that is gone");
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut code = Vec::new();
    worker.stdout.take().unwrap().read_to_end(&mut code).unwrap();
    assert!(!status.success() && code.is_empty(), "{status}");
}

/// What is cut short, too long or no component is answered with words.
#[test]
fn a_worker_that_is_fed_with_nonsense() {
    for (input, code) in [
        (&b""[..], 1),
        (b"\x04\0\0\0\0\0\0\0abc", 1),
        (b"\xff\xff\xff\xff\xff\xff\xff\xffabc", 1),
        (b"\x04\0\0\0\0\0\0\0abcd", 3),
    ] {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_conductor"))
            .args(["compile-worker", "2147483648", "300"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The input stays open for the one that is whole: closing it would end the worker.
        let mut pipe = worker.stdin.take().unwrap();
        pipe.write_all(input).unwrap();
        let open = (code == 3).then_some(pipe);
        let ended = worker.wait_with_output().unwrap();
        drop(open);
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(code), 0), "{input:?}");
        assert!(!ended.stderr.is_empty());
    }
}

/// An embedder without the program compiles nothing, and gets an error with what to do.
#[test]
fn without_a_program_that_compiles() {
    let lab = Lab::new();
    let sandbox = Sandbox::new(None, Arc::clone(&lab.services), Compiler::program("/nonexistent/conductor")).unwrap();
    let mut bytes = wat::parse_str(feature("")).unwrap();
    add_section(&mut bytes, PLAIN.as_bytes());
    let package = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap();
    assert!(matches!(refused(&sandbox, &package), CompileError::Start { .. }));
}
