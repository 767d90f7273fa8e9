//! The syntax of grants on the command line, `--grant` and `--revoke`.

use conductor_package::capability::CapabilityRequest;
use conductor_package::consent;

/// What is wrong with the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GrantWordsError(String);

/// Capabilities as a person writes them: `all`, `alert`, `network`, `network:osc`,
/// `network=10.0.0.5:9000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantWords {
    /// Everything that is asked for.
    All,
    /// A kind, perhaps with a purpose; and the one thing of its scope that is meant, where not all are.
    One {
        /// `network`, `network:osc`.
        key: String,
        /// `10.0.0.5:9000`.
        word: Option<String>,
    },
}

impl std::str::FromStr for GrantWords {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('=') {
            None if text == "all" => Self::All,
            None => Self::One { key: text.to_owned(), word: None },
            Some((key, word)) => Self::One { key: key.to_owned(), word: Some(word.to_owned()) },
        })
    }
}

impl std::fmt::Display for GrantWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::One { key, word: None } => f.write_str(key),
            Self::One { key, word: Some(word) } => write!(f, "{key}={word}"),
        }
    }
}

impl GrantWords {
    pub(super) fn means(&self, request: &CapabilityRequest) -> bool {
        match self {
            Self::All => true,
            Self::One { key, .. } => key == request.kind().as_str() || *key == request.key(),
        }
    }

    /// What of `asked` these words grant.
    ///
    /// # Errors
    /// What they name is not asked for, or not to be granted so.
    pub fn select(words: &[Self], asked: &[CapabilityRequest]) -> Result<Vec<CapabilityRequest>, GrantWordsError> {
        let mut granted = Vec::new();
        for one in words {
            let meant: Vec<&CapabilityRequest> = asked.iter().filter(|request| one.means(request)).collect();
            let Self::One { key, word } = one else {
                let meant = meant.into_iter().filter(|request| !request.capability.must_be_named());
                for request in meant {
                    granted.push(whole(request)?);
                }
                continue;
            };
            if meant.is_empty() {
                let keys: Vec<String> = asked.iter().map(CapabilityRequest::key).collect();
                let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
                return Err(GrantWordsError(format!("it does not ask for {key}; it asks for {keys}")));
            }
            if let (None, Some(request)) = (word, meant.iter().find(|request| request.capability.must_be_named())) {
                let example = consent::words(&request.capability).join(" ");
                return Err(GrantWordsError(format!("{key} needs more; write {example}")));
            }
            match word {
                None => {
                    for request in meant {
                        granted.push(whole(request)?);
                    }
                }
                Some(word) => {
                    let mut refused = String::new();
                    let before = granted.len();
                    for request in meant {
                        match request.narrowed(word) {
                            Ok(narrow) => granted.push(narrow),
                            Err(why) => refused = why,
                        }
                    }
                    if granted.len() == before {
                        return Err(GrantWordsError(refused));
                    }
                }
            }
        }
        Ok(granted)
    }
}

/// A request as it is, if a person can grant all of it with one word.
fn whole(request: &CapabilityRequest) -> Result<CapabilityRequest, GrantWordsError> {
    match consent::whole(&request.capability) {
        Ok(()) => Ok(request.clone()),
        Err(why) => {
            let example = consent::words(&request.capability).into_iter().next().unwrap_or_default();
            Err(GrantWordsError(format!("{} {why}: {example}", request.key())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_package::capability::Capability;

    #[test]
    fn a_folder_has_to_be_named() {
        let capability = Capability::Files { purpose: "notes".into(), write: true, path: None };
        let asked = [CapabilityRequest { capability, required: true, reason: "Keep notes.".into() }];
        let select = |words: &str| GrantWords::select(&[words.parse().unwrap()], &asked).map_err(|e| e.to_string());
        assert_eq!(select("all").unwrap(), []);
        assert!(select("files").unwrap_err().contains("files:notes=/a/folder"));
        assert!(select("files=notes").unwrap_err().contains("whole path"));
        let path = Some("/home/ann/notes".into());
        let granted = select("files:notes=/home/ann/notes").unwrap();
        assert_eq!(granted[0].capability, Capability::Files { purpose: "notes".into(), write: true, path });
        assert_eq!(asked[0].within(&granted), Some(granted[0].clone()));
        assert_eq!(asked[0].beyond(&granted), None);
    }

    #[test]
    fn words_mean_a_kind_a_purpose_or_one_thing() {
        let network = |purpose: &str, udp: &str| CapabilityRequest {
            capability: Capability::Network {
                purpose: purpose.into(),
                udp: vec![udp.parse().unwrap()],
                http: Vec::new(),
            },
            required: false,
            reason: String::new(),
        };
        let asked = [network("lamp", "10.0.0.1:*"), network("fan", "10.0.0.2:*")];
        let select = |words: &str| GrantWords::select(&[words.parse().unwrap()], &asked).map_err(|e| e.to_string());
        assert_eq!(select("all").unwrap(), asked);
        assert_eq!(select("network").unwrap(), asked);
        assert_eq!(select("network:fan").unwrap(), [network("fan", "10.0.0.2:*")]);
        assert_eq!(select("network=10.0.0.2:5").unwrap(), [network("fan", "10.0.0.2:5")]);
        assert!(select("network:lamp=10.0.0.2:5").unwrap_err().contains("only for 10.0.0.1:*"));
        assert_eq!(select("alert").unwrap_err(), "it does not ask for alert; it asks for network:lamp, network:fan");
    }

    // FEA-8: what is granted is what was shown.
    #[test]
    fn what_can_not_be_shown_whole_is_granted_one_by_one() {
        let mut udp: Vec<_> = (1..=29).map(|n| format!("10.0.0.{n}:9000").parse().unwrap()).collect();
        udp.push("*:*".parse().unwrap());
        let capability = Capability::Network { purpose: "text".into(), udp, http: Vec::new() };
        let asked = [CapabilityRequest { capability, required: true, reason: "Talk.".into() }];
        let select = |words: &str| GrantWords::select(&[words.parse().unwrap()], &asked).map_err(|e| e.to_string());
        for words in ["all", "network", "network:text"] {
            let why = select(words).unwrap_err();
            assert!(why.contains("asks for 30 targets") && why.ends_with("network:text=10.0.0.1:9000"), "{why}");
        }
        let granted = select("network:text=10.0.0.7:9000").unwrap();
        assert_eq!(granted[0].capability.scope(), ["10.0.0.7:9000"]);
    }
}
