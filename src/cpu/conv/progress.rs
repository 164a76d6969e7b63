//! Which images of a result are done, so that an epilogue runs over those while they are in the cache.

use crate::cpu::epilogue::Epilogue;
use crate::cpu::view::View;
use crate::error::Result;
use crate::rt::reserve::try_list;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Progress<'a> {
    then: &'a Epilogue<'a>,
    /// The units of each image that have been computed.
    done: Vec<AtomicUsize>,
    /// Elements of an image.
    image: usize,
}

impl<'a> Progress<'a> {
    /// Of a row-major result, an image for each element of the batch.
    pub fn new(then: &'a Epilogue<'a>, out: &View) -> Result<Progress<'a>> {
        let done = try_list((0..out.shape[0]).map(|_| Ok(AtomicUsize::new(0))))?;
        Ok(Progress { then, done, image: out.shape[1..].iter().product() })
    }
    /// A unit of each of these images has been computed, of `units` that an image has.
    pub fn advance(&self, images: Range<usize>, units: usize) {
        let mut first = images.start;
        for i in images.clone() {
            // The last one to come sees what all others have written.
            if self.done[i].fetch_add(1, Ordering::AcqRel) + 1 < units {
                self.finish(first..i);
                first = i + 1;
            }
        }
        self.finish(first..images.end);
    }
    fn finish(&self, images: Range<usize>) {
        if !images.is_empty() {
            self.then.finished(images.start * self.image..images.end * self.image);
        }
    }
}
