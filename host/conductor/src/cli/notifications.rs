//! `conductor notifications`: lists what features notified agents of, as it is kept in this home.
//!
//! The running host is asked; without one the files are read as they are.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::audit::time;
use super::{CommandResult, Failure, Paths};
use conductor_api::client::{AskError, Client};
use conductor_api::types::StreamQuery;
use conductor_observation::ObservationView;
use conductor_observer::notification_log::{self, Notification, NotificationPage, NotificationQuery, Order};
use conductor_terminal::{self as terminal, Lines, outln};
use serde_json::json;

/// How often the files are looked at where no host runs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(super) struct NotificationsArguments {
    /// Go on with those that come, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Of this feature only: its name, or its whole id
    #[arg(long, value_name = "NAME")]
    feature: Option<String>,
    /// At most this many, the last ones: 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print JSON; with --follow, a notification a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &NotificationsArguments) -> CommandResult {
    let NotificationsArguments { follow, feature, limit, json } = arguments;
    let query = NotificationQuery {
        limit: usize::from(*limit),
        feature: feature.clone(),
        order: Order::Newest,
        ..NotificationQuery::default()
    };
    let mut last = page(&places.home, &query)?;
    last.notifications.reverse();
    if *follow {
        let reader = Reader { home: &places.home, after: last.last, feature: feature.clone(), json: *json };
        reader.print(&last);
        return reader.follow();
    }
    if *json {
        terminal::json(&last)?;
        return Ok(());
    }
    if last.notifications.is_empty() {
        outln!("no notification is kept");
    }
    last.notifications.iter().for_each(print);
    for (feature, count) in &last.left_out {
        outln!("{}", left_out(*count, feature));
    }
    Ok(())
}

/// A page of the running host; without one, of the files.
fn page(home: &Path, query: &NotificationQuery) -> Result<NotificationPage, Failure> {
    match Client::new(home).notifications(query) {
        // One that is stopping may break off. What it would have answered is in the files.
        Err(AskError::NotRunning(_) | AskError::NoDoor | AskError::Failed(_)) => {
            Ok(notification_log::read(home, query)?)
        }
        answer => Ok(answer?),
    }
}

/// Prints what comes after what was printed.
struct Reader<'h> {
    home: &'h Path,
    /// The number of the last that was printed, or is none of those asked for.
    after: u64,
    feature: Option<String>,
    json: bool,
}

impl Reader<'_> {
    /// Prints them as they come, also over restarts of the host.
    fn follow(mut self) -> CommandResult {
        loop {
            self.read_stream()?;
            self.read_on()?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Prints them as the running host reports them, until it stops; returns at once if none runs.
    fn read_stream(&mut self) -> CommandResult {
        // The stream says that there is something to read. It is read from the log, so that nothing is missed that
        // came before the stream was open, or too fast for it, and nothing is printed twice.
        let (sender, stream) = mpsc::channel();
        let home = self.home.to_owned();
        // First those that the stream still holds, then those that come.
        let which = StreamQuery { after: Some("start".into()), kinds: Some("notification".into()) };
        let listening =
            std::thread::spawn(move || Client::new(&home).events(&which, |item| sender.send(item.what).is_ok()));
        for view in stream {
            match view {
                ObservationView::Message { sequence: Some(sequence), .. } if sequence <= self.after => {}
                ObservationView::Message { sequence: None, feature, text, .. } => self.print_unkept(&feature, &text),
                _ => self.read_on()?,
            }
        }
        match listening.join() {
            Ok(Err(error @ (AskError::ApiError(_) | AskError::Confirm(_)))) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Prints what there is after what was printed.
    fn read_on(&mut self) -> CommandResult {
        loop {
            let query =
                NotificationQuery { after: self.after, feature: self.feature.clone(), ..NotificationQuery::default() };
            let page = page(self.home, &query)?;
            self.print(&page);
            if !page.more {
                self.after = self.after.max(page.last);
                return Ok(());
            }
            let Some(end) = page.notifications.last() else { return Ok(()) };
            self.after = end.sequence;
        }
    }

    fn print(&self, page: &NotificationPage) {
        if let (Some(lost @ 1..), false) = (page.lost, self.json) {
            outln!("({lost} more, which are no longer kept)");
        }
        for notification in &page.notifications {
            if self.json {
                terminal::json_line(&json!(notification));
            } else {
                print(notification);
            }
        }
    }

    /// Prints what could not be kept, and is only in the stream.
    fn print_unkept(&self, feature: &str, text: &str) {
        let name = feature.rsplit(':').next();
        if self.feature.as_deref().is_some_and(|wanted| wanted != feature && Some(wanted) != name) {
            return;
        }
        if self.json {
            terminal::json_line(&json!({ "sequence": null, "feature": feature, "text": text }));
        } else {
            print_line(&format!("{:>6}  {:<24}  {feature:<28} {text}", "-", "not kept"));
        }
    }
}

fn print(notification: &Notification) {
    let Notification { sequence, at, feature, text, left_out: count, .. } = notification;
    if *count > 0 {
        outln!("{}", left_out(*count, feature.as_str()));
    }
    let at = time(i64::try_from(*at).unwrap_or(i64::MAX));
    print_line(&format!("{sequence:>6}  {at}  {:<28} {text}", feature.as_str()));
}

/// One line, whatever is in it. The text was escaped when it was kept; what is hidden in it all the same is escaped now.
fn print_line(line: &str) {
    let mut lines = Lines::new();
    lines.push_escaped(line);
    terminal::print(&lines);
}

fn left_out(count: u64, feature: &str) -> String {
    format!("({count} more of {feature} were left out: it said too much at once)")
}
