//! The shell without a terminal: what a host says and a person does comes in, and a frame comes out.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr as _;

use crate::api::{Act, FromHost, Proposal, Query, Reply, Request};
use crate::input::{BINDINGS, Command, Key, Screen, bindings};
use crate::state::layout;
use crate::state::live::MAX_ROWS;
use crate::state::{Input, State};
use crate::view::render;

mod host;

/// A shell, and the time.
struct Shell {
    state: State,
    now: Duration,
}

impl Shell {
    fn new(width: u16, height: u16) -> Self {
        Self { state: State::new(width, height, true), now: Duration::ZERO }
    }

    /// One that has got everything from its host, with this text for every name.
    fn told(width: u16, height: u16, text: &str) -> Self {
        let mut shell = Self::new(width, height);
        shell.hear(host::connected(text));
        shell.answered(text, "usual");
        shell
    }

    fn hear(&mut self, message: FromHost) {
        self.state.receive(message, self.now);
    }

    /// Has what was asked answered, until there are no more questions. Returns what was to be done.
    fn answered(&mut self, text: &str, level: &str) -> Vec<Act> {
        let mut acts = Vec::new();
        for _ in 0..20 {
            let requests = self.state.take_requests();
            if requests.is_empty() {
                break;
            }
            for request in requests {
                let result = host::answer(&request, text, level);
                if let Request::Act(act) = &request {
                    acts.push(act.clone());
                }
                self.hear(FromHost::Answered { request: Box::new(request), result });
            }
        }
        acts
    }

    fn key(&mut self, code: KeyCode) {
        let key = Key::new(KeyEvent::new(code, KeyModifiers::NONE)).unwrap();
        self.state.input(Input::Key(key), self.now);
    }

    fn types(&mut self, text: &str) {
        text.chars().for_each(|letter| self.key(KeyCode::Char(letter)));
    }

    fn passes(&mut self, time: Duration) {
        self.now += time;
        self.state.tick(self.now);
    }

    /// What is on the screen, a line each.
    fn lines(&mut self) -> Vec<String> {
        let size = self.state.size;
        let mut terminal = Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
        let mut extent = None;
        terminal.draw(|frame| extent = Some(render(&self.state, frame))).unwrap();
        self.state.seen(extent.unwrap());
        let buffer = terminal.backend().buffer();
        let row = |y| {
            let (mut line, mut x) = (String::new(), 0);
            while x < size.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += u16::try_from(symbol.width()).unwrap().max(1);
            }
            line
        };
        (0..size.height).map(row).collect()
    }

    fn shows(&mut self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }

    fn screen(&mut self) -> String {
        self.lines().iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn the_status_says_what_is_there_and_what_is_wrong() {
    let mut shell = Shell::told(80, 24, "Play");
    assert_eq!(
        shell.screen(),
        "\
conductor 1.2.3  mode Play
1 Status  2 Live  3 Flow  4 Mappings  5 Plans (1)  6 Features  7 Chat  8 Learn
── Modes ───────────────────────────────────────────────────────────────────────
 ● Play
   Mix
── Host ─────────────────────────────────────────────────────────────1-16 of 22
conductor   1.2.3, process 42, for 1m 30s
in front    Play
lock        not locked
rules       3, of ~/.conductor/config.toml
doubts      1 warning
            ? Play
events      12, 1 action failed
            ! Play
ports       1 of 2 open
            ● input Pads MIDI 1, bound to pads
            ! Pads MIDI 1: 1 malformed, 0 lost
            · input Play
            ! Play: 1 malformed, 0 lost
            ✗ Play
bindings    1 of 2 healthy
            ● pads green

Enter switch mode  L lock  ? keys  q quit"
    );
}

#[test]
fn the_status_says_where_to_begin_while_nothing_is_mapped() {
    let mut shell = Shell::told(80, 40, "Play");
    assert!(!shell.shows("nothing is mapped yet"), "{}", shell.screen());
    let mut status = host::status("Play");
    status["rules"] = serde_json::json!(0);
    shell.hear(FromHost::Connected(Box::new(host::read(status))));
    assert!(shell.shows("nothing is mapped yet: on screen 2, move a control, then m maps it"), "{}", shell.screen());
}

#[test]
fn events_are_lines_with_their_protocol_channel_and_rules() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2");
    shell.hear(host::event("pads", "note-on 36 100 ch 9", &["Play (OscSend)"]));
    shell.hear(host::event("desk", "osc /fader 0.5", &[]));
    let lines = shell.lines();
    let line = |text: &str| lines.iter().find(|line| line.contains(text)).unwrap().trim_end();
    assert_eq!(line("note-on 36"), "    89.500 MIDI pads   10 note-on 36 100 ch 9    ─▶ Play (OscSend)");
    assert_eq!(line("osc /fader"), "    89.500 OSC  desk      osc /fader 0.5         no rule");
    assert_eq!(
        line("Unbound"),
        format!("── Unbound sources (1) move a control, m maps it; ? explains the words {}", "─".repeat(9))
    );
    assert_eq!(line("pads   "), " ● pads                   midi      0.5/s        1 note-on");
    // Two seconds later nothing is alight, and the rate is none.
    for _ in 0..12 {
        shell.passes(Duration::from_millis(250));
    }
    assert!(shell.shows(" · pads                   midi      0.0/s        1 note-on"), "{}", shell.screen());
}

