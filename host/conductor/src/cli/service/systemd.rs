//! Linux: a user unit of systemd, `~/.config/systemd/user/conductor.service`.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere only its tests use it"))]

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;

use super::super::{CommandResult, Failure};
use super::{OURS, ServiceSettings, is_ours, utf8, write};
use conductor_stdx::plain_file;
use conductor_terminal::{self as terminal, outln};

const UNIT: &str = "conductor.service";

/// The unit.
///
/// # Errors
/// A path that no unit can name.
pub(super) fn text(wanted: &ServiceSettings) -> Result<String, Failure> {
    let mut start = quoted(utf8(&wanted.program)?);
    for argument in wanted.arguments() {
        start += &format!(" {}", quoted(utf8(argument)?));
    }
    let features = match &wanted.features {
        // What an assignment has in it is not expanded.
        Some(folder) => format!("Environment={}\n", escaped(&format!("CONDUCTOR_FEATURES={}", utf8(folder)?))),
        None => String::new(),
    };
    Ok(format!(
        "# {OURS}; `conductor service uninstall` takes it away. Changes belong into a\n\
         # drop-in: `systemctl --user edit {UNIT}`.\n\
         [Unit]\n\
         Description=Conductor, which does what controllers ask for\n\
         After=graphical-session.target pipewire.service sound.target\n\
         # A configuration that is refused stays so: five tries, and it waits for a person.\n\
         StartLimitIntervalSec=60\n\
         StartLimitBurst=5\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={start}\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         {features}\
         Restart=on-failure\n\
         RestartSec=2\n\
         # A wrong configuration: nothing gets better by trying again.\n\
         RestartPreventExitStatus=2\n\
         TimeoutStopSec=15\n\
         # A program that a mapping has launched is its person's; it stays when the host ends, and its memory is no\n\
         # reason to end the host. So there is no MemoryMax, which would count both: the host bounds each feature.\n\
         KillMode=process\n\
         OOMPolicy=continue\n\
         # Nothing that it starts gets more rights than its person has: no sudo from a mapping. Take this line back in\n\
         # a drop-in where a mapping needs that.\n\
         NoNewPrivileges=yes\n\
         LockPersonality=yes\n\
         RestrictSUIDSGID=yes\n\
         # Not here, with reasons: ProtectSystem and PrivateTmp put it, and what it launches, into a namespace, where\n\
         # devices' groups are lost on some systems and desktops' programs fail; MemoryDenyWriteExecute forbids to\n\
         # compile features; RestrictRealtime forbids what JACK needs.\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    ))
}

/// A word of a command line: `%` begins specifiers and `$` variables there.
fn quoted(word: &str) -> String {
    escaped(&word.replace('$', "$$"))
}

fn escaped(word: &str) -> String {
    let word = word.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{word}\"")
}

fn path() -> Result<PathBuf, Failure> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        Some(folder) => folder,
        None => std::env::home_dir()
            .ok_or_else(|| Failure::Wrong("conductor: there is no home folder to write the unit into".into()))?
            .join(".config"),
    };
    Ok(folder.join("systemd/user").join(UNIT))
}

/// Runs systemctl.
fn ask(arguments: &[&str]) -> io::Result<Output> {
    Command::new("systemctl").arg("--user").args(arguments).output()
}

/// Runs systemctl; returns its message if it fails.
fn systemctl(arguments: &[&str]) -> Result<(), String> {
    match ask(arguments) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("systemctl: {error}")),
    }
}

/// A state that systemd reports, such as `active`; `None` if it can't be asked.
fn word(question: &str) -> Option<String> {
    let output = ask(&[question, UNIT]).ok()?;
    let word = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!word.is_empty()).then_some(word)
}

/// Writes the unit, has it start with every login, and starts it. `running` is the process of the host that runs
/// in this home.
pub(super) fn install(wanted: &ServiceSettings, running: Option<u64>) -> CommandResult {
    let path = path()?;
    let is_active = word("is-active").as_deref() == Some("active");
    if let (Some(pid), false) = (running, is_active) {
        return Err(Failure::Failed(anyhow::anyhow!(
            "a host is running in {} already, as process {pid}, and systemd did not start it; end it first",
            wanted.home.display()
        )));
    }
    write(&path, &text(wanted)?)?;
    outln!("wrote {}", path.display());
    let steps: [&[&str]; 3] = [&["daemon-reload"], &["enable", UNIT], &["restart", UNIT]];
    for (done, step) in steps.iter().enumerate() {
        if let Err(why) = systemctl(step) {
            let rest: Vec<String> =
                steps[done..].iter().map(|step| format!("\n  systemctl --user {}", step.join(" "))).collect();
            return Err(Failure::Failed(anyhow::anyhow!(
                "systemd did not do it: {why}\nThe unit is written; when systemd is there, run{}",
                rest.concat()
            )));
        }
    }
    outln!("it runs, and starts when you log in; its log: journalctl --user -u {UNIT}");
    outln!("(to have it run without a login, too: loginctl enable-linger)");
    Ok(())
}

