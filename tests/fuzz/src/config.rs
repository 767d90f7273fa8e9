//! Configuration text: it is read or refused, and every place in a refusal can be shown; read in pieces it is the same.

use conductor_config::include::Included;
use conductor_config::reader::Reader;
use conductor_config::{Severity, parse};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let whole = parse(&text, "config.toml");
    let mut reader = Reader::default();
    // The second time, its mappings are known.
    for _ in 0..2 {
        match (reader.parse(&text, "config.toml", &Included::default()), &whole) {
            (Ok(pieces), Ok(whole)) => {
                assert_eq!(pieces.config, whole.config);
                assert_eq!(pieces.warnings.to_string(), whole.warnings.to_string());
            }
            (Err(pieces), Err(whole)) => assert_eq!(pieces.to_string(), whole.to_string()),
            (pieces, _) => panic!("read in pieces, it is {}", if pieces.is_ok() { "taken" } else { "refused" }),
        }
    }
    match whole {
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