#[test]
fn a_failure_is_opened_to_be_read_to_its_end() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2");
    let reason = format!("{}up to the end-of-it\nand further", "no port is bound ".repeat(6));
    let failure = serde_json::json!({ "kind": "failure", "at": 5, "rule": "go", "worker": "lights", "reason": reason });
    shell.hear(host::item(failure));
    assert!(!shell.shows("end-of-it") && shell.lines()[23].contains("Enter read"), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    assert!(shell.shows("of          lights") && shell.shows("end-of-it"), "{}", shell.screen());
    assert!(shell.shows("  | and further") && !shell.shows("asking the host"), "{}", shell.screen());
    let asked = shell.state.take_requests();
    assert!(!asked.iter().any(|request| matches!(request, Request::Query(Query::Explain { .. }))), "{asked:?}");
}

#[test]
fn a_source_without_a_binding_is_set_up_by_a_plan() {
    let mut shell = Shell::told(100, 24, "Play");
    shell.types("2");
    shell.key(KeyCode::Tab);
    assert!(shell.lines()[23].contains("s set up"), "{}", shell.screen());
    shell.types("js");
    assert!(!shell.lines()[23].contains("s set up"), "it has a binding: {}", shell.screen());
    assert_eq!(shell.answered("Play", "usual"), []);
    shell.types("ks");
    assert_eq!(shell.answered("Play", "usual"), [Act::SetUp { device: "Play".into() }]);
    assert!(shell.shows("Plans that wait for you"), "{}", shell.screen());
}

#[test]
fn the_flow_shows_what_an_event_has_just_passed() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("3");
    assert!(shell.shows("● Pads MIDI 1 ─▶ pads green"), "{}", shell.screen());
    assert!(shell.shows("    ─▶ [Play] Play: Note note=36 ─▶ OscSend address=Play"), "{}", shell.screen());
    shell.hear(host::event("pads", "note-on 36 100", &["Play (OscSend)"]));
    assert!(shell.shows("● Pads MIDI 1 ═▶ pads green 0.5/s"), "{}", shell.screen());
    assert!(shell.shows("    ═▶ [Play] Play: Note note=36 ═▶ OscSend address=Play"), "{}", shell.screen());
    shell.passes(Duration::from_secs(3));
    assert!(!shell.shows("═▶"), "{}", shell.screen());
}

#[test]
fn what_came_before_the_shell_is_listed_and_not_alight() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2");
    let before = serde_json::json!({ "kind": "event", "at": 1, "device": "pads", "event": "cc 7 1", "rules": [] });
    shell.hear(host::item(before));
    assert!(shell.shows(" · pads                   midi      0.0/s        1 cc"), "{}", shell.screen());
}

#[test]
fn a_plan_is_applied_after_a_yes_and_a_privileged_one_after_its_digits() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("5a");
    assert!(shell.shows("── Apply it? (y/n)") && shell.shows("  | +note = 36"), "{}", shell.screen());
    shell.types("n");
    assert_eq!(shell.answered("Play", "usual"), []);
    shell.types("ay");
    let apply = Act::Apply { id: host::PLAN.to_owned() };
    assert_eq!(shell.answered("Play", "usual"), std::slice::from_ref(&apply));

    let mut shell = Shell::new(80, 24);
    shell.hear(host::connected("Play"));
    shell.answered("Play", "privileged");
    shell.types("5ay");
    assert!(shell.shows("to apply it, type"), "{}", shell.screen());
    shell.types("012344");
    shell.key(KeyCode::Enter);
    assert!(shell.answered("Play", "privileged").is_empty() && shell.shows("that is something else"));
    shell.types("012345");
    shell.key(KeyCode::Enter);
    assert_eq!(shell.answered("Play", "privileged"), [apply]);
}

#[test]
fn a_plan_of_another_configuration_is_listed_as_stale() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("5");
    assert!(!shell.shows("stale"), "{}", shell.screen());
    let plans = Request::Query(Query::Plans);
    let mut result = host::answer(&plans, "Play", "usual");
    let Ok(Reply::Plans(list)) = &mut result else { panic!("plans are answered with plans") };
    list.iter_mut().for_each(|plan| plan.stale = true);
    shell.hear(FromHost::Answered { request: Box::new(plans), result });
    assert!(shell.shows("stale"), "{}", shell.screen());
}

#[test]
fn a_plan_says_which_of_its_mappings_were_not_tried() {
    let mut shell = Shell::told(80, 40, "Play");
    shell.types("5");
    assert!(!shell.shows("not tried"), "{}", shell.screen());
    let plan = Request::Query(Query::Plan(host::PLAN.to_owned()));
    let mut result = host::answer(&plan, "Play", "usual");
    let Ok(Reply::Plan(view)) = &mut result else { panic!("a plan is answered with a plan") };
    view.rehearsal.untried = vec!["snare".to_owned()];
    shell.hear(FromHost::Answered { request: Box::new(plan), result });
    assert!(shell.shows("  not tried: snare (nothing like its trigger came)"), "{}", shell.screen());
}

