//! The breaker through its public face: one test binary, one module a subject.
#![cfg(not(loom))]

#[cfg(test)]
mod it {
    mod blame;
    mod cap;
    mod scenarios;
    mod signals;
    mod states;
    mod support;
}
