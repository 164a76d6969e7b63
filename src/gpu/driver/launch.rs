//! A dispatch as a value: what a kernel hands to the driver. It names no shape, dtype or view, only memory and words.
//!
//! Binding 0 of every shader is the parameter block, 32-bit words that it reads as `p[i / 4][i % 4]`; then come the
//! buffers that are only read and, last, those that are written.

#[cfg(feature = "gpu")]
use super::pool::Memory;
use crate::error::Error;
use smallvec::SmallVec;

/// Bytes of the parameter block of one dispatch.
pub(in crate::gpu) const PARAM_BYTES: usize = 1024;

pub(in crate::gpu) type Params = SmallVec<[u32; 64]>;

/// Memory of a build without devices: there is none.
#[cfg(not(feature = "gpu"))]
pub(in crate::gpu) enum Memory {}

/// Memory bound to a shader: a window of `size` bytes at `offset`, or all of it where `size` is zero.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Bind<'a> {
    pub memory: &'a Memory,
    pub offset: u64,
    pub size: u64,
}

/// The code of a kernel, written out only when its pipeline is built.
pub(in crate::gpu) trait Shader {
    /// A readable name, for messages and captures.
    fn name(&self) -> String;
    /// Complete WGSL with the entry point `main`.
    fn source(&self) -> String;
}

pub(in crate::gpu) struct Launch<'a> {
    /// Equal keys mean equal sources.
    pub key: Key,
    pub shader: &'a dyn Shader,
    pub binds: SmallVec<[Bind<'a>; 6]>,
    /// How many of `binds`, from the first on, are only read.
    pub reads: usize,
    pub params: Params,
    /// Workgroups, at least; the shader numbers them `w.x * group.y + group.x`.
    pub groups: usize,
    /// It may report a bad value in the fault block.
    pub may_fault: bool,
}

/// Everything that a shader's source depends on, as numbers: comparing two keys formats and allocates nothing. Fixed
/// texts are in it by their address, so a text that stands in the program twice costs a second pipeline, no more.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::gpu) struct Key(SmallVec<[u64; 32]>);

impl Key {
    pub fn word(&mut self, word: u64) {
        self.0.push(word);
    }
    pub fn fixed(&mut self, text: &'static str) {
        self.0.extend([text.as_ptr() as u64, text.len() as u64]);
    }
    /// A text made at run time goes in byte by byte, behind an address that no text has.
    pub fn made(&mut self, text: &str) {
        self.0.extend([0, text.len() as u64]);
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.0.push(u64::from_ne_bytes(word));
        }
    }
}

#[cold]
pub(in crate::gpu) fn too_large() -> Error {
    Error::runtime(
        "the tensor is too large for one GPU kernel (an index or a binding exceeds the adapter's limit). \
         Work on slices of it, or use device='cpu'.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_made_texts_compare_by_content() {
        let made = |texts: &[&str]| {
            let mut key = Key::default();
            texts.iter().for_each(|t| key.made(t));
            key
        };
        assert!(made(&["a longer text", "b"]) == made(&[&String::from("a longer text"), "b"]));
        assert!(made(&["ab", "c"]) != made(&["a", "bc"]));
        assert!(made(&[""]) != made(&["\0"]));
        let fixed = |text: &'static str| {
            let mut key = Key::default();
            key.fixed(text);
            key
        };
        let text: &'static str = "one text";
        assert!(fixed(text) == fixed(text) && fixed(text) != fixed(&text[..3]) && fixed(text) != made(&[text]));
    }
}