#[test]
fn a_feature_is_disabled_and_enabled_however_it_came() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("6");
    assert!(shell.shows("Features (5)") && shell.shows("artnet-output        disabled"), "{}", shell.screen());
    assert!(!shell.lines()[23].contains("e enable"), "it is loaded: {}", shell.screen());
    // One that comes with the host, and one that was installed.
    shell.types("d");
    assert!(shell.shows("── Disable osc-output? (y/n)") && shell.shows("undo takes it back"), "{}", shell.screen());
    shell.types("y");
    assert_eq!(shell.answered("Play", "usual"), [Act::Disable { feature: "osc-output".into() }]);
    shell.types("jjd");
    assert!(shell.shows("── Disable slow? (y/n)") && !shell.shows("undo takes it back"), "{}", shell.screen());
    shell.types("n");
    // The same of those that are disabled, at the end of the list.
    shell.key(KeyCode::End);
    assert!(shell.shows("feature     artnet-output"), "{}", shell.screen());
    assert!(!shell.lines()[23].contains("d disable"), "{}", shell.screen());
    shell.types("e");
    assert!(shell.shows("── Enable artnet-output? (y/n)") && shell.shows("undo takes it back"), "{}", shell.screen());
    shell.types("y");
    assert_eq!(shell.answered("Play", "usual"), [Act::Enable { feature: "artnet-output".into() }]);
    shell.types("ke");
    assert!(shell.shows("── Enable Play 2? (y/n)") && !shell.shows("undo takes it back"), "{}", shell.screen());
}

// What a plan says of itself has lines of its own, and none of them is taken for the shell's.
#[test]
fn a_plan_cannot_write_lines_of_the_shell() {
    let mut shell = Shell::told(100, 40, "x\nrisk: usual\n▶ all is well");
    for keys in ["5", "a"] {
        shell.types(keys);
        let lines = shell.lines();
        assert!(!lines.iter().any(|line| line.starts_with("risk:") || line.starts_with("▶")), "{lines:#?}");
    }
}

#[test]
fn what_is_typed_while_a_model_answers_is_kept_until_it_has_answered() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("7");
    shell.key(KeyCode::Enter);
    shell.answered("Play", "usual");
    // A call and a plan wait, whose keys are among the letters.
    shell.types("imap any");
    shell.key(KeyCode::Enter);
    assert!(shell.shows("the answer is not complete yet. say: map any"), "{}", shell.screen());
    assert_eq!(shell.answered("Play", "usual"), []);
    let query = Request::Query(Query::Conversation { id: 1, after: 9 });
    shell.hear(FromHost::Answered { request: Box::new(query), result: Ok(Reply::Conversation(host::end_of_turn(10))) });
    shell.types("!");
    assert!(shell.shows("say: map any!") && !shell.shows("not complete"), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    assert_eq!(shell.answered("Play", "usual"), [Act::Say { id: 1, text: "map any!".into() }]);
    // The host may know of another turn.
    let said = Request::Act(Act::Say { id: 1, text: "map any!".into() });
    shell.hear(FromHost::Answered { request: Box::new(said), result: Err("a turn is under way".into()) });
    assert!(shell.shows("a turn is under way. say: map any!"), "{}", shell.screen());
}

/// A shell that listens, and the control "Play" that was moved.
fn learning() -> Shell {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("8s");
    shell.answered("Play", "usual");
    shell.passes(Duration::from_secs(1));
    shell.answered("Play", "usual");
    shell
}

#[test]
fn an_action_is_for_the_control_that_was_chosen_when_it_was_asked_for() {
    let mut shell = learning();
    shell.key(KeyCode::Enter);
    shell.types("Play 1");
    shell.hear(host::moved("knob"));
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    let Some(Act::Propose(proposal)) = acts.first() else { panic!("{acts:?}") };
    assert_eq!(proposal.learned.controls[proposal.control].kind, "Play");
    // What was moved meanwhile is asked for once the line is gone.
    let mut shell = learning();
    shell.key(KeyCode::Enter);
    shell.hear(host::moved("knob"));
    let (status, learned) = (Request::Query(Query::Status), Request::Query(Query::Learned { session: 5 }));
    for (is_typed, key) in [(true, None), (false, Some(KeyCode::Esc))] {
        key.into_iter().for_each(|key| shell.key(key));
        shell.passes(Duration::from_secs(1));
        assert!(shell.state.take_requests().contains(&status));
        let result = host::answer(&status, "Play", "usual");
        shell.hear(FromHost::Answered { request: Box::new(status.clone()), result });
        assert_eq!(shell.state.take_requests().contains(&learned), !is_typed);
    }
}

#[test]
fn a_mapping_waits_for_the_gesture_that_was_made_or_for_the_control_alone() {
    let mut shell = learning();
    assert!(shell.shows("the mapping waits for the Play; w: for the control alone"), "{}", shell.screen());
    shell.types("w");
    assert!(shell.shows("the mapping waits for the control alone; w: for the Play"), "{}", shell.screen());
    for is_plain in [true, false] {
        shell.key(KeyCode::Enter);
        assert_eq!(shell.shows("the mapping waits for the Play"), !is_plain, "{}", shell.screen());
        shell.types("Play 1");
        shell.key(KeyCode::Enter);
        let acts = shell.answered("Play", "usual");
        let Some(Act::Propose(proposal)) = acts.first() else { panic!("{acts:?}") };
        assert_eq!(proposal.is_plain, is_plain);
        shell.types("8w");
    }
    // Of a control without a gesture there is nothing to choose.
    shell.hear(host::moved("knob"));
    assert!(!shell.lines()[23].contains("w gesture"), "{}", shell.screen());
}

