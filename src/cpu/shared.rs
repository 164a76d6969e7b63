//! Memory that several processes map: a file without a name, whose descriptor is sent from process to process.
//!
//! The memory is freed by the system when the last process has unmapped it and closed the descriptor. A file of our own
//! cannot shrink (on Linux it is sealed), so that no access of a mapping fails.

use crate::error::{Error, Result};
use std::any::Any;

#[cfg(unix)]
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A mapping of a shared file. `keeper` is dropped after it was unmapped.
pub struct SharedMapping {
    ptr: *mut u8,
    bytes: usize,
    #[cfg(unix)]
    file: Option<OwnedFd>,
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: the mapping is plain memory, unmapped once by the owner of this value; reads and writes are synchronised by
// nobody, as for every storage (Note [Shared memory]).
unsafe impl Send for SharedMapping {}
// SAFETY: as above: shared access gives out a raw pointer only.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn keeper(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.keeper.as_deref()
    }
}

#[cfg(unix)]
impl SharedMapping {
    /// New memory, zeroed.
    pub fn new(bytes: usize) -> Result<SharedMapping> {
        let file = unnamed()?;
        // SAFETY: the descriptor is open.
        let sized = libc::off_t::try_from(bytes.max(1)).map(|n| unsafe { libc::ftruncate(file.as_raw_fd(), n) });
        if sized != Ok(0) {
            return Err(failed(&format!("{bytes} bytes could not be reserved")));
        }
        #[cfg(target_os = "linux")]
        // SAFETY: the descriptor is open. A file that refuses seals is checked when it is mapped all the same.
        unsafe {
            libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
        };
        SharedMapping::map(file, bytes, true, None)
    }
    /// The first bytes of an open file, whose descriptor is duplicated. With `keep` the duplicate stays open, so that the
    /// memory can be sent on.
    pub fn open(
        fd: i32,
        bytes: usize,
        keep: bool,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<SharedMapping> {
        // SAFETY: `fcntl` checks the descriptor.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(failed(&format!("the descriptor {fd} cannot be used")));
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        SharedMapping::map(unsafe { OwnedFd::from_raw_fd(copy) }, bytes, keep, keeper)
    }
    /// The descriptor to send to another process.
    pub fn descriptor(&self) -> Option<i32> {
        self.file.as_ref().map(|f| f.as_raw_fd())
    }
    fn map(
        file: OwnedFd,
        bytes: usize,
        keep: bool,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<SharedMapping> {
        let fd = file.as_raw_fd();
        // SAFETY: all zeros is a valid `stat`, which `fstat` fills.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open and `status` is ours.
        if unsafe { libc::fstat(fd, &raw mut status) } != 0 {
            return Err(failed("the size of the file is unknown"));
        }
        if usize::try_from(status.st_size).is_ok_and(|n| n < bytes) {
            return Err(Error::runtime(format!(
                "shared memory: {bytes} bytes are wanted of a file of {}. Was it made by another program?",
                status.st_size
            )));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // All pages at once: they will be used, and one fault for each costs more than the copy.
        #[cfg(target_os = "linux")]
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        #[cfg(not(target_os = "linux"))]
        let flags = libc::MAP_SHARED;
        // SAFETY: a new mapping at an address of the system's choice.
        let ptr = unsafe { libc::mmap(std::ptr::null_mut(), bytes.max(1), protection, flags, fd, 0) };
        if ptr == libc::MAP_FAILED {
            return Err(failed(&format!("{bytes} bytes could not be mapped")));
        }
        Ok(SharedMapping { ptr: ptr.cast(), bytes, file: keep.then_some(file), keeper })
    }
}

#[cfg(unix)]
impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and is unmapped once.
        unsafe { libc::munmap(self.ptr.cast(), self.bytes.max(1)) };
    }
}

#[cfg(unix)]
fn failed(what: &str) -> Error {
    let reason = std::io::Error::last_os_error();
    Error::runtime(format!("shared memory: {what}: {reason}. `ulimit -n` limits open descriptors, `ulimit -v` memory."))
}

#[cfg(target_os = "linux")]
fn unnamed() -> Result<OwnedFd> {
    // SAFETY: the name is a C string. By number: the C library of older systems has no function for it.
    let fd = unsafe {
        libc::syscall(libc::SYS_memfd_create, c"rustgrad".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
    };
    if fd < 0 {
        return Err(failed("no file could be created"));
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A file in POSIX shared memory that loses its name at once.
#[cfg(all(unix, not(target_os = "linux")))]
fn unnamed() -> Result<OwnedFd> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name =
        std::ffi::CString::new(format!("/rg-{}-{number}", std::process::id())).expect("no zero byte in a number");
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::shm_open(name.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600) };
    if fd < 0 {
        return Err(failed("no file could be created"));
    }
    // SAFETY: as above; the descriptor was just opened and belongs to nobody else.
    unsafe {
        libc::shm_unlink(name.as_ptr());
        libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(not(unix))]
impl SharedMapping {
    pub fn new(_bytes: usize) -> Result<SharedMapping> {
        Err(absent())
    }
    pub fn open(
        _fd: i32,
        _bytes: usize,
        _keep: bool,
        _keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<SharedMapping> {
        Err(absent())
    }
    pub fn descriptor(&self) -> Option<i32> {
        None
    }
}

#[cfg(not(unix))]
fn absent() -> Error {
    Error::runtime("shared memory: not available on this system; expected a Unix system. Send copies instead.")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn two_mappings_of_one_file_are_one_memory() {
        let first = SharedMapping::new(100).unwrap();
        let second = SharedMapping::open(first.descriptor().unwrap(), 100, false, None).unwrap();
        assert!(second.descriptor().is_none() && first.ptr() != second.ptr());
        // SAFETY: both mappings have 100 bytes and nobody else uses them.
        unsafe {
            first.ptr().add(99).write(7);
            assert_eq!(second.ptr().add(99).read(), 7);
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let memory = SharedMapping::new(10).unwrap();
        assert!(SharedMapping::open(memory.descriptor().unwrap(), 1 << 20, false, None).is_err());
        assert!(SharedMapping::open(-1, 1, false, None).is_err());
        assert!(SharedMapping::new(usize::MAX).is_err());
        assert_eq!(SharedMapping::new(0).unwrap().bytes(), 0);
    }

    #[test]
    fn a_keeper_lives_as_long_as_the_mapping() {
        let keeper = Arc::new(());
        let memory = SharedMapping::new(1).unwrap();
        let mapped =
            SharedMapping::open(memory.descriptor().unwrap(), 1, true, Some(Box::new(keeper.clone()))).unwrap();
        assert_eq!(Arc::strong_count(&keeper), 2);
        drop(mapped);
        assert_eq!(Arc::strong_count(&keeper), 1);
    }
}
