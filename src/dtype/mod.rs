//! Element types: kinds and sizes, the promotion table, and `Scalar`, which a Python number becomes.
//!
//! Promotion is PyTorch's: tensors of one category promote within it; numbers and 0-d tensors change the result only if
//! their category (bool < integer < floating < complex) is higher.

mod float8;
mod name;
mod promote;
mod scalar;
mod truth;

pub use self::float8::{Float8, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu};
pub use self::name::Name;
pub use self::promote::{Category, Operands, default_dtype, promote, result_category, set_default_dtype};
pub use self::scalar::Scalar;
pub use self::truth::Truth;

pub use half::{bf16, f16};
pub use num_complex::Complex;
#[allow(non_camel_case_types)]
pub type c32 = Complex<f16>;
#[allow(non_camel_case_types)]
pub type c64 = Complex<f32>;
#[allow(non_camel_case_types)]
pub type c128 = Complex<f64>;

/// The type of an element. The discriminant is stable: it is part of pickles and of the C tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool = 0,
    U8 = 1,
    I8 = 2,
    I16 = 3,
    I32 = 4,
    I64 = 5,
    F16 = 6,
    BF16 = 7,
    F32 = 8,
    F64 = 9,
    C64 = 10,
    C128 = 11,
    /// Unsigned 16 to 64 bits are stored, cast and printed; arithmetic is not defined for them.
    U16 = 12,
    U32 = 13,
    U64 = 14,
    /// Complex numbers of two halves: stored as such, computed with as complex64.
    C32 = 15,
    /// Floats of eight bits: stored as such, computed with as float32.
    F8E4M3FN = 16,
    F8E4M3FNUZ = 17,
    F8E5M2 = 18,
    F8E5M2FNUZ = 19,
    F8E8M0FNU = 20,
}

use DType::*;