/// The light that was asked for, of a shell that listens: the keys that are typed on its line, and what is known of the device.
fn lit(device: &str, is_bound: bool, has_profile: bool, keys: &[KeyCode]) -> (String, Proposal) {
    let mut shell = learning();
    shell.hear(host::status_with_output("Play", "Pads MIDI 1"));
    shell.hear(host::pressed(device, is_bound));
    shell.key(KeyCode::Enter);
    let lights = Request::Query(Query::Lights(device.to_owned()));
    assert!(shell.state.take_requests().contains(&lights));
    if has_profile {
        shell.hear(host::lights(device));
    }
    shell.types("Play 1");
    shell.key(KeyCode::Enter);
    assert!(shell.answered("Play", "usual").is_empty(), "the light is asked for first: {}", shell.screen());
    assert!(shell.shows("output      Pads MIDI 1 is bound with it"), "{}", shell.screen());
    assert_eq!(shell.lines()[23].contains("Tab complete"), has_profile, "{}", shell.screen());
    keys.iter().for_each(|key| shell.key(*key));
    let screen = shell.screen();
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    let Some(Act::Propose(proposal)) = acts.first() else { panic!("{acts:?}") };
    (screen, Proposal::clone(proposal))
}

#[test]
fn the_light_of_a_pad_is_asked_for_after_its_action() {
    let tab = KeyCode::Tab;
    let matcher = serde_json::json!({ "type": "exact_name", "value": "Pads MIDI 1" });
    for (device, is_bound) in [("pads", true), ("Pads MIDI 2", false)] {
        // Tab goes through the colours of the profile; without one a number is typed.
        let (screen, proposal) = lit(device, is_bound, true, &[tab, tab]);
        assert!(screen.contains("light while it is held (Tab: colours; empty: none): red"), "{screen}");
        assert!(screen.contains("colours     green = 1, red = 3"), "{screen}");
        let light = proposal.light.unwrap();
        assert_eq!((light.on, light.off, light.output), (3, 0, Some(matcher.clone())));
        let (screen, proposal) = lit(device, is_bound, false, &[KeyCode::Char('5')]);
        assert!(screen.contains("light while it is held (0 to 127; empty: none): 5"), "{screen}");
        assert_eq!(proposal.light.map(|light| light.on), Some(5));
        let (_, proposal) = lit(device, is_bound, true, &[]);
        assert_eq!((proposal.light.as_ref(), proposal.action.as_str()), (None, "Play 1"));
    }
}

#[test]
fn a_light_that_is_none_is_typed_again_and_escape_goes_back_to_the_action() {
    let mut shell = learning();
    shell.hear(host::status_with_output("Play", "Pads MIDI 1"));
    shell.hear(host::pressed("pads", true));
    shell.key(KeyCode::Enter);
    shell.types("Play 1");
    shell.key(KeyCode::Enter);
    shell.types("128");
    shell.key(KeyCode::Enter);
    assert!(shell.shows("a number, 0 to 127. light while it is held"), "{}", shell.screen());
    assert!(shell.shows(": 128"), "{}", shell.screen());
    // What is moved meanwhile does not choose another control.
    shell.hear(host::moved("knob"));
    shell.key(KeyCode::Esc);
    assert!(shell.shows("action: Play"), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    shell.key(KeyCode::Backspace);
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    let Some(Act::Propose(proposal)) = acts.first() else { panic!("{acts:?}") };
    assert_eq!((proposal.learned.controls[0].kind.as_str(), proposal.light.as_ref().unwrap().on), ("pad", 12));
}

#[test]
fn no_light_is_asked_for_where_none_can_be_set() {
    for (name, device) in [("Synth", "pads"), ("Pads MIDI 1", "gone")] {
        let mut shell = learning();
        shell.hear(host::status_with_output("Play", name));
        shell.hear(host::pressed(device, true));
        shell.key(KeyCode::Enter);
        shell.types("Play 1");
        shell.key(KeyCode::Enter);
        let acts = shell.answered("Play", "usual");
        assert!(matches!(acts.first(), Some(Act::Propose(proposal)) if proposal.light.is_none()), "{acts:?}");
    }
}

#[test]
fn the_control_of_an_event_is_mapped_as_if_it_had_just_been_moved() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2m");
    assert!(shell.shows("! move a control first") && !shell.lines()[23].contains("m map"), "{}", shell.screen());
    for (device, is_bound) in [("pads", true), ("Play", false)] {
        shell.hear(host::event(device, "note-on 36 100 ch 9", &[]));
        assert!(shell.lines()[23].contains("m map"), "{}", shell.screen());
        shell.types("mPlay 1");
        assert!(shell.shows("action: Play"), "{}", shell.screen());
        shell.key(KeyCode::Enter);
        let acts = shell.answered("Play", "usual");
        let Some(Act::Propose(proposal)) = acts.first() else { panic!("{acts:?}") };
        assert_eq!(proposal.learned.controls[0].device, device);
        assert_eq!(proposal.learned.unbound.is_empty(), is_bound, "{proposal:?}");
        shell.types("2");
    }
    // What is no event has no control.
    shell.hear(host::items("Play").remove(2));
    shell.types("m");
    assert!(shell.shows("! move a control first"), "{}", shell.screen());
    // On the screen for it, where nothing was moved yet.
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("8");
    shell.key(KeyCode::Enter);
    assert!(shell.shows("! move a control first"), "{}", shell.screen());
}

