//! Expressions, bound as `sql_yacc.yy` binds them.
//!
//! From loosest to tightest, each checked against a running server:
//! `OR ||`, `XOR`, `AND &&`, `NOT`, comparisons and `IS`, then IN, BETWEEN, LIKE and REGEXP, then `|`, `&`, shifts,
//! `+ -`, `* / DIV % MOD`, `^`, `||` as concatenation, unary `- + ~`, `!` and `BINARY`, COLLATE. So `a = b IN (c)` is
//! `a = (b IN (c))`, and `1 | 2 ^ 3 << 1` is `1 | ((2 ^ 3) << 1)`.
//!
//! The prefix of an expression is parsed here wholly, never by `sqlparser`'s own guesses: those read `text 'a'` (a
//! column and its alias) as a typed literal, and a reserved word out of place as a column.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, TimezoneInfo, TypedString,
    UnaryOperator,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, Word};

use crate::charset::is_introducer;
use crate::mode::SqlMode;

/// Binding powers; see the module.
pub(super) mod power {
    pub(in super::super) const OR: u8 = 5;
    pub(in super::super) const XOR: u8 = 7;
    pub(in super::super) const AND: u8 = 10;
    pub(in super::super) const NOT: u8 = 15;
    pub(in super::super) const COMPARE: u8 = 20;
    pub(in super::super) const PREDICATE: u8 = 22;
    pub(in super::super) const BIT_OR: u8 = 24;
    pub(in super::super) const BIT_AND: u8 = 26;
    pub(in super::super) const SHIFT: u8 = 28;
    pub(in super::super) const PLUS: u8 = 30;
    pub(in super::super) const TIMES: u8 = 40;
    pub(in super::super) const BIT_XOR: u8 = 42;
    pub(in super::super) const CONCAT: u8 = 44;
    pub(in super::super) const UNARY: u8 = 46;
    pub(in super::super) const BANG: u8 = 48;
    pub(in super::super) const ACCESS: u8 = 60;
}

type Parsed = Result<Expr, ParserError>;

/// How tightly the next token binds what stands before it; 0 ends the expression.
pub(super) fn next_power(parser: &Parser) -> u8 {
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => word_power(parser, word),
        Token::Eq | Token::Lt | Token::LtEq | Token::Neq | Token::Gt | Token::GtEq | Token::Spaceship => {
            power::COMPARE
        }
        Token::Pipe => power::BIT_OR,
        Token::Ampersand => power::BIT_AND,
        Token::ShiftLeft | Token::ShiftRight => power::SHIFT,
        Token::Plus | Token::Minus => power::PLUS,
        Token::Mul | Token::Div | Token::Mod => power::TIMES,
        Token::Caret => power::BIT_XOR,
        Token::StringConcat => power::CONCAT,
        Token::Arrow | Token::LongArrow => power::ACCESS,
        _ => 0,
    }
}

fn word_power(parser: &Parser, word: &Word) -> u8 {
    match word.keyword {
        Keyword::OR => power::OR,
        Keyword::XOR => power::XOR,
        Keyword::AND => power::AND,
        Keyword::IS => power::COMPARE,
        Keyword::DIV | Keyword::MOD => power::TIMES,
        Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => power::PREDICATE,
        Keyword::MEMBER if next_word(parser, 1) == Keyword::OF => power::PREDICATE,
        Keyword::NOT => match next_word(parser, 1) {
            Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => {
                power::PREDICATE
            }
            _ => 0,
        },
        _ => 0,
    }
}

fn next_word(parser: &Parser, ahead: usize) -> Keyword {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Operators that `sqlparser` does not know, or would build wrongly. `None` leaves the operator to it, which is
/// right for all binary operators, since [`next_power`] tells it how they bind.
pub(super) fn infix(parser: &mut Parser, left: &Expr, power: u8) -> Option<Parsed> {
    let Token::Word(word) = &parser.peek_token_ref().token else {
        return None;
    };
    // `a LIKE b NOT IN (c)`: one server refuses it, and the other binds it now to the left, now to the right.
    if power == power::PREDICATE && is_predicate(left) {
        return Some(parser.expected_ref(
            "parentheses around a predicate of a predicate",
            parser.peek_token_ref(),
        ));
    }
    match word.keyword {
        Keyword::AND => Some(chain(parser, left, Keyword::AND, &BinaryOperator::And, power)),
        Keyword::OR => Some(chain(parser, left, Keyword::OR, &BinaryOperator::Or, power)),
        Keyword::DIV => Some(binary(parser, left, BinaryOperator::MyIntegerDivide, power)),
        Keyword::MOD => Some(binary(parser, left, BinaryOperator::Modulo, power)),
        Keyword::BETWEEN => Some(between(parser, left, false)),
        Keyword::NOT if next_word(parser, 1) == Keyword::BETWEEN => Some(between(parser, left, true)),
        _ => None,
    }
}

fn is_predicate(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::In { .. } | Expr::Like { .. } | Expr::RLike { .. } | Expr::Between { .. } | Expr::MemberOf(_)
    )
}

