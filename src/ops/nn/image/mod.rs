//! Images and volumes `[batch, channels, ..]`: shuffling of channels, interpolation, sampling on grids.

pub mod affine;
pub mod grid;
mod grid_steps;
pub mod interpolate;
mod run;
pub mod shuffle;
mod taps;
pub mod upsample;
