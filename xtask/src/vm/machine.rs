//! One run of the machine: QEMU started, its output passed on, the command's exit status found in it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{cpio::Archive, image::Image, qemu::Qemu};

/// Comes before what the machine says about itself.
const MARK: u8 = 0x1e;

/// Boots the image, runs a shell script in it, and returns the script's exit status.
pub fn run(qemu: &Qemu, image: &Image, script: &str, patience: Duration) -> Result<u8> {
    let files = RunFiles::write(image, script)?;
    let mut machine = Machine::start(qemu, image, &files)?;
    let lines = lines(machine.0.stdout.take().context("a piped output is there")?);
    let deadline = Instant::now() + patience;
    let mut out = std::io::stdout().lock();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let (text, mark) = split_at_mark(&line);
                out.write_all(text).and_then(|()| out.flush()).context("cannot write to standard output")?;
                match mark {
                    Some(Mark::Ready(seconds)) => eprintln!("vm: ready {seconds} s after power-on ({})", accelerator()),
                    Some(Mark::Exit(status)) => return Ok(status),
                    None => {}
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("the virtual machine was switched off after {} s", patience.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!(
                    "the virtual machine ended without telling a status; its console's end:\n{}",
                    files.console_tail()
                );
            }
        }
    }
}

/// A running QEMU. Dropping it pulls the plug: there is nothing that it could lose.
struct Machine(Child);

impl Machine {
    fn start(qemu: &Qemu, image: &Image, files: &RunFiles) -> Result<Self> {
        let mut machine = qemu.command()?;
        machine
            .args(["-M", "pc", "-accel", accelerator(), "-cpu", "max", "-smp", "2", "-m", "1024"])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none"])
            .arg("-kernel")
            .arg(&image.kernel)
            .arg("-initrd")
            .arg(&files.initrd)
            .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"])
            .arg("-serial")
            .arg(format!("file:{}", files.console.display()))
            .args(["-chardev", "stdio,id=out,signal=off", "-serial", "chardev:out"])
            .args(["-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"])
            .args(["-device", "virtio-9p-pci,fsdev=root,mount_tag=host"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        Ok(Self(machine.spawn().context("cannot start qemu-system-x86_64")?))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only if it is off already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Hardware support only where the processor itself shows it: on some hosted machines /dev/kvm opens, and then
/// the guest hangs.
fn accelerator() -> &'static str {
    let usable = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let shown = processor.split_whitespace().any(|flag| flag == "vmx" || flag == "svm");
    if usable && shown { "kvm" } else { "tcg,thread=multi" }
}

/// The files of one run, gone afterwards.
struct RunFiles {
    folder: PathBuf,
    initrd: PathBuf,
    console: PathBuf,
}

impl RunFiles {
    fn write(image: &Image, script: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("conductor-vm-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let files = Self { initrd: folder.join("initrd"), console: folder.join("console"), folder };
        // The command goes in as one more archive behind the image's: no length limit, and no quoting.
        let mut initrd = fs::read(&image.initrd).with_context(|| format!("cannot read {}", image.initrd.display()))?;
        let mut archive = Archive::default();
        archive.file("command", script.as_bytes());
        initrd.extend(archive.finish());
        fs::write(&files.initrd, initrd).with_context(|| format!("cannot write {}", files.initrd.display()))?;
        Ok(files)
    }

    fn console_tail(&self) -> String {
        tail(&self.console)
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        // Left-overs in the temporary folder are a blemish, not a failure.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn tail(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// The machine's output, line by line, with an end that can be waited for.
fn lines(output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|size| size > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    receiver
}

/// What the machine says about itself.
#[derive(Debug, PartialEq)]
enum Mark {
    Ready(String),
    Exit(u8),
}

/// A line's own text, and the mark at its end; a command's last line may lack its newline.
fn split_at_mark(line: &[u8]) -> (&[u8], Option<Mark>) {
    let Some(place) = line.iter().position(|byte| *byte == MARK) else { return (line, None) };
    let said = String::from_utf8_lossy(&line[place + 1..]);
    let mark = match said.trim().split_once(' ') {
        Some(("ready", seconds)) => Some(Mark::Ready(seconds.to_owned())),
        Some(("exit", status)) => status.parse().ok().map(Mark::Exit),
        _ => None,
    };
    if mark.is_none() { (line, None) } else { (&line[..place], mark) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_output() {
        assert_eq!(split_at_mark(b"ok 1\n"), (&b"ok 1\n"[..], None));
        assert_eq!(split_at_mark(b"\x1eready 3.61\n"), (&b""[..], Some(Mark::Ready("3.61".into()))));
        assert_eq!(split_at_mark(b"no newline\x1eexit 7\n"), (&b"no newline"[..], Some(Mark::Exit(7))));
        assert_eq!(split_at_mark(b"\x1ewhatever\n"), (&b"\x1ewhatever\n"[..], None));
    }
}
