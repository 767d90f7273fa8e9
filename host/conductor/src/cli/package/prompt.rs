//! Prompts and lists of capabilities, for granting them and afterwards.

use super::Failure;
use conductor_install::installation::InstallPlan;
use conductor_install::receipt::What;
use conductor_package::capability::{Capability, CapabilityRequest};
use conductor_package::{Grants, consent};
use conductor_terminal::{self as terminal, Lines, errln, outln};

/// Asks on the terminal for what the plan asks for. Without one, nothing is granted.
pub(super) fn ask(plan: &InstallPlan) -> Result<Vec<CapabilityRequest>, Failure> {
    let mut given = Vec::new();
    if plan.asked.is_empty() || !terminal::is_interactive() {
        return Ok(given);
    }
    let descriptor = &plan.package.info.descriptor;
    let more = if plan.what == What::Upgrade { "asks for more than before" } else { "asks for" };
    errln!("{} {} ({}) {more}:", descriptor.name, descriptor.version, descriptor.id);
    plan.notes.iter().for_each(|note| errln!("  note: {note}"));
    for request in &plan.asked {
        let Question { lines, question } = question(request);
        terminal::eprint(&lines);
        let answer = terminal::ask(format_args!("  {question}"))?;
        given.extend(answered(request, &answer).map_err(|error| Failure::Wrong(format!("conductor: {error}")))?);
    }
    Ok(given)
}

/// A request as a person is asked about it.
struct Question {
    /// What it is, and a line for each target.
    lines: Lines,
    /// What is asked.
    question: String,
}

fn question(request: &CapabilityRequest) -> Question {
    let need = if request.required { "it can't do without" } else { "it can do without" };
    let mut lines = Lines::new();
    lines.push(format_args!("  {} ({need}): {}", request.key(), request.reason));
    for line in consent::lines(&request.capability) {
        lines.push(format_args!("    {line}"));
    }
    let question = match (request.capability.must_be_named(), consent::whole(&request.capability)) {
        (true, _) => format!("{} [none]", request.capability.question()),
        (false, Ok(())) => "grant it? [y/N]".to_owned(),
        (false, Err(why)) => {
            lines.push(format_args!("  {} {why}", request.key()));
            "which ones, with blanks between? [none]".to_owned()
        }
    };
    Question { lines, question }
}

/// What an answer to [`question`] grants.
fn answered(request: &CapabilityRequest, answer: &str) -> Result<Vec<CapabilityRequest>, String> {
    let capability = &request.capability;
    if answer.is_empty() {
        return Ok(Vec::new());
    }
    if capability.must_be_named() {
        return Ok(vec![request.narrowed(answer)?]);
    }
    match consent::whole(capability) {
        Ok(()) => Ok(if matches!(answer, "y" | "Y" | "yes") { vec![request.clone()] } else { Vec::new() }),
        Err(_) => answer.split_whitespace().map(|word| request.narrowed(word)).collect(),
    }
}

/// Prints a title with a list of capabilities, a line for each target.
pub(super) fn print_list(title: &str, list: &[CapabilityRequest], none: &str) {
    if list.is_empty() {
        outln!("  {title:<12} {none}");
    }
    for (at, request) in list.iter().enumerate() {
        outln!("  {:<12} {}", if at == 0 { title } else { "" }, request.key());
        for line in consent::lines(&request.capability) {
            outln!("  {:<12}   {line}", "");
        }
    }
}

/// What grants of the configuration come to, a line for each target.
pub(super) fn grants_of_file(grants: &Grants) -> Vec<String> {
    grants
        .capabilities()
        .iter()
        .flat_map(|capability: &Capability| {
            let key = match capability.purpose() {
                Some("") | None => capability.kind().to_string(),
                Some(_) => capability.key(),
            };
            consent::lines(capability).into_iter().map(move |line| format!("{key}: {line}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(udp: &[String]) -> CapabilityRequest {
        CapabilityRequest {
            capability: Capability::Network {
                purpose: "text".into(),
                udp: udp.iter().map(|target| target.parse().unwrap()).collect(),
                http: vec!["evil.example".parse().unwrap()],
            },
            required: true,
            reason: "Talk.".into(),
        }
    }

    fn shown(request: &CapabilityRequest) -> String {
        let Question { lines, question } = question(request);
        lines.render(false) + &question
    }

    fn targets(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("10.0.0.{n}:9000")).collect()
    }

    // FEA-8: what is granted is what was shown.
    #[test]
    fn a_yes_grants_what_the_question_shows() {
        let few = network(&[targets(3), vec!["*:*".into()]].concat());
        let asked = shown(&few);
        assert!(asked.contains("\n    UDP to ANY host, ANY port (*:*)\n    UDP to 10.0.0.1:9000\n"), "{asked}");
        assert!(asked.contains("evil.example") && asked.ends_with("grant it? [y/N]"), "{asked}");
        assert_eq!(answered(&few, "y").unwrap(), std::slice::from_ref(&few));
        assert_eq!(answered(&few, "").unwrap(), []);
        assert_eq!(answered(&few, "n").unwrap(), []);
    }

    #[test]
    fn a_request_with_thirty_targets_is_granted_one_by_one() {
        let many = network(&[targets(29), vec!["*:*".into()]].concat());
        let asked = shown(&many);
        assert!(asked.contains("ANY host, ANY port") && asked.contains("asks for 31 targets"), "{asked}");
        assert!(!asked.contains("[y/N]"));
        assert!(answered(&many, "y").is_err());
        let given = answered(&many, "10.0.0.2:9000 http:evil.example").unwrap();
        let scopes: Vec<_> = given.iter().map(|grant| grant.capability.scope()).collect();
        assert_eq!(scopes, [["10.0.0.2:9000"], ["http:evil.example"]]);
    }
}
