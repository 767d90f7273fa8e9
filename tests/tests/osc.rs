//! OSC in, OSC out, on loopback: what peers send, what peers get, and that nothing is lost between.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::time::{Duration, Instant};

use conductor_tests::conductor::port;
use conductor_tests::home::Home;
use conductor_tests::liblo::{OscDump, oscsend};
use conductor_tests::osc::{Listener, Tablet, bundle, bytes, free_port, message};
use rosc::OscType;

/// A tablet at this port.
fn tablet(port: u16) -> String {
    format!("[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n")
}

/// A mapping from an OSC trigger to an `OscSend`.
fn mapping(trigger: &str, target: &str, action: &str) -> String {
    format!(
        "[[global_mappings]]\ntrigger = {{ {trigger} }}\n\
         action = {{ type = 'OscSend', target = '{target}', {action} }}\n"
    )
}

/// Everything that the tablet sends, to this target, as one integer at this address.
fn everything(target: &str, address: &str) -> String {
    mapping("type = 'OscPattern', pattern = '/*'", target, &format!("address = '{address}', args = ['{{value:i}}']"))
}

// PRT-5, ENG-1, ACT-1: every type of number that liblo sends, and every placeholder that it prints.
#[test]
fn what_oscsend_sends_is_what_oscdump_prints() {
    let (input, dump) = (free_port(), OscDump::start());
    let home = Home::new(
        &(tablet(input)
            + &mapping(
                "type = 'OscMessage', address = '/fader'",
                &dump.target(),
                "address = '/desk/{name}', args = ['{unit}', '{value}', '{value:i}', '{value:h}', '{value:d}', \
                 '{name}', 'at {value}', 7, 2.5, true, false]",
            )),
    );
    let _host = home.run();

    oscsend(input, "/fader", "f", &["0.25"]);
    oscsend(input, "/fader", "i", &["3"]);
    oscsend(input, "/fader", "d", &["-0.5"]);
    oscsend(input, "/fader", "h", &["5000000000"]);
    oscsend(input, "/fader", "T", &[]);
    oscsend(input, "/fader", "F", &[]);
    oscsend(input, "/fader", "sNIi", &["no number", "12"]);
    oscsend(input, "/fader", "", &[]);
    oscsend(input, "/other", "f", &["0.5"]);
    oscsend(input, "/fader", "f", &["1"]);

    let printed =
        |numbers: &str, at: &str| format!("/desk/tablet ffihdssifTF {numbers} \"tablet\" \"at {at}\" 7 2.500000 #T #F");
    assert_eq!(
        dump.lines(9),
        [
            printed("0.250000 0.250000 0 0 0.250000", "0.25"),
            printed("1.000000 3.000000 3 3 3.000000", "3"),
            printed("0.000000 -0.500000 -1 -1 -0.500000", "-0.5"),
            printed("1.000000 5000000000.000000 2147483647 5000000000 5000000000.000000", "5000000000"),
            printed("1.000000 1.000000 1 1 1.000000", "1"),
            printed("0.000000 0.000000 0 0 0.000000", "0"),
            printed("1.000000 12.000000 12 12 12.000000", "12"),
            printed("0.000000 0.000000 0 0 0.000000", "0"),
            printed("1.000000 1.000000 1 1 1.000000", "1"),
        ]
    );
}

// ACT-1: a plain forward keeps the type and the value of every argument, as another program sees them.
#[test]
fn what_goes_on_is_what_oscsend_sent() {
    let (input, dump) = (free_port(), OscDump::start());
    let forward = "address = '{address}', args = ['{args}']";
    let home = Home::new(&(tablet(input) + &mapping("type = 'OscPattern', pattern = '/*'", &dump.target(), forward)));
    let _host = home.run();
    let sent: [(&str, &[&str]); 7] = [
        ("ifhd", &["-7", "0.1", "9007199254740993", "-2.5"]),
        ("s", &["two words"]),
        ("c", &["x"]),
        ("m", &["0x00903C64"]),
        ("TFNI", &[]),
        ("siTs", &["", "1", "last"]),
        ("", &[]),
    ];
    // To the other program at first, then by way of the host: it prints the same.
    let mut count = 0;
    let mut both = |send: &dyn Fn(u16)| {
        for port in [dump.port(), input] {
            send(port);
            count += 1;
            dump.lines(count);
        }
    };
    for (types, values) in sent {
        both(&|port| oscsend(port, &format!("/{types}"), types, values));
    }
    // What oscsend can't send, oscdump prints.
    let time = OscType::Time(rosc::OscTime { seconds: 3_900_000_000, fractional: 1 << 31 });
    both(&|port| Tablet::to(port).send("/bt", [OscType::Blob(vec![1, 2, 255, 0, 7]), time.clone()]));
    let lines = dump.lines(count);
    assert_eq!(lines.len(), 16);
    for pair in lines.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
}

