//! The configuration, and what it asks for: bindings and features.

use std::io;
use std::path::PathBuf;

use super::super::{Failure, Paths, package};
use super::finding::{Finding, Level};
use conductor_config::{self as config, Loaded};
use conductor_host::host;
use conductor_host::host::status::Status;
use conductor_install::store::PackageStore;
use conductor_ports::status::{BindingStatus, Health, SideState};
use conductor_registry::FeatureReport;
use conductor_stdx::plain_file;
use conductor_stdx::plural::plural;

const ABOUT: &str = "configuration";

/// How the configuration is.
#[derive(Debug)]
pub(super) struct ConfigurationCheck {
    file: PathBuf,
    /// What a host would make of it.
    outcome: Outcome,
    /// What the running host said of it, where it was refused there.
    refused: Option<String>,
    /// As far as it could be read.
    pub(super) loaded: Option<Loaded>,
    /// Its bindings, as listings show them.
    bindings: Vec<BindingStatus>,
    /// The features, as listings show them; or why there are none.
    features: Result<Vec<FeatureReport>, String>,
    /// Whether the features that come with the host were found.
    bundled: bool,
    /// Features that a person has switched off.
    disabled: Vec<String>,
    /// Features that are installed and not loaded, because one that comes with the host has the name.
    kept_out: Vec<String>,
}

/// What a host would make of a configuration.
#[derive(Debug)]
enum Outcome {
    Unreadable(io::Error),
    /// All mistakes, as `conductor config validate` shows them.
    Wrong(String),
    Fine {
        rules: usize,
        modes: usize,
        warnings: String,
    },
}

impl ConfigurationCheck {
    pub(super) fn gather(places: &Paths, running: Option<&Status>) -> Self {
        // Without a home nothing is cached; looking must not make one.
        let home = places.home.is_dir().then_some(places.home.as_path());
        let features_folder = places.features.as_deref();
        let loaded = plain_file::read_text(&places.config, plain_file::MAX_TEXT)
            .map(|text| config::read(&text, &places.config.display().to_string()));
        let (outcome, loaded) = match loaded {
            Err(error) => (Outcome::Unreadable(error), None),
            Ok(Err(mistakes)) => (Outcome::Wrong(mistakes.render(false)), None),
            Ok(Ok(loaded)) => {
                let outcome = match host::check(&loaded, home, features_folder) {
                    Ok(compiled) => Outcome::Fine {
                        rules: compiled.rules.rules().len(),
                        modes: compiled.rules.modes().len(),
                        warnings: compiled.warnings.render(false),
                    },
                    Err(error) => Outcome::Wrong(match super::super::started(error) {
                        Failure::Wrong(message) | Failure::Unknown(message) | Failure::Interrupted(message) => message,
                        Failure::Config(mistakes) => mistakes.render(false),
                        Failure::Failed(error) => super::super::with_causes(&error),
                    }),
                };
                (outcome, Some(loaded))
            }
        };
        let (bindings, features) = match running {
            Some(status) => (status.ports.bindings.clone(), Ok(status.features.clone())),
            None => {
                let empty = || config::parse("", "nothing").ok();
                let features = match loaded.clone().or_else(empty) {
                    Some(loaded) => host::installed(&loaded, home, features_folder).map_err(|error| error.to_string()),
                    None => Ok(Vec::new()),
                };
                (super::super::ports::look(places).bindings, features)
            }
        };
        let installed = PackageStore::at(&places.home).installed();
        let features = features.and_then(|features| match &installed {
            Ok(_) => Ok(features),
            Err(error) => Err(error.to_string()),
        });
        let installed = installed.map(|installed| installed.features).unwrap_or_default();
        let kept_out = installed.iter().filter(|(name, feature)| package::is_kept_out(places, name, feature));
        let kept_out =
            kept_out.map(|(name, feature)| format!("{name}: {}", package::kept_out(name, feature))).collect();
        let disabled = installed.into_iter().filter(|(_, feature)| !feature.enabled).map(|(name, _)| name).collect();
        let refused = running.and_then(|status| status.refused.clone());
        let bundled = places.features.as_ref().is_some_and(|folder| folder.is_dir());
        Self { file: places.config.clone(), outcome, refused, loaded, bindings, features, bundled, disabled, kept_out }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = vec![self.file()];
        if let Outcome::Fine { warnings, .. } = &self.outcome
            && !warnings.is_empty()
        {
            findings.push(Finding::warning(ABOUT, "parts of it are doubtful", warnings.trim_end()));
        }
        if let Some(refused) = &self.refused {
            findings.push(Finding::trouble(
                ABOUT,
                "the running host has refused the file as it was last, and goes on with the rules before",
                refused.trim_end(),
            ));
        }
        findings.extend(bindings(&self.bindings));
        findings.extend(self.features());
        findings
    }

