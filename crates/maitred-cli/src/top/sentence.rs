//! In a sentence what the server says is wrong with it.
//!
//! Promises: only what the server has said; nothing is concluded from times. Leaves out: what keeps requests from being faster. Where the server
//! tells that, this is the place to show it.

use super::data::View;

/// The sentence; none if the server says nothing of the kind.
pub(super) fn sentence(view: &View) -> Option<String> {
    if view.is_draining {
        return Some(format!("The server drains: {} connections are open.", view.connections));
    }
    if let Some(scarce) = &view.low_on {
        return Some(format!("There is little left of: {scarce}. Idle connections are closed."));
    }
    if !view.is_on {
        return Some("Statistics are off: there are no times ('maitred ctl set statistics on').".to_owned());
    }
    let pool = view.pools.iter().find(|pool| pool.stuck > 0)?;
    let threads = if pool.stuck == 1 { "1 thread".to_owned() } else { format!("{} threads", pool.stuck) };
    Some(format!("Stuck in requests that have timed out: {threads} of pool {}.", pool.name))
}

#[cfg(test)]
mod tests {
    use super::super::data::{Memory, tests::answers};
    use super::*;

    #[test]
    fn what_the_server_says_is_told() {
        let mut view = Memory::default().view(&answers());
        let told = |view: &View| sentence(view).unwrap_or_default();
        assert_eq!(told(&view), "Stuck in requests that have timed out: 1 thread of pool default.");
        view.pools.clear();
        assert_eq!(sentence(&view), None);
        view.is_on = false;
        assert!(told(&view).starts_with("Statistics are off"));
        view.low_on = Some("descriptors".to_owned());
        assert!(told(&view).contains("of: descriptors"));
        view.is_draining = true;
        assert_eq!(told(&view), "The server drains: 12 connections are open.");
    }
}