pub(super) fn status(wanted: &ServiceSettings, as_json: bool) -> CommandResult {
    let path = path()?;
    let there = plain_file::read_text(&path, plain_file::MAX_TEXT).ok();
    let current = there.as_ref().map(|there| text(wanted).is_ok_and(|text| text == *there));
    let (active, enabled) = (word("is-active"), word("is-enabled"));
    if as_json {
        let status = json!({
            "unit": path, "installed": there.is_some(), "current": current, "active": active, "enabled": enabled,
        });
        terminal::json(&status)?;
        return Ok(());
    }
    match current {
        None => outln!("not installed; `conductor service install`"),
        Some(true) => outln!("installed: {}", path.display()),
        Some(false) => outln!(
            "installed: {}; it runs another program, home or configuration than this one; \
             `conductor service install` would have it run this one",
            path.display()
        ),
    }
    match (active, enabled) {
        (None, _) => outln!("systemd can't be asked: `systemctl --user` gives no answer"),
        (Some(active), enabled) => outln!("systemd: {active}, {}", enabled.as_deref().unwrap_or("-")),
    }
    Ok(())
}

pub(super) fn uninstall() -> CommandResult {
    let path = path()?;
    if !path.exists() {
        outln!("it is not installed");
        return Ok(());
    }
    if !is_ours(&path)? {
        return Err(Failure::Wrong(format!(
            "conductor: {} is not one that `conductor service install` has written; it stays",
            path.display()
        )));
    }
    let stopped = systemctl(&["disable", "--now", UNIT]);
    std::fs::remove_file(&path)?;
    outln!("removed {}", path.display());
    let forgotten = systemctl(&["daemon-reload"]);
    match stopped.and(forgotten) {
        Ok(()) => Ok(()),
        Err(why) => Err(Failure::Failed(anyhow::anyhow!(
            "systemd did not end it: {why}\nWhere it still runs: systemctl --user stop {UNIT}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> ServiceSettings {
        let config = "/home/eva/.conductor/config.toml".into();
        ServiceSettings {
            program: "/usr/bin/conductor".into(),
            home: "/home/eva/.conductor".into(),
            config,
            features: None,
        }
    }

    fn line<'t>(text: &'t str, key: &str) -> &'t str {
        text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in {text}"))
    }

    #[test]
    fn a_unit_runs_this_program_in_this_home() {
        let text = text(&wanted()).map_err(|_| ()).unwrap();
        assert_eq!(
            line(&text, "ExecStart="),
            "ExecStart=\"/usr/bin/conductor\" \"--home\" \"/home/eva/.conductor\" \"run\""
        );
        assert!(!text.contains("Environment=") && text.contains("NoNewPrivileges=yes"));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }

    #[test]
    fn the_unit_of_a_package_has_the_same_settings() {
        let settings = |unit: &str| -> Vec<String> {
            let own = ["#", "ExecStart=", "Documentation="];
            let lines = unit.lines().filter(|line| !line.is_empty() && !own.iter().any(|own| line.starts_with(own)));
            lines.map(str::to_owned).collect()
        };
        let packaged = include_str!("../../../../../xtask/packaging/conductor.service");
        assert_eq!(settings(packaged), settings(&text(&wanted()).map_err(|_| ()).unwrap()));
        assert_eq!(line(packaged, "ExecStart="), "ExecStart=/usr/bin/conductor run");
    }

    #[test]
    fn what_systemd_would_expand_is_quoted() {
        let odd = ServiceSettings {
            home: "/home/e v\"a/50%$HOME\\".into(),
            config: "/etc/c.toml".into(),
            features: Some("/opt/a b%$x".into()),
            ..wanted()
        };
        let text = text(&odd).map_err(|_| ()).unwrap();
        assert_eq!(
            line(&text, "ExecStart="),
            "ExecStart=\"/usr/bin/conductor\" \"--home\" \"/home/e v\\\"a/50%%$$HOME\\\\\" \"--config\" \"/etc/c.toml\" \"run\""
        );
        assert_eq!(line(&text, "Environment="), "Environment=\"CONDUCTOR_FEATURES=/opt/a b%%$x\"");
        let broken = ServiceSettings { home: "/home/a\nExecStart=/bin/evil".into(), ..wanted() };
        assert!(super::text(&broken).is_err());
    }
}
