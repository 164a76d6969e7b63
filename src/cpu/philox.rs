//! Philox4x32-10: counter-based random words, which a GPU can find for any element, in any order.
//!
//! Note [Random numbers on the GPU]: block `b` of a draw is Philox4x32-10 of the counter (b low, b high, offset low,
//! offset high) under the key (seed low, seed high); it has four words. A generator holds a seed and an offset; each call
//! that draws uses the current offset and advances it. An element that needs 32 bits takes word `i % 4` of block `i / 4`;
//! one that needs 64 takes words `2 (i % 2)` (low) and `2 (i % 2) + 1` (high) of block `i / 2`. `shaders/random.wgsl` and
//! `gpu/kernels/random.rs` make numbers of them. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
//! as 1, 2, 3", SC 2011.

/// The key of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Philox {
    pub seed: u64,
    pub offset: u64,
}

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

fn rounds(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let p = MULTIPLIERS[0] as u64 * c[0] as u64;
        let q = MULTIPLIERS[1] as u64 * c[2] as u64;
        c = [(q >> 32) as u32 ^ c[1] ^ key[0], q as u32, (p >> 32) as u32 ^ c[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])];
    }
    c
}

impl Philox {
    /// The four words of one block.
    pub fn block(&self, index: u64) -> [u32; 4] {
        let counter = [index as u32, (index >> 32) as u32, self.offset as u32, (self.offset >> 32) as u32];
        rounds(counter, [self.seed as u32, (self.seed >> 32) as u32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution (`kat_vectors`).
    #[test]
    fn known_answers() {
        assert_eq!(rounds([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(rounds([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let (counter, key) = ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]);
        assert_eq!(rounds(counter, key), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
        let philox = Philox { seed: 0x299f31d0_a4093822, offset: 0x03707344_13198a2e };
        assert_eq!(philox.block(0x85a308d3_243f6a88), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }
}
