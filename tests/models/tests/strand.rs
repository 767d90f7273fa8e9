//! The hand-over of events: nothing is lost, nothing is done twice, the order is kept, and no thread sleeps over work.

#[test]
fn what_two_threads_bring_is_done() {
    conductor_models::nothing_is_forgotten(2);
}

#[test]
fn what_three_threads_bring_is_done() {
    conductor_models::nothing_is_forgotten(3);
}

#[test]
fn the_owner_gets_in_beside_one_who_brings() {
    conductor_models::the_owner_gets_in();
}

#[test]
fn the_owner_does_not_sleep_over_what_was_brought() {
    conductor_models::the_owner_does_not_sleep_over_work();
}
