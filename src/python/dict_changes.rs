//! Whether a dict has changed since it was looked at.
//!
//! CPython 3.10 and 3.11 number the changes of each dict. Later versions tell those who watch a dict of each change, before it
//! is made: https://docs.python.org/3/c-api/dict.html#c.PyDict_Watch.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU64, Ordering};

/// The changes of one dict.
pub struct Changes {
    /// `count` when the dict was last looked at.
    known: AtomicU64,
    #[cfg(Py_3_12)]
    watch: Option<watch::Watch>,
}

impl Changes {
    /// Of a dict that is known as it is now.
    pub fn of(dict: &Bound<PyDict>) -> Changes {
        let changes = Changes {
            known: AtomicU64::new(0),
            #[cfg(Py_3_12)]
            watch: watch::Watch::of(dict),
        };
        changes.note(changes.count(dict));
        changes
    }
    /// A number that moves with each change of the dict; 0 if nobody counts.
    pub fn count(&self, dict: &Bound<PyDict>) -> u64 {
        #[cfg(Py_3_12)]
        {
            let _ = dict;
            self.watch.as_ref().map_or(0, watch::Watch::count)
        }
        #[cfg(not(Py_3_12))]
        version(dict)
    }
    /// Whether nothing has changed since the dict was noted.
    pub fn is_known(&self, count: u64) -> bool {
        count != 0 && count == self.known.load(Ordering::Relaxed)
    }
    /// The dict is known as it was at this count.
    pub fn note(&self, count: u64) {
        self.known.store(count, Ordering::Relaxed);
    }
}

#[cfg(not(Py_3_12))]
fn version(dict: &Bound<PyDict>) -> u64 {
    use pyo3::ffi;
    #[repr(C)]
    struct Head {
        base: ffi::PyObject,
        used: ffi::Py_ssize_t,
        version: u64,
    }
    // SAFETY: in these versions a dict begins with these fields, and the lock is held.
    unsafe { (*dict.as_ptr().cast::<Head>()).version }
}

#[cfg(Py_3_12)]
mod watch {
    use pyo3::ffi::{self, PyObject};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use std::collections::HashMap;
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, LazyLock, Mutex, OnceLock};

    type Callback = unsafe extern "C" fn(c_int, *mut PyObject, *mut PyObject, *mut PyObject) -> c_int;
    unsafe extern "C" {
        fn PyDict_AddWatcher(callback: Callback) -> c_int;
    }
    /// `PyDict_EVENT_DEALLOCATED`.
    const DEALLOCATED: c_int = 5;

    /// The counts of the dicts that are watched, by address.
    static COUNTS: LazyLock<Mutex<HashMap<usize, Arc<AtomicU64>>>> = LazyLock::new(Mutex::default);

    fn with_counts<T>(f: impl FnOnce(&mut HashMap<usize, Arc<AtomicU64>>) -> T) -> T {
        f(&mut COUNTS.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// SAFETY: called by the interpreter, before it changes a dict that is watched.
    unsafe extern "C" fn changes(event: c_int, dict: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> c_int {
        with_counts(|counts| {
            if let Some(count) = counts.get(&(dict as usize)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            if event == DEALLOCATED {
                counts.remove(&(dict as usize));
            }
        });
        0
    }

    /// The number under which the interpreter knows this watcher; None if it has too many.
    fn watcher() -> Option<c_int> {
        static ID: OnceLock<Option<c_int>> = OnceLock::new();
        *ID.get_or_init(|| {
            // SAFETY: the lock is held, as wherever a dict is at hand.
            let id = unsafe { PyDict_AddWatcher(changes) };
            if id < 0 {
                // SAFETY: as above.
                unsafe { ffi::PyErr_Clear() };
            }
            (id >= 0).then_some(id)
        })
    }

    /// A dict that is watched while this lives.
    pub struct Watch {
        dict: usize,
        count: Arc<AtomicU64>,
    }

    impl Watch {
        /// None where changes are not told: of a dict that shares its keys with those of other instances, whose values a store to an
        /// attribute may change without a call (CPython 3.13).
        pub fn of(dict: &Bound<PyDict>) -> Option<Watch> {
            // SAFETY: a live dict.
            if unsafe { !(*dict.as_ptr().cast::<ffi::PyDictObject>()).ma_values.is_null() } {
                return None;
            }
            let (id, address) = (watcher()?, dict.as_ptr() as usize);
            // SAFETY: a live dict; the lock is held.
            if unsafe { ffi::PyDict_Watch(id, dict.as_ptr()) } < 0 {
                // SAFETY: as above.
                unsafe { ffi::PyErr_Clear() };
                return None;
            }
            let count =
                with_counts(|counts| counts.entry(address).or_insert_with(|| Arc::new(AtomicU64::new(1))).clone());
            Some(Watch { dict: address, count })
        }
        pub fn count(&self) -> u64 {
            self.count.load(Ordering::Relaxed)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            // SAFETY: it has no preconditions.
            let locked = unsafe { ffi::PyGILState_Check() != 0 };
            let last = with_counts(|counts| {
                // Two owners: the table and this one. A dict that is gone has left the table.
                let last = locked
                    && Arc::strong_count(&self.count) == 2
                    && counts.get(&self.dict).is_some_and(|c| Arc::ptr_eq(c, &self.count));
                if last {
                    counts.remove(&self.dict);
                }
                last
            });
            if let (true, Some(id)) = (last, watcher()) {
                // SAFETY: the dict is in the table, so it lives; the lock is held.
                unsafe {
                    if ffi::PyDict_Unwatch(id, self.dict as *mut PyObject) < 0 {
                        ffi::PyErr_Clear();
                    }
                }
            }
        }
    }
}