    fn file(&self) -> Finding {
        let file = self.file.display();
        match &self.outcome {
            Outcome::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => Finding::warning(
                ABOUT,
                format!("there is no {file}, so nothing is mapped"),
                "`conductor init` writes one (`conductor config schema` says what may be in it), or name one with \
                 --config; `conductor demo` shows one at work",
            ),
            Outcome::Unreadable(error) => {
                Finding::trouble(ABOUT, format!("{file} can't be read: {error}"), format!("chmod u+r '{file}'"))
            }
            Outcome::Wrong(mistakes) => {
                Finding::trouble(ABOUT, format!("{file} has mistakes; `conductor run` refuses it"), mistakes.trim_end())
            }
            Outcome::Fine { rules, modes, .. } => {
                Finding::ok(ABOUT, format!("{file} is valid: {}, {}", plural(*rules, "rule"), plural(*modes, "mode")))
            }
        }
    }

    fn features(&self) -> Vec<Finding> {
        const ABOUT: &str = "features";
        let mut findings = Vec::new();
        if !self.bundled {
            findings.push(Finding::trouble(
                ABOUT,
                "the features that come with the host are not there",
                "put their folder `features` beside the program, or name it in CONDUCTOR_FEATURES; from the sources: \
                 `cargo xtask features`",
            ));
        }
        let features = match &self.features {
            Ok(features) => features,
            Err(why) => {
                let mend = "move that file away and install the features anew; receipts in the same folder say which";
                findings.push(Finding::trouble(
                    ABOUT,
                    format!("the list of installed features can't be read: {why}"),
                    mend,
                ));
                return findings;
            }
        };
        let mut working = 0;
        for feature in features {
            let name = &feature.name;
            if let Some(why) = &feature.refused {
                let mend = format!("`conductor feature info {name}` shows what it asks for and where it came from");
                findings.push(Finding::trouble(ABOUT, format!("{name} is not used: {why}"), mend));
            } else if let Some(left) = feature.quarantine {
                let what = format!("{name} kept trapping, and is quarantined for {left} s more");
                let mend = format!("`conductor feature enable {name}` tries it again now; tell its author");
                findings.push(Finding::warning(ABOUT, what, mend));
            } else {
                working += 1;
            }
            if let Some(displaced) = &feature.displaces {
                let what = format!("{name} displaces {displaced}, which comes with Conductor and is not loaded");
                let mend = format!("if that is not meant: `conductor feature remove {name}`, or remove its `path`");
                findings.push(Finding::warning(ABOUT, what, mend));
            }
        }
        for text in &self.kept_out {
            findings.push(Finding::warning(ABOUT, text.clone(), "one name is for one feature"));
        }
        for name in &self.disabled {
            findings.push(Finding::ok(ABOUT, format!("{name} is switched off; `conductor feature enable {name}`")));
        }
        if working > 0 && findings.iter().all(|finding| finding.level == Level::Ok) {
            findings.push(Finding::ok(ABOUT, format!("{working} are installed, none is refused or quarantined")));
        }
        findings
    }
}

