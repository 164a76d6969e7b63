//! Names of dtypes that have no tensors here: programs make, compare and list them. Only when a tensor is to have one does
//! it become an error, in `Name::dtype`.

use super::{Category, DType};
use crate::error::{Error, Result};

/// A dtype of PyTorch's without tensors here.
#[derive(Debug, PartialEq, Eq)]
pub struct Absent {
    pub name: &'static str,
    pub scalar_type_name: &'static str,
    pub size: usize,
    category: Category,
    signed: bool,
}

/// Two floats of four bits in a byte.
const FLOAT4: Absent = Absent {
    name: "float4_e2m1fn_x2",
    scalar_type_name: "Float4_e2m1fn_x2",
    size: 1,
    category: Category::Float,
    signed: true,
};

/// Integers of few bits, quantised ones, and bits without a meaning.
const fn int(name: &'static str, scalar_type_name: &'static str, size: usize) -> Absent {
    let signed = matches!(name.as_bytes()[0], b'i' | b'q') && name.as_bytes()[1] != b'u';
    Absent { name, scalar_type_name, size, category: Category::Int, signed }
}

pub static ABSENT: [Absent; 25] = [
    FLOAT4,
    int("int1", "Int1", 1),
    int("int2", "Int2", 1),
    int("int3", "Int3", 1),
    int("int4", "Int4", 1),
    int("int5", "Int5", 1),
    int("int6", "Int6", 1),
    int("int7", "Int7", 1),
    int("uint1", "UInt1", 1),
    int("uint2", "UInt2", 1),
    int("uint3", "UInt3", 1),
    int("uint4", "UInt4", 1),
    int("uint5", "UInt5", 1),
    int("uint6", "UInt6", 1),
    int("uint7", "UInt7", 1),
    int("qint8", "QInt8", 1),
    int("qint32", "QInt32", 4),
    int("quint8", "QUInt8", 1),
    int("quint4x2", "QUInt4x2", 1),
    int("quint2x4", "QUInt2x4", 1),
    int("bits1x8", "Bits1x8", 1),
    int("bits2x4", "Bits2x4", 1),
    int("bits4x2", "Bits4x2", 1),
    int("bits8", "Bits8", 1),
    int("bits16", "Bits16", 2),
];

/// The name of a dtype, which need not be here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Here(DType),
    Absent(&'static Absent),
}

impl Name {
    pub fn all() -> impl Iterator<Item = Name> {
        DType::ALL.into_iter().map(Name::Here).chain(ABSENT.iter().map(Name::Absent))
    }
    /// The dtype, where tensors are to have it.
    pub fn dtype(self) -> Result<DType> {
        match self {
            Name::Here(d) => Ok(d),
            Name::Absent(a) => Err(Error::not_implemented(format!(
                "tensors of dtype torch.{} are not supported; expected bool, an integer, a float of 8 to 64 bits, or \
                 complex32 to complex128. Use one of eight bits.",
                a.name
            ))),
        }
    }
    /// PyTorch's name without the `torch.` prefix.
    pub fn name(self) -> &'static str {
        match self {
            Name::Here(d) => d.name(),
            Name::Absent(a) => a.name,
        }
    }
    pub fn scalar_type_name(self) -> &'static str {
        match self {
            Name::Here(d) => d.scalar_type_name(),
            Name::Absent(a) => a.scalar_type_name,
        }
    }
    /// Bytes per element.
    pub fn size(self) -> usize {
        match self {
            Name::Here(d) => d.size(),
            Name::Absent(a) => a.size,
        }
    }
    pub fn category(self) -> Category {
        match self {
            Name::Here(d) => d.category(),
            Name::Absent(a) => a.category,
        }
    }
    pub fn is_signed(self) -> bool {
        match self {
            Name::Here(d) => d.is_signed(),
            Name::Absent(a) => a.signed,
        }
    }
    /// The real type of a complex type's parts; any other type is its own.
    pub fn to_real(self) -> Name {
        match self {
            Name::Here(d) => Name::Here(d.to_real()),
            name => name,
        }
    }
    /// The complex type whose parts have this type.
    pub fn to_complex(self) -> Result<Name> {
        match self {
            Name::Here(d) if d.is_differentiable() && !d.is_float8() => Ok(Name::Here(d.to_complex())),
            _ => Err(Error::runtime(format!("Unknown Complex ScalarType for {}", self.scalar_type_name()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_dtypes_answer_by_name_alone() {
        let small = Name::Absent(&ABSENT[0]);
        assert_eq!((small.name(), small.size(), small.to_real()), ("float4_e2m1fn_x2", 1, small));
        assert!(small.to_complex().is_err() && small.dtype().is_err());
        assert_eq!(Name::Here(DType::F16).to_complex().ok(), Some(Name::Here(DType::C32)));
        assert!(Name::all().all(|n| n.dtype().is_ok() == DType::from_name(n.name()).is_some()));
    }
}
