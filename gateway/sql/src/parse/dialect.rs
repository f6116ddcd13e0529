//! The dialect handed to `sqlparser`: its MySQL dialect's switches, with our expressions.

use std::any::TypeId;

use sqlparser::ast::{Expr, Statement};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

use super::expr::{self, power};
use crate::mode::SqlMode;

/// MySQL's grammar under a session's `sql_mode`.
#[derive(Debug)]
pub(super) struct ShardgateDialect {
    pub(super) mode: SqlMode,
}

const STOCK: MySqlDialect = MySqlDialect {};

/// Switches taken over as they are.
macro_rules! as_in_mysql {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            STOCK.$name()
        })*
    };
}

impl Dialect for ShardgateDialect {
    // The parser asks by type whether it speaks MySQL.
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        STOCK.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        STOCK.is_identifier_part(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        STOCK.identifier_quote_style(identifier)
    }

    as_in_mysql! {
        supports_string_literal_backslash_escape
        ignores_wildcard_escapes
        supports_numeric_prefix
        supports_literal_prefix_in_qualified_name
        supports_bitwise_shift_operators
        supports_singular_value_keyword
        require_interval_qualifier
        supports_limit_comma
        supports_create_table_select
        supports_insert_set
        supports_user_host_grantee
        supports_table_hints
        supports_match_against
        supports_select_modifiers
        supports_set_names
        supports_comma_separated_set_assignments
        supports_alter_column_position
        supports_update_order_by
        supports_data_type_signed_suffix
        supports_data_type_zerofill_suffix
        supports_cross_join_constraint
        supports_double_ampersand_operator
        supports_binary_kw_as_cast
        supports_table_partitions
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_group_by_with_modifier
    }

    fn supports_string_literal_table_alias(&self, explicit: bool) -> bool {
        STOCK.supports_string_literal_table_alias(explicit)
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        STOCK.is_table_factor_alias(explicit, kw, parser)
    }

    /// `a JOIN b LEFT JOIN c ON p` joins `a` and `b` first. The other reading, with a second ON behind, is refused.
    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    /// `EXTRACT(DAY_HOUR FROM x)`
    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        STOCK.parse_statement(parser)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        Some(expr::prefix(parser, self.mode))
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, power: u8) -> Option<Result<Expr, ParserError>> {
        expr::infix(parser, left, power)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        Some(Ok(expr::next_power(parser)))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period | Precedence::DoubleColon | Precedence::AtTz | Precedence::Colon => {
                power::ACCESS
            }
            Precedence::MulDivModOp => power::TIMES,
            Precedence::PlusMinus => power::PLUS,
            // The name is for PostgreSQL's `#`; MySQL's XOR has its own number and never asks here.
            Precedence::Xor => power::XOR,
            Precedence::Ampersand => power::BIT_AND,
            Precedence::Caret => power::BIT_XOR,
            Precedence::Pipe | Precedence::PgOther => power::BIT_OR,
            Precedence::Between | Precedence::Like => power::PREDICATE,
            Precedence::Eq | Precedence::Is => power::COMPARE,
            Precedence::UnaryNot => power::NOT,
            Precedence::And => power::AND,
            Precedence::Or => power::OR,
        }
    }
}