// ACT-1: single arguments, with their types or as numbers and texts, and what the wildcards of a pattern matched.
#[test]
fn a_message_is_rewritten_by_its_address_and_its_arguments() {
    let (input, out) = (free_port(), Listener::new());
    let home = Home::new(
        &(tablet(input)
            + &mapping(
                "type = 'OscPattern', pattern = '/ch/*/{gain,mute}'",
                &out.target(),
                "address = '/{match2}/{match1}/{arg1}', args = ['{match1}', '{match1:i}', '{match1 + 1:i}', '{arg2}', \
                 '{arg0}', '{arg0 * 2}', 'is {arg1}', '{arg0 -> 0..10}', '{arg9}']",
            )
            .replace("{arg0 -> ", "{arg0 from 0..100 -> ")),
    );
    let _host = home.run();
    let tablet = Tablet::to(input);
    tablet.send("/ch/12/gain", [OscType::Int(50), OscType::String("a b".into()), OscType::Long(1 << 40)]);
    let message = out.message();
    assert_eq!(message.addr, "/gain/12/a_b", "what no address may hold is replaced");
    let (whole, text) = (OscType::Int, |text: &str| OscType::String(text.into()));
    let expected = [
        text("12"),
        whole(12),
        whole(13),
        OscType::Long(1 << 40),
        whole(50),
        OscType::Float(100.0),
        text("is a b"),
        OscType::Float(5.0),
        OscType::Nil,
    ];
    assert_eq!(message.args, expected);
    tablet.send("/ch/left/mute", []);
    let message = out.message();
    assert_eq!(message.addr, "/mute/left/");
    let none = [
        text("left"),
        whole(0),
        whole(1),
        OscType::Nil,
        OscType::Nil,
        OscType::Float(0.0),
        text("is "),
        OscType::Float(0.0),
        OscType::Nil,
    ];
    assert_eq!(message.args, none, "a word is no number, and there are no arguments");
}

// REL-3: as many arguments as a datagram holds.
#[test]
fn ten_thousand_arguments_go_on_whole() {
    let (input, out) = (free_port(), Listener::new());
    let forward = "address = '{address}', args = ['{args}', '{arg15}']";
    let home = Home::new(&(tablet(input) + &mapping("type = 'OscMessage', address = '/many'", &out.target(), forward)));
    let _host = home.run();
    let args: Vec<OscType> = (0..10_000).map(OscType::Int).collect();
    Tablet::to(input).send("/many", args.clone());
    let mut message = out.message();
    assert_eq!(message.args.pop(), Some(OscType::Int(15)));
    assert_eq!(message.args, args);
}

