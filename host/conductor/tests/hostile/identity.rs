//! Impostors: packages that call themselves like another, ask for more than can be read, or lie about their bytes.
//! A name gives nothing, an id of a package from elsewhere gives nothing without its bytes, and what is granted is
//! what was shown.

use std::fs;
use std::path::{Path, PathBuf};

use conductor_config as config;
use conductor_host::host::{Host, Reloaded};
use conductor_install::installation::{self, Change, ChangeError, GrantWords, InstallPlan, InstallRequest};
use conductor_install::receipt::FeatureInstallReport;
use conductor_install::signature::{self, PublicKey, TrustedSigners};
use conductor_install::source::{Fetched, Origin};
use conductor_install::store::PackageStore;
use conductor_package::admission::{Admission, Provenance};
use conductor_package::capability::CapabilityRequest;
use conductor_package::{Contributions, Grants, Package, consent};
use conductor_registry::FeatureReport;

use crate::lab::{Folder, Lab, Tools, bytes_with, compiler, guest_with};
use crate::packages::{add_section, feature};

/// Asks for UDP to one lamp and for alerts, and can do without both.
const LAMP: &str = "[[capabilities]]\nkind = 'network'\npurpose = 'lamp'\nudp = ['10.0.0.1:9000']\nreason = 'Talk.'\n\
                    [[capabilities]]\nkind = 'alert'\nreason = 'Say that it is dark.'\n";

/// The grants that every impostor is after.
const GRANTS: &str = "udp = ['10.0.0.1:9000']\nalert = true\n";

/// A package that installs itself, with this id and these capabilities.
fn package(id: &str, version: &str, capabilities: &str) -> Vec<u8> {
    let mut bytes = wat::parse_str(feature("")).unwrap();
    let text = format!("id = '{id}'\nname = 'Lamp'\ncontract = '0.1'\nversion = '{version}'\n{capabilities}");
    add_section(&mut bytes, text.as_bytes());
    bytes
}

fn digest(bytes: &[u8]) -> String {
    Package::from_bytes(Path::new("x.wasm"), bytes.to_vec()).unwrap().info.digest
}

/// Why a descriptor with these capabilities is rejected.
fn rejected(capabilities: &str) -> String {
    let bytes = package("project:lamp", "1", capabilities);
    Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string()
}

/// A home with a folder of features that come with the host.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.path().join("bundled")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn bundled(&self) -> PathBuf {
        self.path().join("bundled")
    }

    /// Puts `builtin:NAME` into the folder of features that come with the host.
    fn with_bundled(self, name: &str) -> Self {
        let bytes = package(&format!("builtin:{name}"), "1", LAMP);
        fs::write(self.bundled().join(format!("{name}.wasm")), bytes).unwrap();
        self
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }

    fn config_file(&self) -> String {
        self.path().join("config.toml").display().to_string()
    }

    fn host(&self, text: &str) -> Host {
        let loaded = config::parse(text, &self.config_file()).unwrap();
        let builder = Host::builder().home(self.path()).features(self.bundled()).compiler(compiler());
        builder.start(&loaded).unwrap()
    }

    fn store(&self) -> PackageStore {
        PackageStore::open(self.path()).unwrap()
    }

    fn wanted(&self) -> InstallRequest {
        let trusted = TrustedSigners::read(self.path()).unwrap();
        InstallRequest { bundled: Some(self.bundled()), trusted, ..InstallRequest::default() }
    }

    fn plan(&self, bytes: Vec<u8>, wanted: InstallRequest, upgrade: bool) -> Result<InstallPlan, ChangeError> {
        let path = PathBuf::from("/downloads/lamp.wasm");
        let package = Package::from_bytes(&path, bytes).unwrap();
        InstallPlan::new(&self.store(), Fetched { package, origin: Origin::File { path } }, wanted, upgrade)
    }

    /// Installs or upgrades as the command does, granting these words.
    fn put(&self, bytes: Vec<u8>, upgrade: bool, words: &[&str]) -> Result<FeatureInstallReport, ChangeError> {
        let plan = self.plan(bytes, self.wanted(), upgrade)?;
        let words: Vec<GrantWords> = words.iter().map(|words| words.parse().unwrap()).collect();
        let given = GrantWords::select(&words, &plan.package.info.descriptor.capabilities)?;
        let grants = plan.grants(given)?;
        plan.commit(&self.store(), grants)
    }

    fn remove(&self, name: &str) {
        installation::change(&self.store(), name, Change::Remove, &TrustedSigners::default()).unwrap();
    }

    /// The hostile tools with this id, as they are installed in this home, on its data.
    fn tools(&self, lab: &Lab, name: &str) -> Tools {
        let installed = self.store().installed().unwrap();
        let release = &installed.features[name];
        let package = installation::describe(&self.store(), release).unwrap();
        let grants = Grants { store: 65_536, ..Grants::default() };
        let refused = Contributions::default();
        let admission = Admission { grants, refused, provenance: Provenance::Installed, owner: release.owner() };
        Tools::new(lab.sandbox.prepare(&package, admission).unwrap())
    }
}

