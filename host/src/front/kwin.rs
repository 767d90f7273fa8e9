//! The application in front under KWin, KDE's compositor. It tells no Wayland client of others' windows, but runs
//! scripts that know them (<https://develop.kde.org/docs/plasma/kwin/api/>). Ours, `kwin.js`, calls us over the
//! session's bus whenever another window is active, or the active one has another title.
//!
//! A host that is killed leaves its script behind: it calls an address that nobody has any more, until KWin ends.

use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::time::Duration;
use std::{env, process};

use async_io::{Timer, block_on};
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use tempfile::NamedTempFile;
use zbus::fdo::DBusProxy;
use zbus::message::Type;
use zbus::names::OwnedUniqueName;
use zbus::{Connection, MatchRule, Message, MessageStream, connection};

use super::desktop::{End, NotTold, is_wayland};
use super::names::{application_id, program};
use super::{Application, Front};

/// KWin's name on the bus.
const KWIN: &str = "org.kde.KWin";

/// How long KWin may take to answer. Its user waits, too, when it takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells what is in front until it is over.
///
/// # Errors
/// Why KWin does not tell it, or does so no longer; [`NotTold::NoSuchDisplay`] where no KWin is.
pub(super) fn follow(end: &End, tell: &mut dyn FnMut(Front)) -> Result<(), NotTold> {
    if !is_wayland() {
        return Err(NotTold::NoSuchDisplay);
    }
    block_on(async {
        let Some(mut script) = unless_over(end, Script::load()).await? else { return Ok(()) };
        let followed = unless_over(end, script.follow(tell)).await;
        script.unload().await;
        followed.map(|_| ())
    })
}

/// What `work` comes to; none if it is over before.
async fn unless_over<T>(end: &End, work: impl Future<Output = Result<T, NotTold>>) -> Result<Option<T>, NotTold> {
    match select(pin!(end.over()), pin!(work)).await {
        Either::Left((over, _)) => over.map(|()| None).map_err(lost),
        Either::Right((done, _)) => done.map(Some),
    }
}

fn lost(error: impl std::fmt::Display) -> NotTold {
    NotTold::Because(format!("KWin does not tell which application is in front: {error}"))
}

/// Our script in KWin.
struct Script {
    bus: Connection,
    kwin: OwnedUniqueName,
    name: String,
    /// What comes over the bus.
    messages: MessageStream,
    /// Its text, until KWin has read it.
    text: Option<NamedTempFile>,
}

impl Script {
    /// Has KWin load the script and run it.
    async fn load() -> Result<Self, NotTold> {
        // Without a bus there is no KDE.
        let opened = async { connection::Builder::session()?.method_timeout(PATIENCE).build().await };
        let Ok(bus) = opened.await else { return Err(NotTold::NoSuchDisplay) };
        let names = DBusProxy::new(&bus).await.map_err(lost)?;
        let messages = MessageStream::from(&bus);
        let ends = MatchRule::builder().msg_type(Type::Signal).interface("org.freedesktop.DBus");
        let ends = ends.and_then(|rule| rule.member("NameOwnerChanged")).and_then(|rule| rule.add_arg(KWIN));
        names.add_match_rule(ends.map_err(lost)?.build()).await.map_err(lost)?;
        let owner = names.get_name_owner(KWIN.try_into().map_err(lost)?).await;
        let kwin = owner.map_err(|_| NotTold::NoSuchDisplay)?;

        let text = written(bus.unique_name().map_or("", |name| name.as_str())).map_err(lost)?;
        let name = format!("conductor-front-{}", process::id());
        let mut script = Self { bus, kwin, name, messages, text: None };
        // One may be there of a host that was killed and had this number.
        script.unload().await;
        let path = text.path().to_str().ok_or_else(|| lost("the path of the folder for temporary files is no text"))?;
        script.call("loadScript", &(path, &script.name)).await.map_err(lost)?;
        script.text = Some(text);
        script.call("start", &()).await.map_err(lost)?;
        Ok(script)
    }