/// The findings about bindings.
fn bindings(bindings: &[BindingStatus]) -> Vec<Finding> {
    const ABOUT: &str = "bindings";
    let mut findings = Vec::new();
    let mut fine = 0;
    for BindingStatus { alias, health, input, output, muted, help, .. } in bindings {
        let help = help.as_deref().unwrap_or("`conductor bindings` shows more");
        let is_ambiguous = input.iter().chain(output).any(|side| side.state == SideState::Ambiguous);
        match health {
            Health::Amber | Health::Red if is_ambiguous => {
                findings.push(Finding::warning(ABOUT, format!("{alias} is ambiguous: nothing of it is heard"), help));
            }
            Health::Red => findings.push(Finding::warning(ABOUT, format!("{alias} has no port"), help)),
            Health::Amber => findings.push(Finding::warning(ABOUT, format!("{alias} is there in part"), help)),
            Health::Green | Health::Off if *muted => findings.push(Finding::warning(
                ABOUT,
                format!("{alias} is muted until the host ends"),
                format!("`conductor bindings unmute {alias}`"),
            )),
            Health::Green | Health::Off => fine += 1,
        }
    }
    if fine > 0 {
        findings.push(Finding::ok(ABOUT, format!("{fine} of {} are healthy", bindings.len())));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_ports::Protocol;
    use conductor_ports::status::SideStatus;

    fn feature(name: &str) -> FeatureReport {
        FeatureReport { name: name.to_owned(), ..FeatureReport::default() }
    }

    fn binding(alias: &str, health: Health, input: SideState, help: Option<&str>) -> BindingStatus {
        let input = Some(SideStatus { state: input, ports: Vec::new(), matched_by: None, problem: None });
        let (alias, help) = (alias.to_owned(), help.map(str::to_owned));
        BindingStatus { alias, protocol: Protocol::Midi, health, input, output: None, muted: false, help }
    }

    fn facts() -> ConfigurationCheck {
        ConfigurationCheck {
            file: "/h/config.toml".into(),
            outcome: Outcome::Fine { rules: 3, modes: 1, warnings: String::new() },
            refused: None,
            loaded: None,
            bindings: Vec::new(),
            features: Ok(vec![feature("osc-output")]),
            bundled: true,
            disabled: Vec::new(),
            kept_out: Vec::new(),
        }
    }

    fn levels(facts: &ConfigurationCheck) -> Vec<Level> {
        facts.judge().into_iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_configuration_is_read_as_a_host_would() {
        assert_eq!(levels(&facts()), [Level::Ok, Level::Ok]);
        let outcome = Outcome::Unreadable(io::ErrorKind::NotFound.into());
        assert_eq!(
            levels(&ConfigurationCheck { outcome, ..facts() }),
            [Level::Warning, Level::Ok],
            "a home may be new"
        );
        for outcome in
            [Outcome::Unreadable(io::ErrorKind::PermissionDenied.into()), Outcome::Wrong("error: c.toml:1:1".into())]
        {
            assert_eq!(levels(&ConfigurationCheck { outcome, ..facts() }), [Level::Trouble, Level::Ok]);
        }
        let outcome = Outcome::Fine { rules: 0, modes: 0, warnings: "warning: c.toml:1:1".into() };
        assert_eq!(levels(&ConfigurationCheck { outcome, ..facts() }), [Level::Ok, Level::Warning, Level::Ok]);
        let refused = Some("error".to_owned());
        assert_eq!(levels(&ConfigurationCheck { refused, ..facts() }), [Level::Ok, Level::Trouble, Level::Ok]);
    }

    #[test]
    fn a_binding_that_is_not_there_is_told_with_its_help() {
        let all = [
            binding("pads", Health::Green, SideState::Bound, None),
            binding("keys", Health::Red, SideState::Unbound, Some("plug it in")),
            binding("twin", Health::Amber, SideState::Ambiguous, Some("pin it")),
            BindingStatus { muted: true, ..binding("knobs", Health::Green, SideState::Bound, None) },
        ];
        let said = bindings(&all);
        let whats: Vec<&str> = said.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            whats,
            [
                "keys has no port",
                "twin is ambiguous: nothing of it is heard",
                "knobs is muted until the host ends",
                "1 of 4 are healthy"
            ]
        );
        assert_eq!(said[0].mend.as_deref(), Some("plug it in"));
    }

    #[test]
    fn features_that_do_not_work_are_told() {
        let features = Ok(vec![
            FeatureReport { refused: Some("no grant".into()), ..feature("a") },
            FeatureReport { quarantine: Some(8), ..feature("b") },
            FeatureReport { displaces: Some("builtin:d".into()), ..feature("d") },
        ]);
        let said = ConfigurationCheck { features, disabled: vec!["c".into()], ..facts() };
        assert_eq!(levels(&said), [Level::Ok, Level::Trouble, Level::Warning, Level::Warning, Level::Ok]);
        assert_eq!(levels(&ConfigurationCheck { bundled: false, ..facts() }), [Level::Ok, Level::Trouble]);
        assert_eq!(
            levels(&ConfigurationCheck { features: Err("layout 9".into()), ..facts() }),
            [Level::Ok, Level::Trouble]
        );
    }
}
