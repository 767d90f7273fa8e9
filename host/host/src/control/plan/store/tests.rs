use super::*;
use crate::control::plan::risk::Denied;
use conductor_audit::caller::{Door, Scope};
use conductor_config_text::edit::Change;
use conductor_stdx::clock::ManualClock;
use serde_json::json;

const TEXT: &str = "# mine\nname = \"a\"\n";

fn proposal(proposer: &str, name: &str) -> Proposal {
    let change = Change { path: vec!["name".into()], value: Some(json!(name)) };
    Proposal {
        proposer: proposer.into(),
        caller: None,
        description: format!("Call it {name}."),
        privileged: false,
        changes: vec![change],
    }
}

fn base(text: &str) -> Base {
    Base { file: "config.toml".into(), text: text.into() }
}

fn usual(note: &str) -> Risk {
    Risk { level: Level::Usual, notes: vec![note.into()] }
}

fn desk() -> (PlanStore, ManualClock) {
    let (clock, hand) = Clock::manual();
    (PlanStore::in_memory(clock, PLAN_TIMEOUT).unwrap(), hand)
}

fn propose(desk: &PlanStore, proposer: &str, name: &str) -> Result<Plan, PlanError> {
    desk.propose(proposal(proposer, name), &base(TEXT), |_| Ok(usual("both fire")))
}

fn step(desk: &PlanStore, plan: &Plan, before: &str) -> (Step, String) {
    let after = edit::edited(before, &plan.changes).unwrap();
    let (plan, description) = (plan.id.clone(), plan.description.clone());
    let step = Step::Apply { plan, description, before: before.to_owned(), after: after.clone() };
    desk.intend(&step, &state_hash(&after)).unwrap();
    (step, after)
}

#[test]
fn a_plan_waits_with_what_a_person_needs() {
    let (desk, _) = desk();
    let plan = propose(&desk, "project:x", "b").unwrap();
    assert_eq!(desk.waiting().unwrap(), std::slice::from_ref(&plan));
    assert_eq!(plan.base, state_hash(TEXT));
    assert!(plan.diff.contains("-name = \"a\"\n+name = \"b\""), "{}", plan.diff);
    assert_eq!((plan.risk.level, &plan.risk.notes[..]), (Level::Usual, &["both fire".to_owned()][..]));
    desk.reject(&plan.id).unwrap();
    assert!(matches!(desk.plan(&plan.id), Err(PlanError::NotFound(_))));
}

#[test]
fn a_plan_expires() {
    let (desk, hand) = desk();
    let plan = propose(&desk, "project:x", "b").unwrap();
    hand.advance(PLAN_TIMEOUT - Duration::from_millis(1));
    assert!(desk.plan(&plan.id).is_ok());
    assert_eq!(desk.expired().unwrap(), []);
    hand.advance(Duration::from_millis(1));
    assert!(matches!(desk.plan(&plan.id), Err(PlanError::Expired(_))));
    assert_eq!(desk.waiting().unwrap(), []);
    assert_eq!(desk.expired().unwrap(), [(plan.id.clone(), "project:x".to_owned())]);
    assert_eq!(desk.expired().unwrap(), [], "it is reported once");
    assert!(matches!(desk.plan(&plan.id), Err(PlanError::Expired(_))), "and known for a while");
    hand.advance(Duration::from_secs(7200));
    let other = propose(&desk, "project:x", "b").unwrap();
    hand.advance(PLAN_TIMEOUT);
    assert_eq!(desk.expired().unwrap(), [(other.id, "project:x".to_owned())]);
    assert!(matches!(desk.plan(&plan.id), Err(PlanError::NotFound(_))));
}

#[test]
fn what_is_no_plan_is_refused() {
    let (desk, _) = desk();
    let refused = |proposal: Proposal| desk.propose(proposal, &base(TEXT), |_| Ok(usual(""))).unwrap_err().to_string();
    let proposal = || proposal("project:x", "b");
    let says = refused(Proposal { changes: vec![], ..proposal() });
    assert!(says.contains("a plan has 1 to 256 changes, not 0"), "{says}");
    let says = refused(self::proposal("project:x", &"x".repeat(MAX_CHANGES_BYTES)));
    assert!(says.contains("a plan has at most 262144"), "{says}");
    let says = refused(Proposal { description: "Fine.\n++++ end of plan".into(), ..proposal() });
    assert!(says.contains("several lines"), "{says}");
    let says = refused(Proposal { description: "x".repeat(MAX_DESCRIPTION + 1), ..proposal() });
    assert!(says.contains("501 characters"), "{says}");
    let says = refused(self::proposal("project:x", "a"));
    assert!(says.contains("the plan changes nothing"), "{says}");
    let wrong = desk.propose(proposal(), &base(TEXT), |_| Err(PlanError::Denied(Denied("no".into()))));
    assert!(matches!(wrong, Err(PlanError::Denied(Denied(reason))) if reason == "no"));
    assert_eq!(desk.waiting().unwrap(), []);
}

