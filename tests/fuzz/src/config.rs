//! Configuration text: it is read or refused, and every place in a refusal can be shown.

use conductor_host::config::{Severity, parse};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text, "config.toml") {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.count(Severity::Error), 0);
            assert_eq!(loaded.source.text(), text);
        }
        Err(wrong) => {
            assert!(wrong.count(Severity::Error) > 0);
            for diagnostic in wrong.iter() {
                assert!(text.get(diagnostic.place.clone()).is_some(), "{:?}", diagnostic.place);
            }
            assert!(wrong.render(true).contains(" in config.toml"));
            assert!(serde_json::to_string(&wrong).is_ok());
        }
    }
}