fn binary(parser: &mut Parser, left: &Expr, op: BinaryOperator, power: u8) -> Parsed {
    parser.advance_token();
    let right = Box::new(parser.parse_subexpr(power)?);
    Ok(Expr::BinaryOp {
        left: Box::new(left.clone()),
        op,
        right,
    })
}

/// All of `a AND b AND c ...` at once, so that a chain of thousands becomes a balanced tree. AND and OR are
/// associative, NULL included.
fn chain(parser: &mut Parser, left: &Expr, keyword: Keyword, op: &BinaryOperator, power: u8) -> Parsed {
    let mut operands = vec![left.clone()];
    while parser.parse_keyword(keyword) {
        operands.push(parser.parse_subexpr(power)?);
    }
    Ok(join(operands, op))
}

/// Short chains as everybody expects them, left-deep; long ones halved.
fn join(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    const LEFT_DEEP: usize = 16;
    let both = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    };
    if operands.len() > LEFT_DEEP {
        let right = operands.split_off(operands.len() / 2);
        return both(join(operands, op), join(right, op));
    }
    let mut operands = operands.into_iter();
    let first = operands
        .next()
        .unwrap_or(Expr::Value(sqlparser::ast::Value::Null.with_empty_span()));
    operands.fold(first, both)
}

fn between(parser: &mut Parser, left: &Expr, negated: bool) -> Parsed {
    if negated {
        parser.advance_token();
    }
    parser.advance_token();
    let low = parser.parse_subexpr(power::PREDICATE)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(power::PREDICATE)?;
    Ok(Expr::Between {
        expr: Box::new(left.clone()),
        negated,
        low: Box::new(low),
        high: Box::new(high),
    })
}

/// What an expression may begin with.
pub(super) fn prefix(parser: &mut Parser, mode: SqlMode) -> Parsed {
    match &parser.peek_token_ref().token {
        Token::Word(_) => word(parser, mode),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::Placeholder(_) => value(parser),
        Token::Minus => unary(parser, UnaryOperator::Minus, power::UNARY),
        Token::Plus => unary(parser, UnaryOperator::Plus, power::UNARY),
        Token::Tilde => unary(parser, UnaryOperator::BitwiseNot, power::UNARY),
        Token::ExclamationMark => unary(parser, UnaryOperator::BangNot, power::BANG),
        Token::LParen => parenthesized(parser),
        Token::LBrace => braced(parser),
        _ => parser.expected_ref("an expression", parser.peek_token_ref()),
    }
}

fn value(parser: &mut Parser) -> Parsed {
    parser.parse_value().map(Expr::Value)
}

fn unary(parser: &mut Parser, op: UnaryOperator, power: u8) -> Parsed {
    parser.advance_token();
    let expr = Box::new(parser.parse_subexpr(power)?);
    Ok(Expr::UnaryOp { op, expr })
}

fn parenthesized(parser: &mut Parser) -> Parsed {
    parser.advance_token();
    if matches!(next_word(parser, 0), Keyword::SELECT | Keyword::WITH) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        return Ok(Expr::Subquery(query));
    }
    let mut items = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    match items.pop() {
        Some(only) if items.is_empty() => Ok(Expr::Nested(Box::new(only))),
        Some(last) => {
            items.push(last);
            Ok(Expr::Tuple(items))
        }
        None => parser.expected_ref("an expression", parser.peek_token_ref()),
    }
}