#[track_caller]
fn report(host: &Host, name: &str) -> FeatureReport {
    host.status().features.into_iter().find(|feature| feature.name == name).unwrap()
}

fn id(feature: &FeatureReport) -> &str {
    &feature.package.as_ref().unwrap().id
}

fn has_lamp(feature: &FeatureReport) -> bool {
    let grants = &feature.grants;
    grants.alert || grants.udp.iter().any(|target| target.to_string() == "10.0.0.1:9000")
}

/// The one warning of the configuration in force that speaks of this.
#[track_caller]
fn warning(host: &Host, about: &str) -> String {
    let warnings = host.status().warnings;
    let found: Vec<&String> = warnings.iter().filter(|warning| warning.contains(about)).collect();
    assert_eq!(found.len(), 1, "{about}: {warnings:?}");
    found[0].clone()
}

// FEA-22: the file named by `path` has the bundled feature's name, and none of its grants.
#[test]
fn a_file_with_the_name_of_a_bundled_feature_gets_none_of_its_grants() {
    let home = Home::new().with_bundled("lamp");
    home.write("mine.wasm", &package("project:lamp", "1", LAMP));
    let host = home.host(&format!("[features.lamp.grants]\n{GRANTS}"));
    assert!(has_lamp(&report(&host, "lamp")), "the bundled one has them");

    let text = format!("[features.lamp]\npath = 'mine.wasm'\n[features.lamp.grants]\n{GRANTS}");
    let _: Reloaded = host.reload(&text, &home.config_file()).unwrap();
    let lamp = report(&host, "lamp");
    assert_eq!((id(&lamp), lamp.displaces.as_deref()), ("project:lamp", Some("builtin:lamp")));
    assert!(!has_lamp(&lamp), "{:?}", lamp.grants);
    assert_eq!(lamp.denied, ["network:lamp", "alert"]);
    let warned = warning(&host, "are for builtin:lamp");
    assert!(warned.contains("config.toml:3:") && warned.contains("conductor feature pin lamp"), "{warned}");
    assert!(warning(&host, "displaces builtin:lamp").contains("config.toml:2:"));
}

// FEA-11, FEA-22
#[test]
fn a_package_with_the_name_of_a_bundled_feature_is_installed_only_if_a_person_says_so() {
    let home = Home::new().with_bundled("lamp");
    for impostor in ["project:lamp", "plugin:conductor:lamp"] {
        let refused = home.put(package(impostor, "1", LAMP), false, &[]).unwrap_err();
        assert!(matches!(&refused, ChangeError::Displaces { name, .. } if name == "lamp"), "{refused}");
        assert!(refused.to_string().contains("--replace-bundled"), "{refused}");
    }
    assert!(home.store().installed().unwrap().features.is_empty());

    let wanted = InstallRequest { replace_bundled: true, ..home.wanted() };
    let plan = home.plan(package("project:lamp", "1", LAMP), wanted, false).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("displaces builtin:lamp")), "{:?}", plan.notes);
    let receipt = plan.commit(&home.store(), Vec::new()).unwrap();
    assert_eq!(receipt.displaces.as_deref(), Some("builtin:lamp"));

    let host = home.host(&format!("[features.lamp.grants]\n{GRANTS}"));
    let lamp = report(&host, "lamp");
    assert_eq!((id(&lamp), lamp.displaces.as_deref()), ("project:lamp", Some("builtin:lamp")));
    assert!(!has_lamp(&lamp), "it inherits nothing: {:?}", lamp.grants);
    drop(host);
    // And when it goes, what was granted to the bundled feature is the bundled feature's.
    home.remove("lamp");
    let host = home.host(&format!("[features.lamp.grants]\n{GRANTS}"));
    let lamp = report(&host, "lamp");
    assert!(id(&lamp) == "builtin:lamp" && has_lamp(&lamp));
}