impl DType {
    pub const ALL: [DType; 21] = [
        Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128, U16, U32, U64, C32, F8E4M3FN, F8E4M3FNUZ, F8E5M2,
        F8E5M2FNUZ, F8E8M0FNU,
    ];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0FNU => 1,
            I16 | F16 | BF16 | U16 => 2,
            I32 | F32 | U32 | C32 => 4,
            I64 | F64 | C64 | U64 => 8,
            C128 => 16,
        }
    }
    /// PyTorch's name without the `torch.` prefix: `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
            C128 => "complex128",
            U16 => "uint16",
            U32 => "uint32",
            U64 => "uint64",
            C32 => "complex32",
            F8E4M3FN => "float8_e4m3fn",
            F8E4M3FNUZ => "float8_e4m3fnuz",
            F8E5M2 => "float8_e5m2",
            F8E5M2FNUZ => "float8_e5m2fnuz",
            F8E8M0FNU => "float8_e8m0fnu",
        }
    }
    /// The name that PyTorch's error messages use: `Float`, `Long`.
    pub const fn scalar_type_name(self) -> &'static str {
        match self {
            Bool => "Bool",
            U8 => "Byte",
            I8 => "Char",
            I16 => "Short",
            I32 => "Int",
            I64 => "Long",
            F16 => "Half",
            BF16 => "BFloat16",
            F32 => "Float",
            F64 => "Double",
            C64 => "ComplexFloat",
            C128 => "ComplexDouble",
            U16 => "UInt16",
            U32 => "UInt32",
            U64 => "UInt64",
            C32 => "ComplexHalf",
            F8E4M3FN => "Float8_e4m3fn",
            F8E4M3FNUZ => "Float8_e4m3fnuz",
            F8E5M2 => "Float8_e5m2",
            F8E5M2FNUZ => "Float8_e5m2fnuz",
            F8E8M0FNU => "Float8_e8m0fnu",
        }
    }
    /// The C++ name of the type, used in some of PyTorch's messages.
    pub const fn cpp_name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "unsigned char",
            I8 => "signed char",
            I16 => "short int",
            I32 => "int",
            I64 => "long int",
            F16 => "c10::Half",
            BF16 => "c10::BFloat16",
            F32 => "float",
            F64 => "double",
            C64 => "c10::complex<float>",
            C128 => "c10::complex<double>",
            U16 => "short unsigned int",
            U32 => "unsigned int",
            U64 => "long unsigned int",
            C32 => "c10::complex<c10::Half>",
            F8E4M3FN => "c10::Float8_e4m3fn",
            F8E4M3FNUZ => "c10::Float8_e4m3fnuz",
            F8E5M2 => "c10::Float8_e5m2",
            F8E5M2FNUZ => "c10::Float8_e5m2fnuz",
            F8E8M0FNU => "c10::Float8_e8m0fnu",
        }
    }
    /// The prefix in test samples and debug output: `f32`.
    pub const fn short(self) -> &'static str {
        match self {
            Bool => "b8",
            U8 => "u8",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            C32 => "c32",
            F8E4M3FN => "f8e4m3fn",
            F8E4M3FNUZ => "f8e4m3fnuz",
            F8E5M2 => "f8e5m2",
            F8E5M2FNUZ => "f8e5m2fnuz",
            F8E8M0FNU => "f8e8m0fnu",
        }
    }
    /// The smallest and largest value of an integer dtype.
    pub fn int_range(self) -> (i128, i128) {
        let bits = self.size() as u32 * 8;
        match self.is_signed() {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        }
    }
    /// The largest finite value of a float dtype, or of a component of a complex one.
    pub fn greatest_float(self) -> f64 {
        match self {
            F16 | C32 => 65504.0,
            BF16 => 3.3895313892515355e38,
            F32 | C64 => f64::from(f32::MAX),
            F8E4M3FN => 448.0,
            F8E4M3FNUZ => 240.0,
            F8E5M2 | F8E5M2FNUZ => 57344.0,
            F8E8M0FNU => 1.7014118346046923e38,
            _ => f64::MAX,
        }
    }
    /// The dtype's name in PyTorch's out-of-range message.
    pub fn c10_name(self) -> &'static str {
        match self {
            U8 => "uint8_t",
            U16 => "uint16_t",
            U32 => "uint32_t",
            U64 => "uint64_t",
            I8 => "int8_t",
            I16 => "int16_t",
            I64 => "int64_t",
            _ => self.cpp_name(),
        }
    }
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name || d.short() == name)
    }
    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }
    /// Floats of fewer bits than float32, with which they are computed.
    pub const fn is_narrow_float(self) -> bool {
        self.is_float() && self.size() < 4
    }
    /// Floats of eight bits, which promote with no other dtype.
    pub const fn is_float8(self) -> bool {
        self.is_float() && self.size() == 1
    }
    pub const fn is_complex(self) -> bool {
        matches!(self, C32 | C64 | C128)
    }
    /// Integers, bool excluded.
    pub const fn is_int(self) -> bool {
        matches!(self, U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64)
    }
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8 | U16 | U32 | U64 | F8E8M0FNU)
    }
    /// Floating or complex: what may require a gradient.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }
    pub const fn is_storage_only(self) -> bool {
        matches!(self, U16 | U32 | U64) || self.is_float8()
    }
    pub const fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            F16 | BF16 | F32 | F64 | F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0FNU => Category::Float,
            C32 | C64 | C128 => Category::Complex,
            _ => Category::Int,
        }
    }
    /// The component type of a complex type; any other type unchanged.
    pub const fn to_real(self) -> DType {
        match self {
            C32 => F16,
            C64 => F32,
            C128 => F64,
            d => d,
        }
    }
    /// The complex type whose components are of this float type.
    pub const fn to_complex(self) -> DType {
        match self {
            F16 | C32 => C32,
            F64 | C128 => C128,
            _ => C64,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that is the element of some dtype.
pub trait Element: Copy + Send + Sync + Default + PartialEq + 'static {
    const DTYPE: DType;
    fn from_scalar(s: Scalar) -> Self;
    fn to_scalar(self) -> Scalar;
}

impl Element for bool {
    const DTYPE: DType = Bool;
    fn from_scalar(s: Scalar) -> bool {
        s.to_bool()
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self)
    }
}

