//! The breaker through its public face: one test binary, one module a subject.
#![cfg(not(loom))]

#[cfg(test)]
mod it {
    mod allocation;
    mod blame;
    mod cap;
    mod model;
    mod scenarios;
    mod signals;
    mod states;
    mod support;
}