/// A later version of the host may come with a feature whose name is taken: it does not displace the installed one.
#[test]
fn a_package_that_was_there_first_does_not_displace_a_new_bundled_feature() {
    let home = Home::new();
    home.put(package("project:lamp", "1", LAMP), false, &["alert"]).unwrap();
    let home = home.with_bundled("lamp");
    let host = home.host("");
    assert_eq!(id(&report(&host, "lamp")), "builtin:lamp");
    let refused = home.put(package("project:lamp", "2", LAMP), true, &[]).unwrap_err();
    assert!(matches!(refused, ChangeError::Displaces { .. }), "{refused}");
}

#[test]
fn what_was_granted_to_a_feature_that_is_switched_off_is_not_for_its_name() {
    let home = Home::new().with_bundled("lamp");
    home.write("evil.wasm", &package("project:lamp", "1", LAMP));
    let host = home.host(&format!("[features.lamp]\nenabled = false\n[features.lamp.grants]\n{GRANTS}"));
    assert!(host.status().features.is_empty());
    // What a careless edit, or a plan, would do.
    let text = format!("[features.lamp]\nenabled = true\npath = 'evil.wasm'\n[features.lamp.grants]\n{GRANTS}");
    host.reload(&text, &home.config_file()).unwrap();
    assert!(!has_lamp(&report(&host, "lamp")));
}

#[test]
fn grants_that_a_removed_feature_has_left_are_for_nobody_else() {
    let home = Home::new();
    let first = package("project:lamp", "1", LAMP);
    let pinned = format!("[features.lamp]\nid = 'project:lamp'\ndigest = 'sha256:{}'\n", digest(&first));
    let text = format!("{pinned}[features.lamp.grants]\n{GRANTS}");
    home.put(first, false, &[]).unwrap();
    let host = home.host(&text);
    assert!(has_lamp(&report(&host, "lamp")), "pinned to just this package");
    drop(host);

    home.remove("lamp");
    let host = home.host(&text);
    let warned = warning(&host, "there is no feature \"lamp\"");
    assert!(warned.contains("config.toml:1:") && warned.contains("has no effect"), "{warned}");
    drop(host);

    for (impostor, why) in [
        (package("project:lamp", "6.6.6", LAMP), "is sha256:"),
        (package("plugin:lamp:lamp", "1", LAMP), "these grants are for project:lamp"),
    ] {
        home.put(impostor, false, &[]).unwrap();
        let host = home.host(&text);
        assert!(!has_lamp(&report(&host, "lamp")));
        warning(&host, why);
        drop(host);
        home.remove("lamp");
    }
}

#[test]
fn the_same_name_under_another_source_is_another_feature() {
    let home = Home::new();
    let bytes = package("plugin:ann:lamp", "1", LAMP);
    let right = format!("digest = 'sha256:{}'\n", digest(&bytes));
    home.write("x.wasm", &bytes);
    for (source, gets) in [("plugin:ann:lamp", true), ("plugin:bob:lamp", false), ("project:lamp", false)] {
        let text =
            format!("[features.lamp]\npath = 'x.wasm'\nid = '{source}'\n{right}[features.lamp.grants]\n{GRANTS}");
        assert_eq!(has_lamp(&report(&home.host(&text), "lamp")), gets, "{source}");
    }
    let named = "[features.lamp]\npath = 'x.wasm'\nid = 'builtin:lamp'\n[features.lamp.grants]\nalert = true\n";
    assert!(!has_lamp(&report(&home.host(named), "lamp")));
}

