//! Conversations of a host that has no model: what is kept, what is refused, and the stream of events.

use conductor_api::client::{AskError, Client};
use conductor_api::types::{ApprovalAnswer, ConversationEvents, Say};
use conductor_chat::conversations::NO_ANSWER;
use conductor_chat::record::{ChatEvent, Outcome};
use conductor_chat::store::ConversationQuery;
use serde_json::json;

use super::client::{Lines, get, get_by, post, post_by};
use super::{SHOW, Stage, code};

fn say(text: &str) -> Say {
    Say { text: text.into(), model: None }
}

/// Deletes a conversation whose turn has ended.
fn deleted(client: &Client, id: u64) {
    // The turn may not be off the list yet.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while let Err(error) = client.delete_conversation(id) {
        assert!(std::time::Instant::now() < deadline, "{error}");
    }
}

// API-1, LLM-4
#[test]
fn a_conversation_is_kept_followed_forked_and_deleted() {
    let stage = Stage::new(SHOW);
    let client = Client::new(stage.home());
    assert_eq!(client.conversations(&ConversationQuery::default()).unwrap(), []);
    let id = client.begin_conversation(None).unwrap().id;
    assert_eq!(client.say(id, &say("is the octopus there?")).unwrap().after, 0);
    let mut followed = Vec::new();
    let which = ConversationEvents { after: 0, follow: true };
    client
        .conversation_events(id, &which, |one| {
            followed.push(one);
            !matches!(followed.last().unwrap().event, ChatEvent::TurnEnded { .. })
        })
        .unwrap();
    let [first, end] = &followed[..] else { panic!("{followed:?}") };
    assert!(matches!(&first.event, ChatEvent::Message { text } if text == "is the octopus there?"));
    let ChatEvent::TurnEnded { outcome: Outcome::Failed, why: Some(why) } = &end.event else { panic!("{end:?}") };
    assert!(why.contains("there is no model to ask"), "{why}");

    let mut read = Vec::new();
    let all = ConversationEvents::default();
    client
        .conversation_events(id, &all, |one| {
            read.push(one);
            true
        })
        .unwrap();
    assert_eq!(read, followed, "without `follow` it ends with what there is");
    let query = ConversationQuery { limit: Some(5), search: Some("octopus".into()) };
    let found = client.conversations(&query).unwrap();
    assert!(found.len() == 1 && found[0].found.as_ref().unwrap().contains("octopus"), "{found:?}");
    let fork = client.fork_conversation(id, Some(1)).unwrap();
    assert_eq!((fork.last, fork.title.as_str()), (2, "is the octopus there?"));
    deleted(&client, id);
    assert_eq!(client.conversation(fork.id).unwrap(), fork);
    assert!(client.usage(conductor_chat::store::usage::UsageBy::Day).unwrap().is_empty());
    assert!(client.models().unwrap().is_empty());
}

// API-1
#[test]
fn following_a_conversation_ends_when_it_is_deleted() {
    let stage = Stage::new(SHOW);
    let client = Client::new(stage.home());
    let id = client.begin_conversation(None).unwrap().id;
    client.say(id, &say("hello")).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let follower = Client::new(stage.home());
    std::thread::spawn(move || {
        let which = ConversationEvents { after: 0, follow: true };
        follower.conversation_events(id, &which, |one| tell.send(one.event).is_ok())
    });
    let wait = std::time::Duration::from_secs(60);
    while !matches!(told.recv_timeout(wait).unwrap(), ChatEvent::TurnEnded { .. }) {}
    deleted(&client, id);
    let more = told.recv_timeout(wait);
    assert_eq!(more.err(), Some(std::sync::mpsc::RecvTimeoutError::Disconnected), "the stream is still open");
}

// LLM-8, API-1: what an API says may repeat what was asked, and asking it costs money. Both are the owner's.
#[test]
fn models_are_checked_and_their_words_read_by_the_owner_alone() {
    let stage = Stage::with_http(&format!("{SHOW}\n[models.m]\nprovider = 'gone'\nmodel = 'm'\n"));
    let home = stage.home();
    for token in ["api-control.token", "api-read.token", "mcp.token"] {
        let refused = post_by(home, token, "/v1/models/m/check", &json!({}));
        assert_eq!(code(&refused), (403, "forbidden"), "{token}");
    }
    let (status, health) = post(home, "/v1/models/m/check", &json!({}));
    let why = health["error"].as_str().unwrap();
    assert!(status == 200 && why.contains("no feature has the provider \"gone\""), "{health}");
    let changes = "?after=start&kinds=model";
    assert_eq!(Lines::open(home, changes).next()["error"], why);
    assert_eq!(get(home, "/v1/models").1[0]["error"], why);
    for token in ["api-control.token", "api-read.token"] {
        assert_eq!(Lines::open_by(home, token, changes).next()["error"], NO_ANSWER, "{token}");
        assert_eq!(get_by(home, token, "/v1/models").1[0]["error"], NO_ANSWER, "{token}");
    }
}

// API-1
#[test]
fn what_is_refused_of_conversations_says_why() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let client = Client::new(home);
    for of in ["7", "x", "7/events", "-1", "9223372036854775808", "18446744073709551615/events"] {
        assert_eq!(code(&get(home, &format!("/v1/conversations/{of}"))), (404, "not_found"), "{of}");
    }
    assert_eq!(code(&post(home, "/v1/conversations", &json!({ "model": "big" }))), (404, "not_found"));
    assert_eq!(client.conversations(&ConversationQuery::default()).unwrap(), [], "none was begun");
    assert_eq!(get(home, "/v1/conversations?search=a%00b"), (200, json!([])));
    assert_eq!(code(&get(home, "/v1/conversations?limit=0")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/usage?by=week")), (400, "bad_request"));
    assert_eq!(code(&post(home, "/v1/conversations/7/turns", &json!({ "text": "x" }))), (404, "not_found"));
    assert_eq!(code(&post(home, "/v1/models/x/check", &json!({}))), (404, "not_found"));
    let id = client.begin_conversation(None).unwrap().id;
    let of = |what: &str| format!("/v1/conversations/{id}/{what}");
    assert_eq!(code(&post(home, &of("turns"), &json!({ "text": "" }))), (422, "bad_request"));
    let unknown = json!({ "text": "x", "model": "big" });
    assert_eq!(code(&post(home, &of("turns"), &unknown)), (404, "not_found"));
    assert_eq!(code(&post(home, &of("cancel"), &json!({}))), (409, "conflict"));
    let answer = ApprovalAnswer { id: "x".into(), agreed: true, phrase: None };
    assert!(matches!(client.approve(id, &answer), Err(AskError::ApiError(why)) if why.contains("no approval")));
    assert_eq!(client.conversation(id).unwrap().last, 0, "nothing of it is kept");
}
