//! What the providers of models have in common.
//!
//! A provider says how to ask its API (a function from a request to an HTTP request) and how to read an answer
//! (a [`Format`]). The rest is here: [`lines`] splits a stream into events, [`exchange`] decides what a response is (a
//! stream, a whole answer, a refusal) and hands it to the format, [`answer`] collects what the format finds,
//! [`refusal`] turns statuses into errors, [`fallback`] and [`calls_in_text`] make up for models without tools or
//! schemas, [`pieces`] cuts a whole answer, [`json`] reads strings without copying them, [`json_list`] collects what an
//! API wants back, [`schema`] makes schemas such that every API takes them, and [`request`] has what requests share.
//!
//! Nothing here does I/O, and everything that is kept has a bound.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
pub mod calls_in_text;
pub mod exchange;
pub mod fallback;
pub mod json;
pub mod json_list;
pub mod lines;
pub mod pieces;
pub mod refusal;
pub mod request;
pub mod schema;
#[cfg(not(target_arch = "wasm32"))]
pub mod transcript;

pub use answer::Answer;
pub use exchange::{Exchange, Format};
pub use json::Str;

/// Implements [`Providers`](conductor_feature::Providers) and [`ExchangeDetails`](conductor_feature::ExchangeDetails)
/// for a type: with a [`Format`] to read answers, and a function from a [`Request`](conductor_feature::provider::Request)
/// and [`Abilities`](conductor_feature::details::Abilities) to what is sent.
///
/// Each exchange has an instance of its own, so there is one answer to read at most.
#[macro_export]
macro_rules! provider {
    ($type:ident, $format:ty, $outgoing:path) => {
        ::std::thread_local! {
            static EXCHANGE: ::std::cell::RefCell<$crate::Exchange<$format>> = ::std::cell::RefCell::default();
        }

        impl ::conductor_feature::Providers for $type {
            fn begin(
                request: ::conductor_feature::provider::Request,
            ) -> Result<::conductor_feature::provider::Outgoing, ::conductor_feature::Error> {
                EXCHANGE.with_borrow_mut(|exchange| exchange.begin(request, $outgoing))
            }

            fn head(status: u16, headers: Vec<(String, String)>) {
                EXCHANGE.with_borrow_mut(|exchange| exchange.head(status, headers));
            }

            fn body(bytes: Vec<u8>) -> Vec<::conductor_feature::chat::Event> {
                EXCHANGE.with_borrow_mut(|exchange| exchange.body(&bytes))
            }

            fn end() -> Vec<::conductor_feature::chat::Event> {
                EXCHANGE.with_borrow_mut(|exchange| exchange.end())
            }
        }

        impl ::conductor_feature::ExchangeDetails for $type {
            fn expect(model: ::conductor_feature::details::Abilities) {
                EXCHANGE.with_borrow_mut(|exchange| exchange.expect(model));
            }

            fn get_report() -> ::conductor_feature::details::Report {
                EXCHANGE.with_borrow_mut(|exchange| exchange.report())
            }
        }
    };
}
