use conductor_feature::harness::{Failure, Harness};

fn world(status: u16, body: &str) -> Result<Harness, Failure> {
    Ok(Harness::new()?{{others}}
        .config("[models.mine]\nprovider = '{{name}}'\nmodel = 'small'")
        .grant("http = ['api.example.com']")
        .grant("secrets = [{ id = '{{name}}-key', hosts = ['api.example.com'] }]")
        .answers("https://api.example.com/v1/say", status, body))
}

#[test]
fn a_question_is_answered() -> Result<(), Failure> {
    let mut feature = world(200, r#"{"say":"Hello."}"#)?.install()?;
    assert_eq!(feature.ask("mine", "Say hello.")?["text"], "Hello.");
    let asked = feature.asked()?;
    assert_eq!(asked[0]["body"], r#"{"model":"small","text":"Say hello."}"#);
    Ok(())
}

#[test]
fn a_refusal_is_told() -> Result<(), Failure> {
    let mut feature = world(403, "")?.install()?;
    let refused = feature.ask("mine", "Say hello.").unwrap_err();
    assert!(refused.text().contains("the API says 403"), "{refused}");
    Ok(())
}
