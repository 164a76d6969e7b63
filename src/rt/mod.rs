//! What the library needs of the machine it runs on: memory, threads' own state, counts of live objects. No tensors here.

pub mod alloc;
pub mod counters;
pub mod emplace;
pub mod reserve;
pub mod retire;
pub mod thread_state;
