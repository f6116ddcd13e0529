//! The widths of integers.

/// An integer's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IntSize {
    Tiny,
    Small,
    Medium,
    Int,
    Big,
}

impl IntSize {
    const fn bits(self) -> u32 {
        match self {
            Self::Tiny => 8,
            Self::Small => 16,
            Self::Medium => 24,
            Self::Int => 32,
            Self::Big => 64,
        }
    }

    /// Lowest and highest value.
    pub(crate) const fn range(self, unsigned: bool) -> (i128, i128) {
        let bits = self.bits();
        if unsigned {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tinyint",
            Self::Small => "smallint",
            Self::Medium => "mediumint",
            Self::Int => "int",
            Self::Big => "bigint",
        }
    }

    /// The most characters a value takes.
    pub(crate) const fn width(self, unsigned: bool) -> u32 {
        match (self, unsigned) {
            (Self::Tiny, false) => 4,
            (Self::Tiny, true) => 3,
            (Self::Small, false) => 6,
            (Self::Small, true) => 5,
            (Self::Medium, false) => 9,
            (Self::Medium, true) => 8,
            (Self::Int, false) => 11,
            (Self::Int, true) => 10,
            (Self::Big, _) => 20,
        }
    }

    /// Decimal digits that hold every value.
    pub(crate) const fn digits(self, unsigned: bool) -> u8 {
        match (self, unsigned) {
            (Self::Tiny, _) => 3,
            (Self::Small, _) => 5,
            (Self::Medium, false) => 7,
            (Self::Medium, true) => 8,
            (Self::Int, _) => 10,
            (Self::Big, false) => 19,
            (Self::Big, true) => 20,
        }
    }

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Tiny => 1,
            Self::Small => 2,
            Self::Medium => 9,
            Self::Int => 3,
            Self::Big => 8,
        }
    }
}