// ENG-5, ENG-7: which messages a trigger means; device before global, priority first, `consume` ends.
#[test]
fn triggers_pick_the_messages_that_they_mean() {
    let (left, right, out) = (free_port(), free_port(), Listener::new());
    let target = out.target();
    let osc = |name: &str, port| {
        format!("[[bindings]]\nalias = '{name}'\nprotocol = 'osc'\ninput = {{ host = '127.0.0.1', port = {port} }}\n")
    };
    let rule = |trigger: &str, address: &str, more: &str| {
        mapping(trigger, &target, &format!("address = '{address}', args = ['{{name}}']")) + more
    };
    let home = Home::new(
        &(osc("left", left)
            + &osc("right", right)
            + &rule("type = 'OscPattern', pattern = '/mixer/[1-4]/{fader,mute}'", "/pattern", "")
            + &rule("type = 'OscMessage', address = '/mixer/1/fader', device = 'right'", "/right", "")
            + &rule("type = 'OscArgRange', address = '/mixer/*/fader', min = 0.5, max = 1", "/loud", "")
            + &rule("type = 'OscMessage', address = '/stop'", "/second", "")
            + &rule("type = 'OscMessage', address = '/stop'", "/first", "priority = 1\nconsume = true\n")),
    );
    let _host = home.run();
    let (left, right) = (Tablet::to(left), Tablet::to(right));

    left.send("/mixer/1/fader", [0.25.into()]);
    assert_eq!(out.line(), "/pattern s \"left\"");
    left.send("/mixer/5/fader", [0.25.into()]);
    left.send("/mixer/4/mute", [OscType::Bool(true)]);
    assert_eq!(out.line(), "/pattern s \"left\"");
    right.send("/mixer/1/fader", [0.75.into()]);
    assert_eq!(out.lines(3), ["/right s \"right\"", "/pattern s \"right\"", "/loud s \"right\""]);
    right.send("/stop", []);
    right.send("/mixer/9/fader", [1.0.into()]);
    assert_eq!(out.lines(2), ["/first s \"right\"", "/loud s \"right\""]);
}

