use conductor_feature::harness::{Failure, Harness, json};

/// A mapping, a pad, and what leaves for the target.
#[test]
fn a_pad_sends_text() -> Result<(), Failure> {
    let config = r#"
        [[global_mappings]]
        trigger = { type = "Note", note = 36 }
        action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
    "#;
    let mut feature = Harness::new()?{{others}}.config(config).grant(r#"udp = ["127.0.0.1:9000"]"#).install()?;
    feature.play("0ms pads note-on 36 100\n+10ms pads note-on 37 100")?;
    let sent = feature.sent()?;
    assert_eq!(sent.len(), 1, "only note 36 is mapped: {sent:?}");
    assert_eq!((sent[0].to.as_str(), sent[0].bytes.as_slice()), ("127.0.0.1:9000", &b"pad 100\n"[..]));
    Ok(())
}

/// What is not granted is refused when the mapping is read, not when the pad is hit.
#[test]
fn a_target_without_a_grant_is_refused() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.grant(r#"udp = ["127.0.0.1:9000"]"#).install()?;
    let refused = feature.prepare("{{Type}}", json!({ "target": "192.0.2.1:9000" })).unwrap_err();
    assert!(refused.text().contains("not granted"), "{refused}");
    Ok(())
}