#[test]
fn ids_that_look_like_another_or_like_an_option_are_rejected() {
    for odd in [
        "project:--json",
        "project:-",
        "project:-x",
        "plugin:-:lamp",
        "project:l\u{430}mp",
        "project:lamp\u{200b}",
        "project:LAMP",
        "project:lamp ",
        "builtin:lamp:lamp",
        "project:builtin:lamp",
    ] {
        let bytes = package(odd, "1", "");
        let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string();
        assert!(error.contains("no feature id") || error.contains("can't be seen"), "{odd}: {error}");
    }
    // One that a person could confuse is another feature all the same.
    let home = Home::new().with_bundled("osc-output");
    home.write("x.wasm", &package("project:osc-0utput", "1", LAMP));
    let text = format!("[features.osc-0utput]\npath = 'x.wasm'\n[features.osc-output.grants]\n{GRANTS}");
    assert!(!has_lamp(&report(&home.host(&text), "osc-0utput")));
}

#[test]
fn a_file_that_is_swapped_under_its_path_gets_nothing() {
    let home = Home::new();
    let bytes = package("project:lamp", "1", LAMP);
    let pins = format!("id = 'project:lamp'\ndigest = 'sha256:{}'\n", digest(&bytes));
    let text = format!("[features.lamp]\npath = 'x.wasm'\n{pins}[features.lamp.grants]\n{GRANTS}");
    home.write("x.wasm", &bytes);
    let host = home.host(&text);
    assert!(has_lamp(&report(&host, "lamp")));
    home.write("x.wasm", &package("project:lamp", "2", LAMP));
    host.reload(&format!("{text}# again\n"), &home.config_file()).unwrap();
    let lamp = report(&host, "lamp");
    assert_eq!(lamp.package.as_ref().unwrap().version, "2");
    assert!(!has_lamp(&lamp), "{:?}", lamp.grants);
    assert!(warning(&host, "gets none of them").contains("config.toml:4:"));
}

#[test]
fn grants_without_a_digest_are_for_no_file() {
    let home = Home::new();
    home.write("x.wasm", &package("project:lamp", "1", LAMP));
    let text = format!("[features.lamp]\npath = 'x.wasm'\nid = 'project:lamp'\n[features.lamp.grants]\n{GRANTS}");
    let host = home.host(&text);
    assert!(!has_lamp(&report(&host, "lamp")));
    assert!(warning(&host, "without saying for which package").contains("conductor feature pin lamp"));
}

/// What a package requires and does not get keeps it out, with what to do in its own place.
#[test]
fn what_is_required_is_refused_with_advice_for_where_the_package_came_from() {
    let capabilities = LAMP.replace("'Talk.'", "'Talk.'\nrequired = true");
    let home = Home::new();
    home.write("x.wasm", &package("project:lamp", "1", &capabilities));
    let refused = report(&home.host("[features.lamp]\npath = 'x.wasm'\n"), "lamp").refused.unwrap();
    let advice =
        "write `udp = [\"10.0.0.1:9000\"]` under [features.lamp.grants], then run `conductor feature pin lamp`";
    assert!(refused.contains(advice), "{refused}");

    let error = home.put(package("project:lamp", "1", &capabilities), false, &[]).unwrap_err().to_string();
    assert!(error.ends_with("--grant network:lamp=10.0.0.1:9000"), "{error}");
    home.put(package("project:lamp", "1", &capabilities), false, &["network:lamp"]).unwrap();
    let store = home.store();
    installation::change(&store, "lamp", Change::Revoke(Vec::new()), &TrustedSigners::default()).unwrap();
    let refused = report(&home.host(""), "lamp").refused.unwrap();
    assert!(refused.contains("run `conductor feature grant lamp network:lamp=10.0.0.1:9000`"), "{refused}");
    assert!(refused.starts_with("/downloads/lamp.wasm:"), "the file that the person named: {refused}");
}