#[test]
fn a_control_has_one_name_on_every_screen_and_in_its_plan() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2");
    let pressed = serde_json::json!({
        "kind": "event", "at": 1, "device": "pads", "event": "note-on 36 100 ch 9", "control": "pad 1", "rules": [],
    });
    shell.hear(host::item(pressed));
    assert!(shell.shows("pad 1"), "{}", shell.screen());
    shell.types("m");
    assert!(shell.shows(" pads                   pad 1        last: note-on 36 100"), "{}", shell.screen());
    shell.types("Play 1");
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    assert!(matches!(acts.first(), Some(Act::Propose(proposal)) if proposal.name == "pad 1"), "{acts:?}");
}

#[test]
fn a_step_that_would_do_nothing_is_said_where_no_plan_waits() {
    let mut shell = Shell::told(80, 40, "Play");
    shell.types("5");
    assert!(shell.shows("undo would  take back: Play") && !shell.shows("redo would"), "{}", shell.screen());
    let plans = Box::new(Request::Query(Query::Plans));
    shell.hear(FromHost::Answered { request: plans, result: Ok(Reply::Plans(Vec::new())) });
    assert!(shell.shows("redo would  do nothing: Play"), "{}", shell.screen());
}

#[test]
fn tab_writes_the_name_of_an_action_and_the_keys_that_it_needs() {
    let mut shell = learning();
    shell.key(KeyCode::Enter);
    assert!(shell.lines()[23].contains("Tab complete"), "{}", shell.screen());
    // Two begin so: it is not known which is meant.
    shell.key(KeyCode::Tab);
    shell.types("os");
    shell.key(KeyCode::Tab);
    assert!(shell.shows("action: OscSend "), "{}", shell.screen());
    let keys = Request::Query(Query::ActionKeys("OscSend".into()));
    assert!(shell.state.take_requests().contains(&keys));
    let schema = serde_json::json!({
        "properties": { "address": { "type": "string" }, "level": { "type": "integer" }, "args": { "type": "string" } },
        "required": ["address", "level"],
    });
    let result = Ok(Reply::ActionKeys("OscSend".into(), schema));
    shell.hear(FromHost::Answered { request: Box::new(keys), result });
    shell.key(KeyCode::Tab);
    shell.types("/verse");
    assert!(shell.shows(r#"action: OscSend { address = "/verse", level =  }"#), "{}", shell.screen());
    // What is written is left alone.
    shell.key(KeyCode::Tab);
    assert!(shell.shows(r#"action: OscSend { address = "/verse", level =  }"#), "{}", shell.screen());
}

#[test]
fn an_action_is_filled_in_field_by_field() {
    let mut shell = learning();
    shell.key(KeyCode::Enter);
    assert!(shell.lines()[23].contains("Enter choose"), "{}", shell.screen());
    shell.types("os");
    shell.key(KeyCode::Enter);
    let keys = Request::Query(Query::ActionKeys("OscSend".into()));
    assert!(shell.state.take_requests().contains(&keys));
    let schema = serde_json::json!({
        "properties": {
            "address": { "type": "string", "pattern": "^/", "description": "The OSC address: `\"/cue/1\"`. More of it." },
            "level": { "type": "integer", "minimum": 0, "maximum": 127 },
            "args": { "type": "string" },
        },
        "required": ["address", "level"],
    });
    let result = Ok(Reply::ActionKeys("OscSend".into(), schema));
    shell.hear(FromHost::Answered { request: Box::new(keys), result });
    assert!(shell.shows("OscSend address: ") && shell.lines()[23].contains("Tab next field"), "{}", shell.screen());
    assert!(shell.shows("The OSC address") && !shell.shows("More of it"), "{}", shell.screen());
    assert!(shell.shows("takes     a text") && shell.shows("such as   /cue/1"), "{}", shell.screen());
    // A field that can't be taken is not left by Tab.
    shell.types("cue");
    shell.key(KeyCode::Tab);
    assert!(shell.shows("address begins with /. OscSend address: cue"), "{}", shell.screen());
    shell.key(KeyCode::Home);
    shell.types("/");
    shell.key(KeyCode::Tab);
    shell.types("128");
    shell.key(KeyCode::Enter);
    assert!(shell.shows("level takes a whole number, 0 to 127. OscSend level: 128"), "{}", shell.screen());
    shell.key(KeyCode::Backspace);
    assert!(shell.lines()[23].contains("Enter done"), "{}", shell.screen());
    // The line that it comes to is one key away; what is refused comes back as the form.
    let action = r#"OscSend { address = "/cue", level = 12 }"#;
    let as_line = Key::new(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL)).unwrap();
    shell.state.input(Input::Key(as_line), shell.now);
    assert!(shell.shows(&format!("action: {action}")), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    for request in shell.state.take_requests() {
        if let Request::Act(Act::Propose(proposal)) = &request {
            assert_eq!(proposal.action, action);
        }
        shell.hear(FromHost::Answered { request: Box::new(request), result: Err("no such target".to_owned()) });
    }
    assert!(shell.shows("no such target") && shell.shows("OscSend address: /cue"), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    assert!(matches!(acts.first(), Some(Act::Propose(proposal)) if proposal.action == action), "{acts:?}");
}

#[test]
fn a_mapping_is_changed_lit_and_removed_by_plans() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("4");
    assert!(shell.lines()[23].contains("c change  l light  x remove"), "{}", shell.screen());
    // What the form does not know of the action stays.
    shell.types("c");
    shell.answered("Play", "usual");
    assert!(shell.shows("OscSend Play: "), "{}", shell.screen());
    shell.types("x");
    shell.key(KeyCode::Enter);
    let (place, action) = ("modes/0/mappings/0".to_owned(), r#"OscSend { Play = "x", address = "Play" }"#.to_owned());
    assert_eq!(shell.answered("Play", "usual"), [Act::ChangeAction { place, action }]);
    assert!(shell.shows("Plans that wait for you"), "{}", shell.screen());
    shell.types("4l");
    shell.answered("Play", "usual");
    assert!(shell.shows("light while it is held (0 to 127; empty: none): "), "{}", shell.screen());
    shell.types("128");
    shell.key(KeyCode::Enter);
    assert!(shell.shows("a number, 0 to 127. light"), "{}", shell.screen());
    shell.key(KeyCode::Backspace);
    shell.key(KeyCode::Enter);
    let acts = shell.answered("Play", "usual");
    let Some(Act::ProposeBy { tool: "conductor_batch_changes", args }) = acts.first() else { panic!("{acts:?}") };
    let change = &args["changes"][0];
    assert_eq!(
        (&change["path"], &change["value"]["fired"]["velocity"]),
        (&"modes/0/mappings/0/feedback".into(), &12.into())
    );
    shell.types("4x");
    let args = serde_json::json!({ "place": "modes/0/mappings/0" });
    assert_eq!(shell.answered("Play", "usual"), [Act::ProposeBy { tool: "conductor_delete_mapping", args }]);
    // A fader has no light that follows a press.
    shell.types("4j");
    assert!(shell.lines()[23].contains("c change  x remove"), "{}", shell.screen());
}

#[test]
fn what_a_key_says_of_a_mapping_stays_whatever_its_light_shows() {
    // Proposes what is typed for the light of a mapping with this feedback. Returns its feedback then.
    let lit = |feedback: &str, typed: &str| {
        let mut shell = Shell::told(80, 24, "Play");
        let config = host::config_with("Play", &format!("feedback = {feedback}"));
        let request = Box::new(Request::Query(Query::Config));
        shell.hear(FromHost::Answered { request, result: Ok(Reply::Config(Box::new(config))) });
        shell.types("4l");
        let requests = shell.state.take_requests();
        let device = if feedback.contains("target") { "deck" } else { "pads" };
        assert!(
            requests.contains(&Request::Query(Query::Lights(device.into()))),
            "the lights are those of {device}: {requests:?}"
        );
        (0..3).for_each(|_| shell.key(KeyCode::Backspace));
        shell.types(typed);
        shell.key(KeyCode::Enter);
        shell.answered("Play", "usual").first().map(|act| {
            let Act::ProposeBy { args, .. } = act else { panic!("{act:?}") };
            args["changes"][0]["value"].clone()
        })
    };
    let light = "fired = { message_type = 'NoteOn', note = 36, velocity = 12 }";
    let said = serde_json::json!({ "text": "Mute", "target": "deck" });
    assert_eq!(lit(&format!("{{ text = 'Mute', target = 'deck', while_held = true, {light} }}"), ""), Some(said));
    assert_eq!(lit("{ text = 'Mute', target = 'deck' }", ""), None, "it has no light");
    assert_eq!(lit("{ text = 'Mute' }", ""), None, "nor has this one");
    assert_eq!(
        lit(&format!("{{ target = 'deck', {light} }}"), ""),
        Some(serde_json::Value::Null),
        "whose light it was does not stay"
    );
    let given = lit("{ text = 'Mute', target = 'deck' }", "5").unwrap();
    assert_eq!(
        (&given["text"], &given["target"], &given["fired"]["velocity"]),
        (&"Mute".into(), &"deck".into(), &5.into())
    );
}

#[test]
fn what_midi_can_be_sent_to_is_listed_while_such_an_action_is_typed() {
    let mut shell = learning();
    let mut status = host::status("Play");
    let mut lights = status["ports"][1].clone();
    for (key, value) in [("name", "Lights"), ("device", "Lights"), ("direction", "output")] {
        lights[key] = serde_json::json!(value);
    }
    status["ports"].as_array_mut().unwrap().push(lights);
    status["bindings"][0]["output"] =
        serde_json::json!({ "state": "bound", "ports": ["Pads MIDI 1"], "matched_by": null, "problem": null });
    shell.hear(FromHost::Connected(Box::new(host::read(status))));
    shell.key(KeyCode::Enter);
    shell.types("SendMid");
    assert!(!shell.shows("outputs"), "{}", shell.screen());
    shell.types("i");
    assert!(shell.shows(r#"outputs     "pads", "Lights""#), "{}", shell.screen());
}

#[test]
fn what_moves_is_said_before_it_is_known_what_it_is() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("8s");
    shell.answered("Play", "usual");
    assert!(shell.shows("nothing was moved since"), "{}", shell.screen());
    let status = Request::Query(Query::Status);
    let mut result = host::answer(&status, "Play", "usual");
    let Ok(Reply::Status(view)) = &mut result else { panic!("a status is answered with a status") };
    view.ports.ports[0].events += 1;
    shell.hear(FromHost::Answered { request: Box::new(status), result });
    assert!(shell.shows("something moves: it is listed once it rests"), "{}", shell.screen());
}

#[test]
fn why_an_action_is_refused_stands_beside_its_line_and_not_longer() {
    let mut shell = learning();
    shell.key(KeyCode::Enter);
    shell.types("Play 1");
    shell.key(KeyCode::Enter);
    for request in shell.state.take_requests() {
        let result = Err("the keys are wrong:\nline 2".to_owned());
        shell.hear(FromHost::Answered { request: Box::new(request), result });
    }
    assert!(shell.shows("the keys are wrong:") && shell.shows("  | line 2"), "{}", shell.screen());
    shell.key(KeyCode::Enter);
    shell.answered("Play", "usual");
    assert!(shell.shows("Plans that wait for you") && !shell.shows("are wrong"), "{}", shell.screen());
}

#[test]
fn the_help_line_has_the_keys_that_do_something() {
    let mut shell = Shell::told(80, 24, "Play");
    for screen in Screen::ALL {
        shell.state.command(Command::Show(screen));
        let help = layout::help(&shell.state);
        assert!(help.iter().all(|help| shell.state.is_available(help.command)), "{screen:?}: {help:?}");
        assert!(help.iter().any(|help| help.command == Command::Quit), "{screen:?}: {help:?}");
        let last = shell.lines().pop().unwrap();
        for one in &help {
            assert!(last.contains(&format!("{} {}", one.key, one.word)), "{last}");
            // A click there does the same.
            assert_eq!(layout::help_at(&shell.state, one.first, 23), Some(one.command));
        }
    }
    shell.types("?");
    let mut all = String::new();
    for _ in 0..20 {
        all.push_str(&shell.screen());
        shell.key(KeyCode::PageDown);
    }
    assert!(BINDINGS.iter().all(|binding| all.contains(binding.what)), "{all}");
    assert!(all.contains("  unbound   a source without a binding"), "{all}");
}

#[test]
fn the_help_line_says_how_to_read_on_before_a_plan_is_decided() {
    let mut shell = Shell::told(80, 24, "Play");
    let more = |shell: &Shell| layout::help(&shell.state).iter().any(|help| help.word == "more");
    shell.state.command(Command::Show(Screen::Plans));
    shell.answered("Play", "usual");
    assert!(more(&shell), "{}", shell.screen());
    shell.types("a");
    assert!(shell.state.overlay.is_some() && more(&shell), "{}", shell.screen());
    shell.types("n");
    let plans = Box::new(Request::Query(Query::Plans));
    shell.hear(FromHost::Answered { request: plans, result: Ok(Reply::Plans(Vec::new())) });
    assert!(!more(&shell), "there is nothing to read: {}", shell.screen());
}

#[test]
fn a_click_chooses_a_screen_a_line_and_a_key() {
    let mut shell = Shell::told(80, 24, "Play");
    let column = u16::try_from(shell.lines()[1].find("4 Mappings").unwrap()).unwrap();
    shell.state.input(Input::Click(column + 3, 1), shell.now);
    assert_eq!(shell.state.screen, Screen::Mappings);
    let row = shell.lines().iter().position(|line| line.contains("ModeChange")).unwrap();
    shell.state.input(Input::Click(5, u16::try_from(row).unwrap()), shell.now);
    assert!(shell.shows("place       global_mappings/0"), "{}", shell.screen());
    let column = u16::try_from(shell.lines()[23].find("q quit").unwrap()).unwrap();
    shell.state.input(Input::Click(column, 23), shell.now);
    assert!(shell.state.has_ended);
}

#[test]
fn memory_is_bounded_and_a_pause_loses_nothing_that_is_kept() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("2 ");
    for number in 0..3 * MAX_ROWS {
        shell.hear(host::event(&format!("device {number}"), &format!("cc 1 {number}"), &[]));
    }
    assert_eq!(shell.state.live.shown().len(), 0, "they came after the pause");
    assert!(shell.shows("PAUSED, 6000 wait"), "{}", shell.screen());
    shell.types(" ");
    assert_eq!(shell.state.live.shown().len(), MAX_ROWS);
    assert!(shell.state.live.sources.len() <= 256);
    assert!(shell.shows("cc 1 5999"));
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.types("4");
    shell.answered("Play", "usual");
    assert!(shell.state.take_changed());
    for _ in 0..3 {
        shell.passes(Duration::from_millis(250));
        assert!(!shell.state.take_changed());
    }
    shell.hear(host::event("pads", "cc 1 1", &[]));
    assert!(shell.state.take_changed());
}

#[test]
fn the_same_is_asked_once_at_a_time_and_again_if_it_may_be_too_old() {
    let mut shell = Shell::new(80, 24);
    shell.hear(host::connected("Play"));
    let first = shell.state.take_requests();
    let plans = Request::Query(Query::Plans);
    assert_eq!(first.iter().filter(|request| **request == plans).count(), 1);
    let item = || host::items("Play").remove(7);
    shell.hear(item());
    shell.hear(item());
    assert!(!shell.state.take_requests().contains(&plans), "the first was not answered yet");
    let result = host::answer(&plans, "Play", "usual");
    shell.hear(FromHost::Answered { request: Box::new(plans.clone()), result });
    assert_eq!(shell.state.take_requests().iter().filter(|request| **request == plans).count(), 1);
}

#[test]
fn a_host_that_is_lost_is_said_with_the_reason() {
    let mut shell = Shell::told(80, 24, "Play");
    shell.hear(FromHost::Lost("no host runs in ~/.conductor".into()));
    shell.passes(Duration::from_secs(3));
    shell.hear(FromHost::Lost("no host runs in ~/.conductor".into()));
    assert!(shell.lines()[0].contains("NO HOST for 3 s, trying again: no host runs"), "{}", shell.screen());
    shell.hear(host::connected("Play"));
    assert!(!shell.lines()[0].contains("NO HOST"));
}

/// What may happen.
#[derive(Debug, Clone)]
enum Step {
    /// Any key of the table.
    Key(prop::sample::Index),
    Letter(char),
    Paste(String),
    Click(u16, u16),
    Wheel(u16, isize),
    Resize(u16, u16),
    Connected(String),
    Lost(String),
    /// One of what a stream has.
    Item(prop::sample::Index, String),
    Answers(String),
    Refusals(String),
    Time(u64),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,12}",
        any::<String>(),
        Just("\u{1b}[2J\u{9b}\u{202e}\u{200b}\r\nx".to_owned()),
        Just("音楽e\u{301}🎹".repeat(40)),
        Just("word ".repeat(400)),
        Just("line\n".repeat(200)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => index().prop_map(Step::Key),
        2 => any::<char>().prop_map(Step::Letter),
        1 => text().prop_map(Step::Paste),
        3 => (0_u16..170, 0_u16..60).prop_map(|(x, y)| Step::Click(x, y)),
        2 => (0_u16..60, -1_isize..2).prop_map(|(y, by)| Step::Wheel(y, by)),
        1 => (0_u16..170, 0_u16..60).prop_map(|(width, height)| Step::Resize(width, height)),
        2 => (80_u16..170, 24_u16..60).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => text().prop_map(Step::Connected),
        1 => text().prop_map(Step::Lost),
        4 => (index(), text()).prop_map(|(index, text)| Step::Item(index, text)),
        6 => text().prop_map(Step::Answers),
        1 => text().prop_map(Step::Refusals),
        2 => (0_u64..10_000).prop_map(Step::Time),
    ]
}

impl Shell {
    fn goes_on(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Key(index) => {
                let contexts = self.state.contexts();
                let keys: Vec<Key> = bindings(contexts)
                    .filter(|it| it.command != Command::Quit)
                    .flat_map(|it| it.keys)
                    .copied()
                    .collect();
                if !keys.is_empty() {
                    self.state.input(Input::Key(*index.get(&keys)), now);
                }
            }
            Step::Letter(letter) => self.key(KeyCode::Char(letter)),
            Step::Paste(text) => self.state.input(Input::Paste(text), now),
            Step::Click(x, y) => self.state.input(Input::Click(x, y), now),
            Step::Wheel(y, by) => self.state.input(Input::Wheel(y, by), now),
            Step::Resize(width, height) => self.state.input(Input::Resize(width, height), now),
            Step::Connected(text) => self.hear(host::connected(&text)),
            Step::Lost(text) => self.hear(FromHost::Lost(text)),
            Step::Item(index, text) => {
                let mut items = host::items(&text);
                self.hear(items.swap_remove(index.index(items.len())));
            }
            Step::Answers(text) => {
                let level = ["usual", "raised", "privileged"][text.len() % 3];
                drop(self.answered(&text, level));
            }
            Step::Refusals(text) => {
                for request in self.state.take_requests() {
                    self.hear(FromHost::Answered { request: Box::new(request), result: Err(text.clone()) });
                }
            }
            Step::Time(ms) => self.passes(Duration::from_millis(ms)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// That a line fits is looked at where lines are drawn, too: none is longer than the screen is wide.
    #[test]
    fn whatever_comes_every_frame_is_whole(steps in prop::collection::vec(step(), 1..80)) {
        let mut shell = Shell::new(80, 24);
        for step in steps {
            shell.goes_on(step);
            let size = shell.state.size;
            if size.width == 0 || size.height == 0 {
                continue;
            }
            for line in shell.lines() {
                prop_assert_eq!(line.width(), usize::from(size.width), "{:?}", line);
                prop_assert!(!line.chars().any(conductor_terminal::is_hidden), "{:?}", line);
            }
        }
    }
}
