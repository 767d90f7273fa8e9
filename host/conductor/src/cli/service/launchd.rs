//! macOS: a launchd agent, `~/Library/LaunchAgents/dev.conductor.host.plist`.

#![cfg_attr(not(target_os = "macos"), allow(dead_code, reason = "elsewhere only its tests use it"))]

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::super::{CommandResult, Failure};
use super::{OURS, ServiceSettings, is_ours, utf8, write};
use conductor_stdx::plain_file;
use conductor_terminal::{self as terminal, outln};

const LABEL: &str = "dev.conductor.host";

/// The property list.
///
/// # Errors
/// A path that none can name.
pub(super) fn text(wanted: &ServiceSettings) -> Result<String, Failure> {
    let string = |text: &str| format!("    <string>{}</string>\n", escaped(text));
    let mut arguments = string(utf8(&wanted.program)?);
    for argument in wanted.arguments() {
        arguments += &string(utf8(argument)?);
    }
    let features = match &wanted.features {
        Some(folder) => format!(
            "  <key>EnvironmentVariables</key>\n  <dict>\n    <key>CONDUCTOR_FEATURES</key>\n{}  </dict>\n",
            string(utf8(folder)?)
        ),
        None => String::new(),
    };
    let log = escaped(utf8(&wanted.home.join("host.log"))?);
    // The log goes to one file: launchd has no journal. Started again only where it failed, and not at once.
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {OURS}; `conductor service uninstall` takes it away -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n\
         \x20 <key>Label</key>\n  <string>{LABEL}</string>\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{arguments}  </array>\n\
         {features}\
         \x20 <key>RunAtLoad</key>\n  <true/>\n\
         \x20 <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
         \x20 <key>ThrottleInterval</key>\n  <integer>10</integer>\n\
         \x20 <key>AbandonProcessGroup</key>\n  <true/>\n\
         \x20 <key>ProcessType</key>\n  <string>Interactive</string>\n\
         \x20 <key>StandardErrorPath</key>\n  <string>{log}</string>\n\
         </dict>\n</plist>\n"
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn path() -> Result<PathBuf, Failure> {
    let home = std::env::home_dir()
        .ok_or_else(|| Failure::Wrong("conductor: there is no home folder to write the agent into".into()))?;
    Ok(home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")))
}

fn launchctl(arguments: &[&str]) -> Result<String, String> {
    match Command::new("launchctl").args(arguments).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("launchctl: {error}")),
    }
}

/// The session of this person.
#[cfg(unix)]
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn domain() -> String {
    String::new()
}

/// Writes the agent, and starts it. `running` is the process of the host that runs in this home.
pub(super) fn install(wanted: &ServiceSettings, running: Option<u64>) -> CommandResult {
    let path = path()?;
    let service = format!("{}/{LABEL}", domain());
    let is_loaded = launchctl(&["print", &service]).is_ok();
    if let (Some(pid), false) = (running, is_loaded) {
        return Err(Failure::Failed(anyhow::anyhow!(
            "a host is running in {} already, as process {pid}, and launchd did not start it; end it first",
            wanted.home.display()
        )));
    }
    write(&path, &text(wanted)?)?;
    outln!("wrote {}", path.display());
    if is_loaded {
        // The old one goes; that it was gone already is fine.
        let _ = launchctl(&["bootout", &service]);
    }
    let file = path.display().to_string();
    launchctl(&["bootstrap", &domain(), &file]).map_err(|why| {
        anyhow::anyhow!(
            "launchd did not do it: {why}\nThe agent is written; run\n  launchctl bootstrap {} '{file}'",
            domain()
        )
    })?;
    outln!("it runs, and starts when you log in; its log: {}", wanted.home.join("host.log").display());
    Ok(())
}

pub(super) fn status(wanted: &ServiceSettings, as_json: bool) -> CommandResult {
    let path = path()?;
    let there = plain_file::read_text(&path, plain_file::MAX_TEXT).ok();
    let current = there.as_ref().map(|there| text(wanted).is_ok_and(|text| text == *there));
    let active = launchctl(&["print", &format!("{}/{LABEL}", domain())]).is_ok();
    if as_json {
        let status = json!({ "unit": path, "installed": there.is_some(), "current": current, "active": active });
        terminal::json(&status)?;
        return Ok(());
    }
    match current {
        None => outln!("not installed; `conductor service install`"),
        Some(true) => outln!("installed: {}", path.display()),
        Some(false) => outln!("installed: {}; for another program, home or configuration", path.display()),
    }
    outln!("launchd: {}", if active { "loaded" } else { "not loaded" });
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
    let stopped = launchctl(&["bootout", &format!("{}/{LABEL}", domain())]);
    std::fs::remove_file(&path)?;
    outln!("removed {}", path.display());
    stopped.map(drop).map_err(|why| Failure::Failed(anyhow::anyhow!("launchd did not end it: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_runs_this_program_in_this_home() {
        let wanted = ServiceSettings {
            program: "/opt/conductor".into(),
            home: "/Users/e & <a>/.conductor".into(),
            config: "/Users/e & <a>/.conductor/config.toml".into(),
            features: Some("/opt/features".into()),
        };
        let text = text(&wanted).map_err(|_| ()).unwrap();
        let expected = "  <array>\n    <string>/opt/conductor</string>\n    <string>--home</string>\n    \
            <string>/Users/e &amp; &lt;a&gt;/.conductor</string>\n    <string>run</string>\n  </array>\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("<key>CONDUCTOR_FEATURES</key>\n    <string>/opt/features</string>"), "{text}");
        assert!(text.contains(OURS));
    }
}