/// `{d '2020-01-01'}`, `{t '..'}`, `{ts '..'}` of ODBC. Its other forms are refused.
fn braced(parser: &mut Parser) -> Parsed {
    parser.advance_token();
    let name = parser.parse_identifier()?;
    let data_type = match name.value.to_ascii_lowercase().as_str() {
        "d" => DataType::Date,
        "t" => DataType::Time(None, TimezoneInfo::None),
        "ts" => DataType::Timestamp(None, TimezoneInfo::None),
        _ => return parser.expected_ref("d, t or ts", parser.peek_token_ref()),
    };
    let value = parser.parse_value()?;
    parser.expect_token(&Token::RBrace)?;
    Ok(Expr::TypedString(TypedString {
        data_type,
        value,
        uses_odbc_syntax: true,
    }))
}

fn word(parser: &mut Parser, mode: SqlMode) -> Parsed {
    let (word, span) = match &parser.peek_token_ref() {
        token if matches!(token.token, Token::Word(_)) => match &token.token {
            Token::Word(word) => (word.clone(), token.span),
            _ => return parser.expected_ref("a word", token),
        },
        token => return parser.expected_ref("a word", token),
    };
    let next = &parser.peek_nth_token_ref(1).token;
    let called = *next == Token::LParen;
    let before_text = matches!(next, Token::SingleQuotedString(_));
    match word.keyword {
        _ if word.quote_style.is_some() => name(parser, &word, span),
        Keyword::NoKeyword => bare_name(parser, &word, span),
        Keyword::NULL | Keyword::TRUE | Keyword::FALSE => value(parser),
        Keyword::NOT if mode.high_not_precedence() => unary(parser, UnaryOperator::BangNot, power::BANG),
        Keyword::NOT => not(parser),
        Keyword::BINARY => binary_cast(parser),
        Keyword::INTERVAL => interval(parser, span),
        Keyword::DATE if before_text => typed(parser, DataType::Date),
        Keyword::TIME if before_text => typed(parser, DataType::Time(None, TimezoneInfo::None)),
        Keyword::TIMESTAMP if before_text => typed(parser, DataType::Timestamp(None, TimezoneInfo::None)),
        Keyword::CASE => behind(parser).parse_case_expr(),
        Keyword::EXISTS => behind(parser).parse_exists_expr(false),
        Keyword::MATCH => behind(parser).parse_match_against(),
        Keyword::CAST if called => behind(parser).parse_cast_expr(CastKind::Cast),
        Keyword::CONVERT if called => behind(parser).parse_convert_expr(false),
        Keyword::EXTRACT if called => behind(parser).parse_extract_expr(),
        Keyword::TRIM if called => behind(parser).parse_trim_expr(),
        Keyword::POSITION if called => {
            let ident = ident(&word, span);
            behind(parser).parse_position_expr(ident)
        }
        Keyword::SUBSTR | Keyword::SUBSTRING if called => parser.parse_substring(),
        _ if is_bare_function(&word) => {
            let name = ObjectName::from(vec![ident(&word, span)]);
            behind(parser).parse_time_functions(name)
        }
        // A name alone cannot be a reserved word, but for `DEFAULT` as a value.
        Keyword::DEFAULT => name(parser, &word, span),
        _ if !called && is_reserved(&word) => parser.expected_ref("an expression", parser.peek_token_ref()),
        _ => name(parser, &word, span),
    }
}

/// The parser, behind the word it stands on.
fn behind<'p, 'd>(parser: &'p mut Parser<'d>) -> &'p mut Parser<'d> {
    parser.advance_token();
    parser
}

fn ident(word: &Word, span: Span) -> Ident {
    Ident {
        value: word.value.clone(),
        quote_style: word.quote_style,
        span,
    }
}

fn is_reserved(word: &Word) -> bool {
    crate::Keyword::find(word.value.as_bytes()).is_some_and(crate::Keyword::is_reserved)
}

/// Functions that may stand without parentheses, of which `sqlparser` knows the first four.
fn is_bare_function(word: &Word) -> bool {
    use crate::Keyword as K;
    matches!(
        K::find(word.value.as_bytes()),
        Some(
            K::CurrentDate
                | K::CurrentTime
                | K::CurrentTimestamp
                | K::Localtime
                | K::Localtimestamp
                | K::UtcDate
                | K::UtcTime
                | K::UtcTimestamp
                | K::CurrentUser
                | K::CurrentRole
        )
    )
}

/// A column or a function.
fn name(parser: &mut Parser, word: &Word, span: Span) -> Parsed {
    let ident = ident(word, span);
    parser.advance_token();
    if parser.peek_token_ref().token == Token::LParen {
        return parser.parse_function(ObjectName::from(vec![ident]));
    }
    Ok(Expr::Identifier(ident))
}