    /// Tells what the script tells, until KWin ends.
    async fn follow(&mut self, tell: &mut dyn FnMut(Front)) -> Result<(), NotTold> {
        loop {
            let message = match (&self.text, self.messages.next()) {
                (None, next) => next.await,
                // It tells what is in front as soon as it runs.
                (Some(_), next) => match select(next, Timer::after(PATIENCE)).await {
                    Either::Left((message, _)) => message,
                    Either::Right(_) => return Err(lost("it did not run the script that tells it")),
                },
            };
            let message = message.ok_or_else(|| lost("the bus is gone"))?.map_err(lost)?;
            if let Some(front) = self.told(&message).await? {
                self.text = None;
                tell(front);
            }
        }
    }

    /// What a message tells of the front; none if it tells of something else.
    async fn told(&self, message: &Message) -> Result<Option<Front>, NotTold> {
        let header = message.header();
        let member = header.member().map_or("", |member| member.as_str());
        match message.message_type() {
            Type::Signal if member == "NameOwnerChanged" => Err(lost("it has ended")),
            Type::MethodCall if member == "IsInFront" && header.sender() == Some(&*self.kwin) => {
                let window = message.body().deserialize().map_err(lost)?;
                self.bus.reply(&header, &()).await.map_err(lost)?;
                Ok(Some(front(window)))
            }
            // Anybody on the bus can call us.
            Type::MethodCall => {
                let refused = ("org.freedesktop.DBus.Error.AccessDenied", "only KWin knows what is in front");
                self.bus.reply_error(&header, refused.0, &refused.1).await.map_err(lost)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Takes the script out of KWin, if it is there.
    async fn unload(&self) {
        if let Err(error) = self.call("unloadScript", &(&self.name)).await {
            tracing::debug!("KWin did not unload the script {}: {error}", self.name);
        }
    }

    async fn call<B: serde::Serialize + zbus::zvariant::DynamicType>(
        &self,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message> {
        self.bus.call_method(Some(&self.kwin), "/Scripting", Some("org.kde.kwin.Scripting"), method, body).await
    }
}

/// The script's file, with the address that it calls. Whoever runs the desktop can read it, and nobody else.
fn written(listener: &str) -> std::io::Result<NamedTempFile> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, Into::into);
    let mut file = tempfile::Builder::new().prefix("conductor-front-").suffix(".js").tempfile_in(folder)?;
    write!(file, "const listener = \"{listener}\";\n{}", include_str!("kwin.js"))?;
    Ok(file)
}

/// The window that the script tells of: its desktop file (an application id, under Wayland), class, and instance, its
/// title, its process. All are empty where none is active.
fn front((id, class, instance, title, pid): (String, String, String, String, String)) -> Front {
    let program = pid.parse().ok().and_then(program).unwrap_or_default();
    let names = application_id(&id).into_iter().chain(application_id(&class)).chain([instance, program]);
    Application::named(names, title).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_goes_by_its_desktop_file_its_class_and_its_program() {
        let of = |window: [&str; 5]| {
            let [id, class, instance, title, pid] = window.map(str::to_owned);
            front((id, class, instance, title, pid))
        };
        let Front::Application(paint) = of(["org.kde.paint", "paint", "Easel", "a.png", ""]) else { panic!() };
        assert_eq!(
            (paint.names, paint.title.as_str()),
            (["paint", "org.kde.paint", "Easel"].map(str::to_owned).to_vec(), "a.png")
        );
        let here = process::id().to_string();
        let Front::Application(test) = of(["", "", "", "", &here]) else { panic!() };
        assert!(!test.name().is_empty());
        assert_eq!(of(["", "", "", "", ""]), Front::Nothing);
        assert_eq!(of(["", "", "", "", "no number"]), Front::Nothing);
    }
}