// PRT-5: the messages of a bundle count one by one, at once, however they are nested.
#[test]
fn a_bundle_is_its_messages_in_order() {
    let (input, out) = (free_port(), Listener::new());
    let home = Home::new(&(tablet(input) + &everything(&out.target(), "/n")));
    let _host = home.run();
    const AT_ONCE: (u32, u32) = (0, 1);
    const IN_2036: (u32, u32) = (u32::MAX, 0);
    let n = |n: i32| message("/n", [n.into()]);

    let inner = bundle(IN_2036, [n(2), bundle(AT_ONCE, [n(3)]), n(4)]);
    Tablet::to(input).send_bytes(&bytes(&bundle(AT_ONCE, [n(1), inner, bundle(AT_ONCE, []), n(5)])));

    assert_eq!((1..=5).map(|_| out.number()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

/// Numbers that look random and are the same in every run (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.to_be_bytes()[0]
    }
}

/// Packets that make no sense, each in its own way.
fn hostile_packets() -> Vec<Vec<u8>> {
    let whole = bytes(&message("/fader/1", [0.5.into(), "text".into()]));
    let deep = (0..100).fold(message("/deep", []), |inner, _| bundle((0, 1), [inner]));
    let number = |number: OscType| bytes(&message("/fader", [number]));
    let mut packets = vec![
        Vec::new(),
        b"#bundle\0".to_vec(),
        b"#bundle\0\0\0\0\0\0\0\0\x01\xff\xff\xff\xff".to_vec(),
        b"#bundle\0\0\0\0\0\0\0\0\x01\x7f\xff\xff\xfc/a\0\0".to_vec(),
        b"fader\0\0\0,\0\0\0".to_vec(),
        b"/fader\0\0,q\0\0".to_vec(),
        b"/fader\0\0,iiii\0\0\0\0\0\0\x01".to_vec(),
        b"/fader\0\0,b\0\0\xff\xff\xff\xf0".to_vec(),
        b"/fader\0\0,s\0\0no end".to_vec(),
        b"/fader\0\0,[[[[\0\0\0".to_vec(),
        b"/\xff\xfe\0,i\0\0\0\0\0\x01".to_vec(),
        bytes(&deep),
        number(OscType::Float(f32::NAN)),
        number(OscType::Float(f32::INFINITY)),
        number(OscType::Double(f64::NEG_INFINITY)),
        [&b"/fader\0\0,"[..], &[b'['; 60_000], &[0; 3]].concat(),
        [&b"/fader\0\0,"[..], &[b'['; 30_000], &[b']'; 30_000], &[0; 3]].concat(),
        b"/fader\0\0,i[i\0\0\0\0\0\0\0\x01\0\0\0\x02".to_vec(),
        vec![b'/'; 65_000],
    ];
    // Cut off right behind the address it is whole, as old senders have it.
    const ADDRESS: usize = "/fader/1\0\0\0\0".len();
    packets.extend((1..whole.len()).filter(|length| *length != ADDRESS).map(|length| whole[..length].to_vec()));
    let mut dice = Dice(7);
    packets.extend((0..200).map(|_| {
        let length = usize::from(dice.roll());
        // Never a slash or a bundle at the front, which could by chance be something.
        std::iter::once(0x80).chain((0..length).map(|_| dice.roll())).collect::<Vec<_>>()
    }));
    packets
}

// REL-1, PRT-5: bytes that make no sense are counted and cost nothing else.
#[test]
fn hostile_packets_are_counted_and_the_good_ones_go_on() {
    let (input, out) = (free_port(), Listener::new());
    let home = Home::new(&(tablet(input) + &everything(&out.target(), "/n")));
    let host = home.run();
    let tablet = Tablet::to(input);

    let packets = hostile_packets();
    for (n, packet) in (0..).zip(&packets) {
        tablet.send_bytes(packet);
        tablet.send("/n", [OscType::Int(n)]);
        assert_eq!(out.number(), n, "after {:?}", String::from_utf8_lossy(packet));
    }

    let sent = packets.len();
    host.status_when(|status| port(status, "tablet").is_some_and(|port| port["malformed"] == sent));
    let ports = home.json(&["ports", "--json"]);
    let tablet = port(&ports, "tablet").unwrap();
    assert_eq!(tablet["events"], sent, "{tablet}");
    assert_eq!(tablet["state"], "open");
    assert_eq!(host.status()["failures"], 0);
}

/// How many packets the kernel has dropped on UDP ports, by local port: the sockets' queues were full.
fn kernel_drops(port: u16) -> String {
    let table = fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let local = format!("0100007F:{port:04X}");
    let found = table.lines().find(|line| line.contains(&local)).and_then(|line| line.split_whitespace().last());
    format!("the kernel dropped {} packets to port {port}", found.unwrap_or("?"))
}

// PERF-2's promise of delivery: 12 000 discrete events per second in bursts of 64, all of them, in order. What fits
// the sockets' buffers is never lost, however long a reader waits for a processor; so that is how many are
// under way at once, and no more.
#[test]
fn every_event_of_every_burst_arrives_in_order() {
    const BURST: i32 = 64;
    const BURSTS: i32 = 188;
    // The kernel counts 832 bytes for a datagram like these, and a socket that asks for nothing has 208 KiB.
    const UNDER_WAY: i32 = 3 * BURST;
    let pause = Duration::from_secs(1) / 12_000 * BURST.unsigned_abs();
    let (input, out) = (free_port(), Listener::new());
    let home = Home::new(&(tablet(input) + &everything(&out.target(), "/n")));
    let host = home.run();
    let tablet = Tablet::to(input);
    let output = out.target().rsplit_once(':').unwrap().1.parse().unwrap();
    let arrives = |n: i32| assert_eq!(out.number(), n, "{}; {}", kernel_drops(input), kernel_drops(output));

    let mut arrived = 0;
    for burst in 0..BURSTS {
        let next = Instant::now() + pause;
        for n in 0..BURST {
            tablet.send("/n", [OscType::Int(burst * BURST + n)]);
        }
        while (burst + 2) * BURST - arrived > UNDER_WAY {
            arrives(arrived);
            arrived += 1;
        }
        // The pace of a source that does not wait for its listener.
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    (arrived..BURST * BURSTS).for_each(arrives);

    // What has been done is counted behind it.
    let (status, _) = host.status_when(|status| status["events"] == BURST * BURSTS);
    assert_eq!(status["failures"], 0, "{status:#}");
    assert_eq!(port(&status, "tablet").unwrap()["lost"], 0);
}

// PRT-5: old senders leave the type tag string out, and a sender may address several methods at once (OSC 1.0).
#[test]
fn old_senders_and_address_patterns_are_understood() {
    let (input, out) = (free_port(), Listener::new());
    let rule = |address: &str, says: &str| {
        mapping(
            &format!("type = 'OscMessage', address = '{address}'"),
            &out.target(),
            &format!("address = '{says}', args = []"),
        )
    };
    let rules = rule("/ch/1/mute", "/one") + &rule("/ch/2/mute", "/two") + &rule("/ch/3/mute", "/three");
    let home = Home::new(&(tablet(input) + &rules));
    let host = home.run();
    let tablet = Tablet::to(input);

    tablet.send_bytes(b"/ch/3/mute\0\0");
    assert_eq!(out.line(), "/three ");
    tablet.send("/ch/{1,2}/mute", [OscType::Int(1)]);
    assert_eq!(out.lines(2), ["/one ", "/two "]);
    tablet.send("/ch/*/mute", []);
    assert_eq!(out.lines(3), ["/one ", "/two ", "/three "]);

    tablet.send_bytes(b"/ch/3/mute\0");
    host.status_when(|status| port(status, "tablet").is_some_and(|port| port["malformed"] == 1));
    for command in ["ports", "status"] {
        let shown = home.conductor(&[command]);
        assert!(shown.out.contains("1 malformed"), "{command}: {}", shown.out);
    }
    let doctor = home.conductor(&["doctor"]);
    assert!(doctor.out.contains("made no sense"), "{}", doctor.out);
}

// CFG-2: mistakes against the schema and mistakes that only a feature finds are reported in one run.
#[test]
fn every_mistake_is_told_in_one_run() {
    let home = Home::new(
        "[[global_mappings]]\ntrigger = { type = 'Note', note = 200 }\naction = { type = 'Suppress' }\n\
         [[global_mappings]]\ntrigger = { type = 'Note', note = 1 }\n\
         action = { type = 'OscSend', target = '192.0.2.1:9', adress = '/a', address = 'a', args = ['{nothing}'] }\n\
         [[global_mappings]]\ntrigger = { type = 'Note', note = 2 }\naction = { type = 'OscSends', target = '127.0.0.1:9' }\n\
         [[bindings]]\nalias = 'pads'\n",
    );
    let end = home.conductor(&["config", "validate"]);
    assert_eq!(end.code, Some(2));
    for part in [
        ":2:35: `note` is out of range: 200",
        "OscSend: 192.0.2.1:9 is not granted",
        "OscSend: unknown key `adress`",
        "the address \"a\" must start with `/`",
        "{nothing}",
        "there is no action \"OscSends\"",
        "no port is ever \"pads\"",
    ] {
        assert!(end.err.contains(part), "no {part:?} in\n{}", end.err);
    }
}

// ACT-2, ACT-4: a target that is away costs the others nothing.
#[test]
fn a_dead_target_keeps_nothing_from_the_living() {
    let (input, dead, out) = (free_port(), free_port(), Listener::new());
    let target = out.target();
    let several = format!(
        "[[global_mappings]]\ntrigger = {{ type = 'OscMessage', address = '/n' }}\n\
         action = {{ type = 'OscSend', target = ['127.0.0.1:{dead}', '{target}'], address = '/both', args = ['{{value:i}}'] }}\n"
    );
    let home = Home::new(&(tablet(input) + &everything(&format!("127.0.0.1:{dead}"), "/dead") + &several));
    let host = home.run();
    let tablet = Tablet::to(input);

    for n in 0..50 {
        tablet.send("/n", [OscType::Int(n)]);
        assert_eq!(out.number(), n);
    }
    let feature = host.feature_when("osc-output", |feature| feature["failed"].as_u64() > Some(0));
    assert_eq!(feature["last_failure"], format!("unavailable: nothing listens at 127.0.0.1:{dead}"));
    assert_eq!(feature["trapped"], 0);
}

// PRT-5: loopback only, unless the configuration says otherwise.
#[test]
#[cfg(target_os = "linux")]
fn only_loopback_is_heard_unless_the_configuration_says_otherwise() {
    let (shy, open, out) = (free_port(), free_port(), Listener::new());
    let home = Home::new(
        &(tablet(shy)
            + &format!(
                "[[bindings]]\nalias = 'open'\nprotocol = 'osc'\ninput = {{ host = '0.0.0.0', port = {open} }}\n"
            )
            + &everything(&out.target(), "/n")),
    );
    let _host = home.run();
    // Another address of this machine, as a stranger's would be.
    let elsewhere = |port| Tablet::at(([127, 0, 0, 2], port).into());

    elsewhere(shy).try_send("/n");
    elsewhere(open).send("/n", [OscType::Int(1)]);
    assert_eq!(out.number(), 1);
    Tablet::to(shy).send("/n", [OscType::Int(2)]);
    assert_eq!(out.number(), 2, "nothing came in between");
}