/// A bare word that is no keyword: a variable, an introducer, a column, a function.
fn bare_name(parser: &mut Parser, word: &Word, span: Span) -> Parsed {
    let next = &parser.peek_nth_token_ref(1).token;
    let introduces = word
        .value
        .strip_prefix('_')
        .is_some_and(|name| is_introducer(name.as_bytes()));
    if introduces {
        if !matches!(
            next,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::HexStringLiteral(_)
                | Token::SingleQuotedByteStringLiteral(_)
        ) {
            return parser.expected_ref("a string after a character set", parser.peek_nth_token_ref(1));
        }
        let prefix = ident(word, span);
        parser.advance_token();
        return Ok(Expr::Prefixed {
            prefix,
            value: Box::new(value(parser)?),
        });
    }
    // `@a := expr` takes the whole expression behind it.
    if *next == Token::Assignment && word.value.starts_with('@') {
        let left = Box::new(Expr::Identifier(ident(word, span)));
        parser.advance_token();
        parser.advance_token();
        let right = Box::new(parser.parse_expr()?);
        return Ok(Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        });
    }
    name(parser, word, span)
}

fn not(parser: &mut Parser) -> Parsed {
    parser.advance_token();
    match parser.parse_subexpr(power::NOT)? {
        Expr::Exists {
            subquery,
            negated: false,
        } => Ok(Expr::Exists {
            subquery,
            negated: true,
        }),
        expr => Ok(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(expr),
        }),
    }
}

fn binary_cast(parser: &mut Parser) -> Parsed {
    parser.advance_token();
    let expr = Box::new(parser.parse_subexpr(power::BANG)?);
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr,
        data_type: DataType::Binary(None),
        format: None,
    })
}

fn typed(parser: &mut Parser, data_type: DataType) -> Parsed {
    parser.advance_token();
    let value = parser.parse_value()?;
    Ok(Expr::TypedString(TypedString {
        data_type,
        value,
        uses_odbc_syntax: false,
    }))
}

/// `INTERVAL expr unit`, or the function `INTERVAL(n, a, b, ...)`.
fn interval(parser: &mut Parser, span: Span) -> Parsed {
    parser.advance_token();
    let value = if parser.peek_token_ref().token == Token::LParen {
        match parenthesized(parser)? {
            Expr::Tuple(items) => return Ok(interval_function(items, span)),
            // `INTERVAL (1) + 1 DAY`
            mut value => loop {
                let power = next_power(parser);
                if power == 0 {
                    break value;
                }
                value = parser.parse_infix(value, power)?;
            },
        }
    } else {
        parser.parse_expr()?
    };
    Ok(Expr::Interval(Interval {
        value: Box::new(value),
        leading_field: Some(unit(parser)?),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn interval_function(items: Vec<Expr>, span: Span) -> Expr {
    let args = items
        .into_iter()
        .map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item)))
        .collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident {
            value: "INTERVAL".to_owned(),
            quote_style: None,
            span,
        }]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

fn unit(parser: &mut Parser) -> Result<DateTimeField, ParserError> {
    const COMPOUND: [&str; 11] = [
        "YEAR_MONTH",
        "DAY_HOUR",
        "DAY_MINUTE",
        "DAY_SECOND",
        "DAY_MICROSECOND",
        "HOUR_MINUTE",
        "HOUR_SECOND",
        "HOUR_MICROSECOND",
        "MINUTE_SECOND",
        "MINUTE_MICROSECOND",
        "SECOND_MICROSECOND",
    ];
    let token = parser.next_token();
    let Token::Word(word) = &token.token else {
        return parser.expected("a unit of time", token);
    };
    Ok(match word.value.to_ascii_uppercase().as_str() {
        _ if word.quote_style.is_some() => return parser.expected("a unit of time", token),
        "MICROSECOND" => DateTimeField::Microsecond,
        "SECOND" => DateTimeField::Second,
        "MINUTE" => DateTimeField::Minute,
        "HOUR" => DateTimeField::Hour,
        "DAY" => DateTimeField::Day,
        "WEEK" => DateTimeField::Week(None),
        "MONTH" => DateTimeField::Month,
        "QUARTER" => DateTimeField::Quarter,
        "YEAR" => DateTimeField::Year,
        unit if COMPOUND.contains(&unit) => DateTimeField::Custom(ident(word, token.span)),
        _ => return parser.expected("a unit of time", token),
    })
}