// PLN-4: no client takes every place, under any number of names, and the owner always has some.
#[test]
fn places_are_counted_by_caller_and_some_are_kept_for_the_owner() {
    let (desk, hand) = desk();
    let as_caller = |caller: Option<Caller>| {
        let proposal = Proposal { caller, ..proposal("project:x", "b") };
        desk.propose(proposal, &base(TEXT), |_| Ok(usual("")))
    };
    let agent = |name: &str| Some(Caller::client(Door::McpSocket, Scope::Agent, Some(name)));
    for _ in 0..MAX_OWN {
        assert_eq!(as_caller(agent("greedy")).unwrap().caller, "mcp-socket:agent \"greedy\"");
    }
    assert!(matches!(as_caller(agent("greedy")), Err(PlanError::Full(why)) if why.contains("\"greedy\" had made")));
    assert_eq!(as_caller(agent("other")).unwrap().proposer, "project:x", "of the same feature, for somebody else");
    assert_eq!(as_caller(None).unwrap().caller, "project:x", "by itself");
    for name in MAX_OWN + 2..MAX_PLANS - OWNER_RESERVE {
        as_caller(agent(&format!("agent {name}"))).unwrap();
    }
    assert!(matches!(as_caller(agent("one more")), Err(PlanError::Full(_))), "under whatever name");
    for _ in 0..MAX_OWN {
        as_caller(Some(Caller::client(Door::Socket, Scope::Owner, Some("conductor-cli")))).unwrap();
    }
    assert!(matches!(as_caller(Some(Caller::library())), Err(PlanError::Full(_))), "they are all taken");
    hand.advance(PLAN_TIMEOUT);
    assert!(as_caller(agent("greedy")).is_ok(), "what has expired takes no place");
}

#[test]
fn a_plan_names_its_caller_its_files_and_has_a_uuid() {
    let (desk, _) = desk();
    let plan = propose(&desk, "project:x", "b").unwrap();
    assert_eq!((plan.touched_files.as_slice(), plan.caller.as_str()), (&["config.toml".to_owned()][..], "project:x"));
    assert_eq!((plan.id.len(), &plan.id[12..13]), (32, "4"));
    assert!(["8", "9", "a", "b"].contains(&&plan.id[16..17]), "{}", plan.id);
}

#[test]
fn the_record_of_an_older_version_is_read_and_of_a_newer_one_is_left_alone() {
    let home = std::env::temp_dir().join(format!("conductor-desk-layout-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let (clock, _) = Clock::manual();
    let open = || PlanStore::open(&home, clock, PLAN_TIMEOUT);
    let file = Connection::open(home.join("plans.sqlite")).unwrap();
    file.execute_batch(
        "CREATE TABLE plans (id TEXT NOT NULL PRIMARY KEY, proposer TEXT NOT NULL, description TEXT NOT NULL,
             changes TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL, base TEXT NOT NULL,
             diff TEXT NOT NULL, risk TEXT NOT NULL) STRICT;
         CREATE TABLE revisions (number INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, before TEXT NOT NULL,
             after TEXT NOT NULL, undone INTEGER NOT NULL) STRICT;
         CREATE TABLE intention (one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), step TEXT NOT NULL,
             hash TEXT NOT NULL) STRICT;
         INSERT INTO plans VALUES ('00ff', 'project:old', 'Old.', '[]', 1, 9000000000000, 'h', 'd',
             '{\"level\":\"usual\",\"notes\":[]}');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let desk = open().unwrap();
    assert_eq!(desk.plan("00ff").unwrap().caller, "project:old");
    propose(&desk, "project:x", "b").unwrap();
    drop(desk);
    assert_eq!(open().unwrap().waiting().unwrap().len(), 2);
    file.execute_batch("PRAGMA user_version = 9").unwrap();
    assert!(matches!(open(), Err(PlanError::Layout { found: 9, known: LAYOUT })));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn what_is_applied_can_be_undone_and_redone_until_something_new_is_applied() {
    let (desk, _) = desk();
    let mut text = TEXT.to_owned();
    for name in ["b", "c"] {
        let plan = propose(&desk, "project:x", name).unwrap();
        let (step, after) = step(&desk, &plan, &text);
        desk.done(&step).unwrap();
        assert!(matches!(desk.plan(&plan.id), Err(PlanError::NotFound(_))), "applied once only");
        text = after;
    }
    let last = desk.to_undo().unwrap();
    assert_eq!((last.description.as_str(), last.after.as_str()), ("Call it c.", text.as_str()));
    desk.done(&Step::Undo { number: last.number }).unwrap();
    assert_eq!(desk.to_redo().unwrap(), last);
    assert_eq!(desk.to_undo().unwrap().description, "Call it b.");
    desk.done(&Step::Redo { number: last.number }).unwrap();
    assert!(matches!(desk.to_redo(), Err(PlanError::Nothing("redo"))));

    desk.done(&Step::Undo { number: last.number }).unwrap();
    let plan = propose(&desk, "project:x", "d").unwrap();
    let (step, _) = step(&desk, &plan, &last.before);
    desk.done(&step).unwrap();
    assert!(matches!(desk.to_redo(), Err(PlanError::Nothing("redo"))), "c is gone for good");
    assert_eq!(desk.to_undo().unwrap().description, "Call it d.");
}

#[test]
fn what_was_interrupted_is_decided_by_the_file() {
    let (clock, _) = Clock::manual();
    let home = std::env::temp_dir().join(format!("conductor-desk-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    for written in [false, true] {
        let desk = PlanStore::open(&home, clock, PLAN_TIMEOUT).unwrap();
        let plan = propose(&desk, "project:x", "b").unwrap();
        let (_, after) = step(&desk, &plan, TEXT);
        drop(desk);

        let desk = PlanStore::open(&home, clock, PLAN_TIMEOUT).unwrap();
        desk.settle(if written { &after } else { TEXT }).unwrap();
        assert_eq!(desk.plan(&plan.id).is_ok(), !written, "it waits on, or is done");
        assert_eq!(desk.to_undo().is_ok(), written);
        desk.settle(&after).unwrap();
        assert_eq!(desk.to_undo().is_ok(), written, "nothing is intended any more");
    }
    std::fs::remove_dir_all(&home).unwrap();
}