macro_rules! element {
    ($($t:ty, $d:ident, |$s:ident| $from:expr, |$v:ident| $to:expr;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = $d;
            fn from_scalar($s: Scalar) -> $t { $from }
            fn to_scalar(self) -> Scalar { let $v = self; $to }
        }
    )*};
}
element! {
    u8, U8, |s| s.to_i64() as u8, |v| Scalar::Int(v as i64);
    i8, I8, |s| s.to_i64() as i8, |v| Scalar::Int(v as i64);
    i16, I16, |s| s.to_i64() as i16, |v| Scalar::Int(v as i64);
    i32, I32, |s| s.to_i64() as i32, |v| Scalar::Int(v as i64);
    i64, I64, |s| s.to_i64(), |v| Scalar::Int(v);
    u16, U16, |s| s.to_i64() as u16, |v| Scalar::Int(v as i64);
    u32, U32, |s| s.to_i64() as u32, |v| Scalar::Int(v as i64);
    u64, U64, |s| s.to_i64() as u64, |v| Scalar::UInt(v);
    f16, F16, |s| f16::from_f64(s.to_f64()), |v| Scalar::Float(v.to_f64());
    bf16, BF16, |s| bf16::from_f64(s.to_f64()), |v| Scalar::Float(v.to_f64());
    f8e4m3fn, F8E4M3FN, |s| f8e4m3fn::from_f32(s.to_f64() as f32), |v| Scalar::Float(v.to_f32() as f64);
    f8e4m3fnuz, F8E4M3FNUZ, |s| f8e4m3fnuz::from_f32(s.to_f64() as f32), |v| Scalar::Float(v.to_f32() as f64);
    f8e5m2, F8E5M2, |s| f8e5m2::from_f32(s.to_f64() as f32), |v| Scalar::Float(v.to_f32() as f64);
    f8e5m2fnuz, F8E5M2FNUZ, |s| f8e5m2fnuz::from_f32(s.to_f64() as f32), |v| Scalar::Float(v.to_f32() as f64);
    f8e8m0fnu, F8E8M0FNU, |s| f8e8m0fnu::from_f32(s.to_f64() as f32), |v| Scalar::Float(v.to_f32() as f64);
    f32, F32, |s| s.to_f64() as f32, |v| Scalar::Float(v as f64);
    f64, F64, |s| s.to_f64(), |v| Scalar::Float(v);
    c32, C32, |s| { let c = s.to_c128(); Complex::new(f16::from_f64(c.re), f16::from_f64(c.im)) }, |v| Scalar::Complex(v.re.to_f64(), v.im.to_f64());
    c64, C64, |s| { let c = s.to_c128(); Complex::new(c.re as f32, c.im as f32) }, |v| Scalar::Complex(v.re as f64, v.im as f64);
    c128, C128, |s| s.to_c128(), |v| Scalar::Complex(v.re, v.im);
}

/// Runs `$body` with `$t` bound to the element type of `$dtype`: the one dtype switch of the crate.
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::Bool => {
                type $t = $crate::dtype::Truth;
                $body
            }
            $crate::dtype::DType::U8 => {
                type $t = u8;
                $body
            }
            $crate::dtype::DType::I8 => {
                type $t = i8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $t = i16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $t = u16;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $t = u32;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $t = u64;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $t = $crate::dtype::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $t = $crate::dtype::bf16;
                $body
            }
            $crate::dtype::DType::F8E4M3FN => {
                type $t = $crate::dtype::f8e4m3fn;
                $body
            }
            $crate::dtype::DType::F8E4M3FNUZ => {
                type $t = $crate::dtype::f8e4m3fnuz;
                $body
            }
            $crate::dtype::DType::F8E5M2 => {
                type $t = $crate::dtype::f8e5m2;
                $body
            }
            $crate::dtype::DType::F8E5M2FNUZ => {
                type $t = $crate::dtype::f8e5m2fnuz;
                $body
            }
            $crate::dtype::DType::F8E8M0FNU => {
                type $t = $crate::dtype::f8e8m0fnu;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::dtype::DType::C32 => {
                type $t = $crate::dtype::c32;
                $body
            }
            $crate::dtype::DType::C64 => {
                type $t = $crate::dtype::c64;
                $body
            }
            $crate::dtype::DType::C128 => {
                type $t = $crate::dtype::c128;
                $body
            }
        }
    };
}