#[test]
fn a_grant_for_every_host_is_never_advised() {
    let capabilities =
        "[[capabilities]]\nkind = 'network'\npurpose = 'text'\nudp = ['*:*']\nrequired = true\nreason = 'X.'\n";
    let error = Home::new().put(package("project:lamp", "1", capabilities), false, &[]).unwrap_err().to_string();
    assert!(error.ends_with("--grant network:text=HOST:PORT") && !error.contains('*'), "{error}");
}

/// Another package of the same id, and the same name under another source, get no feature's data.
#[test]
fn data_belongs_to_an_id_and_to_whose_packages_it_is() {
    let (lab, home) = (Lab::new(), Home::new());
    let notes = |id: &str, version: &str| {
        let (id, version) = (format!("id = \"{id}\""), format!("version = \"{version}\""));
        bytes_with("tests/hostile-tools", &[("id = \"project:hostile-tools\"", &id), ("version = \"1.0.0\"", &version)])
    };
    let keep = |tools: &Tools| tools.look(r#"{"how": "store-key", "key": "diary"}"#).map(drop);
    let kept = |tools: &Tools| tools.look(r#"{"how": "store-get", "key": "diary"}"#).unwrap() != "null";
    let (ann, bob) = (notes("plugin:a:notes", "1.0.0"), notes("plugin:b:notes", "1.0.0"));

    home.put(ann.clone(), false, &[]).unwrap();
    keep(&home.tools(&lab, "notes")).unwrap();
    assert!(kept(&home.tools(&lab, "notes")));
    // An upgrade that a person asked for is the same feature's.
    home.put(notes("plugin:a:notes", "2.0.0"), true, &[]).unwrap();
    assert!(kept(&home.tools(&lab, "notes")));
    home.remove("notes");

    for impostor in [bob, notes("project:notes", "1.0.0"), notes("plugin:a:notes", "6.6.6")] {
        home.put(impostor, false, &[]).unwrap();
        assert!(!kept(&home.tools(&lab, "notes")), "another package reads the data");
        home.remove("notes");
    }
    // The very package that kept it finds it again.
    home.put(ann, false, &[]).unwrap();
    assert!(kept(&home.tools(&lab, "notes")));
}

/// What a signer that a person trusts has kept goes on to what the same key signs, and to nothing else.
#[test]
fn data_of_a_signed_package_is_its_signers() {
    let home = Home::new();
    let (ann, mallory) = (signature::new_key().unwrap(), signature::new_key().unwrap());
    TrustedSigners::add(home.path(), "ann", PublicKey::from(&ann)).unwrap();
    let key = |bytes: Vec<u8>, upgrade: bool| home.plan(bytes, home.wanted(), upgrade).unwrap().data();
    let version = |version: &str| package("project:lamp", version, LAMP);
    let by_ann = |text: &str| signature::sign(&version(text), &ann).unwrap();
    let first = key(by_ann("1"), false);
    assert_eq!(first, key(by_ann("2"), false), "a later version, installed anew");
    assert_ne!(first, key(signature::sign(&version("2"), &mallory).unwrap(), false), "that key is not trusted");
    assert_ne!(first, key(version("2"), false));
    // Nor does an upgrade that she did not sign take over what is hers.
    home.put(by_ann("1"), false, &["alert"]).unwrap();
    let plan = home.plan(version("2"), home.wanted(), true).unwrap();
    assert_ne!(plan.data(), first);
    assert!(plan.kept.is_empty() && plan.notes.iter().any(|note| note.contains("no data")), "{:?}", plan.notes);
}

#[test]
fn a_request_with_thirty_targets_and_a_wildcard_last_is_not_granted_as_a_whole() {
    let targets: Vec<String> = (1..30).map(|n| format!("'10.0.0.{n}:9000'")).collect();
    let capabilities = format!(
        "[[capabilities]]\nkind = 'network'\npurpose = 'text'\nudp = [{}, '*:*']\nhttp = ['evil.example']\nreason = 'X.'\n",
        targets.join(", ")
    );
    let home = Home::new();
    for words in ["all", "network", "network:text"] {
        let error = home.put(package("project:lamp", "1", &capabilities), false, &[words]).unwrap_err();
        assert!(error.to_string().contains("asks for 31 targets"), "{error}");
    }
    assert!(home.store().installed().unwrap().features.is_empty());
    let one = home.put(package("project:lamp", "1", &capabilities), false, &["network:text=10.0.0.3:9000"]).unwrap();
    assert_eq!(one.granted[0].capability.scope(), ["10.0.0.3:9000"]);
    // Every one of them is shown, and the wildcard before all others.
    let request: &CapabilityRequest = &one.denied[0];
    let shown = consent::lines(&request.capability);
    assert_eq!((shown.len(), shown[0].as_str()), (30, "UDP to ANY host, ANY port (*:*)"));
    assert!(shown.iter().any(|line| line == "HTTP to evil.example"));
}

#[test]
fn targets_and_reasons_that_would_not_be_seen_for_what_they_are_are_rejected() {
    let bindings = |text: &str| {
        rejected(&format!("[[capabilities]]\nkind = 'midi-out'\nbindings = [\"pads\", {text}]\nreason = 'Play.'\n"))
    };
    for odd in [r#""pads\n  alert (it can do without): no""#, r#""pads\tx""#, r#""pads\r""#, r#""\u001b[2Kpads""#] {
        let error = bindings(odd);
        assert!(error.contains("a target is one line") || error.contains("can't be seen"), "{odd}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
    for odd in [r#""\u202epads""#, r#""pa\u200bds""#, r#""pads\u2066""#, r#""""#] {
        bindings(odd);
    }
    let purpose = |text: &str| {
        rejected(&format!("[[capabilities]]\nkind = 'network'\npurpose = '{text}'\nudp = ['h:1']\nreason = 'X.'\n"))
    };
    for odd in ["", "-x", "a b", "osc=1.2.3.4:5", "osc, alert", "\u{43e}sc"] {
        assert!(purpose(odd).contains("needs a purpose or id"), "{odd}");
    }
    let reason = "[[capabilities]]\nkind = 'alert'\nreason = \"To\\n  network (granted): no\"\n";
    assert!(rejected(reason).contains("must be one line"));
}

#[test]
fn requests_too_large_to_be_read_are_rejected() {
    let midi = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("'b{n}'")).collect();
        format!("[[capabilities]]\nkind = 'midi-out'\nbindings = [{}]\nreason = 'Play.'\n", names.join(", "))
    };
    assert!(rejected(&midi(65)).contains("names 65 targets; at most 64"));
    assert!(Package::from_bytes(Path::new("x.wasm"), package("project:lamp", "1", &midi(64))).is_ok());
    let long = format!("[[capabilities]]\nkind = 'midi-out'\nbindings = ['{}']\nreason = 'X.'\n", "b".repeat(261));
    assert!(rejected(&long).contains("1 to 260 bytes"));
    let many: String =
        (0..33).map(|n| format!("[[capabilities]]\nkind = 'files'\npurpose = 'p{n}'\nreason = 'X.'\n")).collect();
    assert!(rejected(&many).contains("33 capabilities are requested; at most 32"));
    let reason = format!("[[capabilities]]\nkind = 'alert'\nreason = '{}'\n", "y".repeat(501));
    assert!(rejected(&reason).contains("at most 500 bytes"));
}

// FEA-11
#[test]
fn an_upgrade_that_asks_for_more_gets_what_was_granted_before() {
    let home = Home::new();
    home.put(package("project:lamp", "1", LAMP), false, &["network:lamp"]).unwrap();
    let wider = LAMP.replace("'10.0.0.1:9000'", "'10.0.0.1:9000', '10.0.0.2:*', '*:*'");
    let plan = home.plan(package("project:lamp", "2", &wider), home.wanted(), true).unwrap();
    assert_eq!(plan.kept[0].capability.scope(), ["10.0.0.1:9000"]);
    assert_eq!(plan.asked[0].capability.scope(), ["10.0.0.2:*", "*:*"]);
    assert_eq!(consent::lines(&plan.asked[0].capability)[0], "UDP to ANY host, ANY port (*:*)");
    let installed = home.put(package("project:lamp", "2", &wider), true, &[]).unwrap();
    assert_eq!(installed.granted.iter().flat_map(|it| it.capability.scope()).collect::<Vec<_>>(), ["10.0.0.1:9000"]);
    // Grants in the file were for the bytes before.
    let text = format!(
        "[features.lamp]\nid = 'project:lamp'\ndigest = 'sha256:{}'\ngrants = {{ alert = true }}\n",
        digest(&package("project:lamp", "1", LAMP))
    );
    assert!(!report(&home.host(&text), "lamp").grants.alert);
}

/// The order of names decides nothing: what comes with the host keeps its tools.
#[test]
fn a_package_takes_no_tool_of_a_bundled_feature() {
    let home = Home::new();
    let bundled = bytes_with("tests/hostile-tools", &[("\"project:hostile-tools\"", "\"builtin:zzz-tools\"")]);
    fs::write(home.bundled().join("zzz-tools.wasm"), bundled).unwrap();
    let impostor = bytes_with("tests/hostile-tools", &[("\"project:hostile-tools\"", "\"project:aaa-tools\"")]);
    home.write("x.wasm", &impostor);
    let host = home.host("[features.aaa-tools]\npath = 'x.wasm'\n");
    assert_eq!(report(&host, "zzz-tools").refused, None);
    let refused = report(&host, "aaa-tools").refused.unwrap();
    assert!(refused.contains("its tool look belongs to builtin:zzz-tools already"), "{refused}");
    drop(host);

    // Nor one that had it while the bundled feature was switched off.
    let off = "[features.zzz-tools]\nenabled = false\n[features.aaa-tools]\npath = 'x.wasm'\n";
    let host = home.host(off);
    assert_eq!(report(&host, "aaa-tools").refused, None);
    host.reload("[features.aaa-tools]\npath = 'x.wasm'\n", &home.config_file()).unwrap();
    assert_eq!(report(&host, "zzz-tools").refused, None);
    assert!(report(&host, "aaa-tools").refused.is_some());
}

#[test]
fn a_misspelt_section_of_grants_is_a_warning_with_its_place() {
    let host = Home::new().with_bundled("lamp").host(&format!("[features.lmap.grants]\n{GRANTS}"));
    let warned = warning(&host, "there is no feature \"lmap\"");
    assert!(warned.contains("config.toml:1:") && warned.contains("has no effect"), "{warned}");
}

/// An id in a descriptor says nothing of the bytes: the middle of a plugin's id is no digest of anything.
#[test]
fn a_descriptor_that_names_another_packages_digest_has_nothing_of_it() {
    let home = Home::new();
    let honest = package("project:lamp", "1", LAMP);
    let liar = package(&format!("plugin:{}:lamp", digest(&honest)), "1", LAMP);
    home.write("x.wasm", &liar);
    let text = format!(
        "[features.lamp]\npath = 'x.wasm'\nid = 'project:lamp'\ndigest = 'sha256:{}'\n[features.lamp.grants]\n{GRANTS}",
        digest(&honest)
    );
    assert!(!has_lamp(&report(&home.host(&text), "lamp")));
}

#[test]
fn guests_are_told_where_their_grants_are_written() {
    let lab = Lab::new();
    let package = guest_with("tests/hostile-tools", &[]);
    for (provenance, advice) in [
        (Provenance::Installed, "conductor feature grant hostile-tools"),
        (Provenance::File, "conductor feature pin hostile-tools"),
    ] {
        let refused = Contributions::default();
        let admission = Admission { grants: lab.grants(), refused, provenance, owner: None };
        let tools = Tools::new(lab.sandbox.prepare(&package, admission).unwrap());
        let refused = tools.refused(r#"{"how": "fetch", "url": "https://elsewhere.example/"}"#);
        assert!(refused.contains(advice), "{refused}");
    }
}
