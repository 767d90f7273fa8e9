use conductor_feature::harness::{Failure, Harness};

#[test]
fn only_loud_notes_are_told_of() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.grant(r#"observe_events = ["*"]"#).install()?;
    feature.play("0ms pads note-on 36 127\n+10ms pads note-on 37 40\n+10ms pads note-off 36")?;
    let said: Vec<String> = feature.said()?.into_iter().map(|message| message.text).collect();
    assert_eq!(said, ["pads plays note 36 at 127"]);
    Ok(())
}

#[test]
fn other_devices_stay_unheard_without_a_grant() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.grant(r#"observe_events = ["pads"]"#).install()?;
    feature.play("0ms faders note-on 36 127\n+10ms pads note-on 37 127")?;
    assert_eq!(feature.said()?.len(), 1);
    Ok(())
}
