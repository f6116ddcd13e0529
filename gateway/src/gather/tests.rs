use super::columns::put_lenenc_str;
use super::*;
use crate::route::{Aggregate, Limit};
use proptest::prelude::*;
use smallvec::smallvec;

const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const NEWDECIMAL: u8 = 246;
const VARCHAR: u8 = 253;
const UNSIGNED: u16 = 32;

fn column(name: &str, kind: u8, flags: u16) -> Bytes {
    sized_column(name, kind, flags, 20, 0)
}

fn sized_column(name: &str, kind: u8, flags: u16, length: u32, decimals: u8) -> Bytes {
    let mut out = Vec::new();
    for s in ["def", "db", "t", "t", name, name] {
        put_lenenc_str(&mut out, s.as_bytes());
    }
    out.extend_from_slice(&[0x0c, 63, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[decimals, 0, 0]);
    Bytes::from(out)
}

fn text(cells: &[Option<&str>]) -> Bytes {
    let mut out = Vec::new();
    for cell in cells {
        match cell {
            None => out.push(0xfb),
            Some(s) => put_lenenc_str(&mut out, s.as_bytes()),
        }
    }
    Bytes::from(out)
}

/// A binary row of BIGINT columns.
fn binary(cells: &[Option<i64>]) -> Bytes {
    let mut out = vec![0; 1 + (cells.len() + 9) / 8];
    for (i, cell) in cells.iter().enumerate() {
        match cell {
            None => out[1 + (i + 2) / 8] |= 1 << ((i + 2) % 8),
            Some(v) => out.extend_from_slice(&v.to_le_bytes()),
        }
    }
    Bytes::from(out)
}

fn shards(n: usize) -> Vec<ShardId> {
    (0..n).map(|i| ShardId::new("ks", format!("s{i}"))).collect()
}

fn gather(plan: &GatherPlan, legs: usize, protocol: Protocol) -> Gather {
    Gather::new(plan, shards(legs), protocol, GatherLimits::default())
}

/// Feeds each leg as far as it is wanted, popping as rows come, until finished.
fn run(mut g: Gather, columns: &[Bytes], legs: Vec<Vec<Bytes>>) -> Result<Vec<Bytes>, GatherError> {
    for leg in 0..legs.len() {
        g.leg_columns(leg, columns)?;
    }
    let mut sources: Vec<_> = legs.into_iter().map(Vec::into_iter).collect();
    let mut out = Vec::new();
    while !g.finished() {
        let mut progressed = false;
        for (leg, source) in sources.iter_mut().enumerate() {
            if g.wants(leg) {
                progressed = true;
                match source.next() {
                    Some(row) => g.push_row(leg, row)?,
                    None => g.leg_done(leg)?,
                }
            }
        }
        while let Some(row) = g.pop()? {
            progressed = true;
            out.push(row);
        }
        assert!(progressed || g.finished(), "stuck: {g:?}");
    }
    Ok(out)
}

fn merge(column: KeyColumn, descending: bool, hidden: u16) -> GatherPlan {
    GatherPlan {
        body: GatherBody::Merge(smallvec![SortKey { column, descending }]),
        limit: None,
        hidden,
    }
}

fn aggregate(functions: &[Aggregate]) -> GatherPlan {
    GatherPlan {
        body: GatherBody::Aggregate(functions.iter().copied().collect()),
        limit: None,
        hidden: 0,
    }
}

fn one(values: &[i64]) -> Vec<Bytes> {
    values.iter().map(|v| text(&[Some(&v.to_string())])).collect()
}

#[test]
fn concat_gives_every_row_untouched() {
    let g = gather(&GatherPlan::concat(), 2, Protocol::Text);
    let mut got = run(g, &[column("id", LONG, 0)], vec![one(&[1, 3]), one(&[2])]).unwrap();
    got.sort();
    assert_eq!(got, one(&[1, 2, 3]));
}

#[test]
fn a_window_skips_then_counts_and_then_nothing_more_is_read() {
    let plan = GatherPlan {
        limit: Some(Limit { offset: 1, count: 2 }),
        ..GatherPlan::concat()
    };
    let mut g = gather(&plan, 2, Protocol::Text);
    for leg in 0..2 {
        g.leg_columns(leg, &[column("id", LONG, 0)]).unwrap();
    }
    for row in one(&[1, 2, 3, 4]) {
        g.push_row(0, row).unwrap();
    }
    assert!(!g.finished());
    assert_eq!(
        [g.pop().unwrap(), g.pop().unwrap()].map(Option::unwrap).to_vec(),
        one(&[2, 3])
    );
    assert_eq!(g.pop().unwrap(), None);
    assert!(
        g.finished(),
        "the second leg is still sending and can be cancelled"
    );
}

#[test]
fn limit_two_offset_three_over_alternating_ids_is_four_and_five() {
    let mut plan = merge(KeyColumn::Output(0), false, 0);
    plan.limit = Some(Limit { offset: 3, count: 2 });
    let g = gather(&plan, 2, Protocol::Text);
    let got = run(
        g,
        &[column("id", LONGLONG, 0)],
        vec![one(&[1, 3, 5, 7, 9]), one(&[2, 4, 6, 8, 10])],
    );
    assert_eq!(got.unwrap(), one(&[4, 5]));
}

#[test]
fn the_greatest_limit_with_an_offset_gives_the_rest() {
    let mut plan = merge(KeyColumn::Output(0), false, 0);
    plan.limit = Some(Limit {
        offset: 2,
        count: u64::MAX,
    });
    let got = run(
        gather(&plan, 2, Protocol::Text),
        &[column("id", LONGLONG, 0)],
        vec![one(&[1, 3]), one(&[2, 4])],
    );
    assert_eq!(got.unwrap(), one(&[3, 4]));
}

#[test]
fn null_is_the_least_value_in_both_directions() {
    let id = [column("k", LONG, 0)];
    let row = |v: Option<&str>| text(&[v]);
    let asc = run(
        gather(&merge(KeyColumn::Output(0), false, 0), 2, Protocol::Text),
        &id,
        vec![
            vec![row(None), row(Some("-5"))],
            vec![row(None), row(Some("-7")), row(Some("0"))],
        ],
    );
    assert_eq!(
        asc.unwrap(),
        [None, None, Some("-7"), Some("-5"), Some("0")].map(row)
    );
    let desc = run(
        gather(&merge(KeyColumn::Output(0), true, 0), 2, Protocol::Text),
        &id,
        vec![
            vec![row(Some("-5")), row(None)],
            vec![row(Some("0")), row(Some("-7")), row(None)],
        ],
    );
    assert_eq!(
        desc.unwrap(),
        [Some("0"), Some("-5"), Some("-7"), None, None].map(row)
    );
}

#[test]
fn unsigned_values_beyond_i64_sort_above() {
    let g = gather(&merge(KeyColumn::Output(0), false, 0), 2, Protocol::Binary);
    let big = u64::MAX.cast_signed();
    let got = run(
        g,
        &[column("id", LONGLONG, UNSIGNED)],
        vec![
            vec![binary(&[Some(1)]), binary(&[Some(big)])],
            vec![binary(&[Some(2)])],
        ],
    );
    assert_eq!(got.unwrap(), [1, 2, big].map(|v| binary(&[Some(v)])));
}

#[test]
fn hidden_keys_are_cut_off_definitions_and_text_rows() {
    let mut g = gather(&merge(KeyColumn::Hidden(0), false, 1), 1, Protocol::Text);
    let columns = [column("name", VARCHAR, 0), column("k", LONG, 0)];
    g.leg_columns(0, &columns).unwrap();
    assert_eq!(g.output_columns(), &columns[..1]);
    g.push_row(0, text(&[Some("a"), Some("1")])).unwrap();
    g.leg_done(0).unwrap();
    assert_eq!(g.pop().unwrap().unwrap(), text(&[Some("a")]));
}

/// With 7 columns and one hidden the NULL bitmap is two bytes, without the hidden one it is one.
#[test]
fn a_binary_rows_null_bitmap_is_rebuilt_without_the_hidden_columns() {
    for visible in 1..20usize {
        let columns: Vec<_> = (0..=visible)
            .map(|i| column(&format!("c{i}"), LONGLONG, 0))
            .collect();
        let cells: Vec<Option<i64>> = (0..visible)
            .map(|i| (i % 3 != 0).then_some(i64::try_from(i).unwrap()))
            .collect();
        for key in [None, Some(9)] {
            let with_key: Vec<_> = cells.iter().copied().chain([key]).collect();
            let g = gather(&merge(KeyColumn::Hidden(0), false, 1), 1, Protocol::Binary);
            let got = run(g, &columns, vec![vec![binary(&with_key)]]).unwrap();
            assert_eq!(got, [binary(&cells)], "{visible} columns, key {key:?}");
        }
    }
}

#[test]
fn legs_with_different_columns_are_an_error_that_names_both_shards() {
    let id = column("id", LONG, 0);
    for (other, what) in [
        (vec![column("id", LONGLONG, 0)], "type of `id`"),
        (vec![column("ident", LONG, 0)], "`id` against `ident`"),
        (vec![id.clone(), column("k", LONG, 0)], "1 against 2 columns"),
        (vec![column("id", LONG, UNSIGNED)], "flags of `id`"),
        (vec![sized_column("id", LONG, 0, 11, 0)], "length of `id`"),
    ] {
        let mut g = gather(&GatherPlan::concat(), 2, Protocol::Text);
        g.leg_columns(0, std::slice::from_ref(&id)).unwrap();
        let error = g.leg_columns(1, &other).unwrap_err().to_string();
        assert!(
            error.contains("ks/s0") && error.contains("ks/s1") && error.contains(what),
            "{error}"
        );
    }
}

/// A server may clear NOT NULL where its optimizer saw no row; the answer then may hold NULL as far as a client knows.
#[test]
fn not_null_holds_only_if_all_legs_say_so() {
    let mut g = gather(&GatherPlan::concat(), 2, Protocol::Text);
    g.leg_columns(0, &[column("id", LONG, 1)]).unwrap();
    g.leg_columns(1, &[column("id", LONG, 0)]).unwrap();
    assert_eq!(g.output_columns(), [column("id", LONG, 0)]);
}

#[test]
fn a_text_column_cannot_be_merged_by() {
    let mut g = gather(&merge(KeyColumn::Output(0), false, 0), 1, Protocol::Text);
    let error = g.leg_columns(0, &[column("g", VARCHAR, 0)]).unwrap_err();
    assert!(matches!(error, GatherError::KeyType { .. }));
    assert_eq!(crate::base::GatewayError::errno(&error), (1235, *b"42000"));
}

#[test]
fn aggregates_combine_and_keep_their_types() {
    use Aggregate::{Count, Max, Min, Sum};
    let columns = [
        column("COUNT(*)", LONGLONG, 1),
        sized_column("SUM(v)", NEWDECIMAL, 0, 33, 0),
        column("MIN(v)", LONG, 0),
        column("MAX(v)", LONG, 0),
    ];
    let legs = vec![
        vec![text(&[
            Some("2"),
            Some("9223372036854775807"),
            Some("-4"),
            Some("10"),
        ])],
        vec![text(&[Some("0"), None, None, None])],
        vec![text(&[
            Some("1"),
            Some("9223372036854775807"),
            Some("7"),
            Some("7"),
        ])],
    ];
    let got = run(
        gather(&aggregate(&[Count, Sum, Min, Max]), 3, Protocol::Text),
        &columns,
        legs,
    )
    .unwrap();
    assert_eq!(
        got,
        [text(&[
            Some("3"),
            Some("18446744073709551614"),
            Some("-4"),
            Some("10")
        ])]
    );
}

#[test]
fn aggregates_over_no_rows_are_zero_and_null() {
    use Aggregate::{Count, Max, Min, Sum};
    let columns = [
        column("c", LONGLONG, 1),
        sized_column("s", NEWDECIMAL, 0, 33, 0),
        column("a", LONGLONG, 0),
        column("b", LONGLONG, 0),
    ];
    for protocol in [Protocol::Text, Protocol::Binary] {
        let row = match protocol {
            Protocol::Text => text(&[Some("0"), None, None, None]),
            Protocol::Binary => binary(&[Some(0), None, None, None]),
        };
        let g = gather(&aggregate(&[Count, Sum, Min, Max]), 2, protocol);
        assert_eq!(
            run(g, &columns, vec![vec![row.clone()], vec![row.clone()]]).unwrap(),
            [row]
        );
    }
}

#[test]
fn aggregates_in_binary_rows_keep_their_widths() {
    let columns = [column("COUNT(*)", LONGLONG, 1), column("MIN(v)", LONG, 0)];
    let row = |count: i64, least: i32| {
        let mut out = vec![0, 0];
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&least.to_le_bytes());
        Bytes::from(out)
    };
    let g = gather(
        &aggregate(&[Aggregate::Count, Aggregate::Min]),
        2,
        Protocol::Binary,
    );
    let got = run(g, &columns, vec![vec![row(3, -7)], vec![row(4, 2)]]).unwrap();
    assert_eq!(got, [row(7, -7)]);
}

#[test]
fn a_leg_without_its_aggregate_row_is_an_error() {
    let g = gather(&aggregate(&[Aggregate::Count]), 2, Protocol::Text);
    let error = run(g, &[column("c", LONGLONG, 1)], vec![one(&[3]), vec![]]).unwrap_err();
    assert_eq!(
        error,
        GatherError::RowCount {
            shard: shards(2)[1].clone(),
            rows: 0
        }
    );
}

#[test]
fn legs_limited_to_no_rows_aggregate_to_no_row() {
    let mut plan = aggregate(&[Aggregate::Count]);
    plan.limit = Some(Limit { offset: 0, count: 0 });
    let got = run(
        gather(&plan, 2, Protocol::Text),
        &[column("c", LONGLONG, 1)],
        vec![vec![], vec![]],
    );
    assert_eq!(got.unwrap(), Vec::<Bytes>::new());
}

#[test]
fn sums_of_floating_point_are_refused() {
    let mut g = gather(&aggregate(&[Aggregate::Sum]), 1, Protocol::Text);
    let error = g.leg_columns(0, &[column("SUM(f)", 5, 0)]).unwrap_err();
    assert!(matches!(
        error,
        GatherError::AggregateType {
            function: "SUM",
            kind: "DOUBLE"
        }
    ));
}

#[test]
fn a_leg_that_is_far_ahead_is_not_read() {
    let limits = GatherLimits {
        leg_bytes: 200,
        output_bytes: 200,
    };
    let mut g = Gather::new(
        &merge(KeyColumn::Output(0), false, 0),
        shards(2),
        Protocol::Text,
        limits,
    );
    g.leg_columns(0, &[column("id", LONG, 0)]).unwrap();
    assert!(!g.wants(0), "rows are not read before all columns are known");
    g.leg_columns(1, &[column("id", LONG, 0)]).unwrap();
    let mut pushed = 0;
    while g.wants(0) {
        g.push_row(0, text(&[Some("1")])).unwrap();
        pushed += 1;
        assert!(pushed < 100);
    }
    assert!(g.wants(1));
    assert_eq!(g.pop().unwrap(), None, "leg 1 might still send a lesser row");
}

#[test]
fn a_dropped_leg_is_not_waited_for() {
    let mut g = gather(&merge(KeyColumn::Output(0), false, 0), 3, Protocol::Text);
    g.drop_leg(2).unwrap();
    g.leg_columns(0, &[column("id", LONG, 0)]).unwrap();
    g.leg_columns(1, &[column("id", LONG, 0)]).unwrap();
    g.push_row(0, text(&[Some("1")])).unwrap();
    g.drop_leg(1).unwrap();
    assert_eq!(g.pop().unwrap(), Some(text(&[Some("1")])));
    g.leg_done(0).unwrap();
    assert!(g.finished());
}

#[test]
fn malformed_rows_are_errors_and_never_panics() {
    for bad in [&b""[..], b"\x05ab", b"\xfc", b"\x011\x011", b"\x01x"] {
        let g = gather(&merge(KeyColumn::Output(0), false, 0), 1, Protocol::Text);
        let got = run(g, &[column("id", LONG, 0)], vec![vec![Bytes::from_static(bad)]]);
        assert!(matches!(got, Err(GatherError::Malformed { .. })), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn a_merge_is_a_sort(
        legs in prop::collection::vec(prop::collection::vec((prop::option::of(-4i64..4), prop::option::of(any::<i64>())), 0..12), 1..5),
        (first_desc, second_desc) in any::<(bool, bool)>(),
        (offset, count) in (0u64..6, 0u64..20),
    ) {
        let rank = |v: Option<i64>, desc: bool| {
            let n = v.map_or(i128::MIN, i128::from);
            if desc { !n } else { n }
        };
        let order = |r: &(Option<i64>, Option<i64>)| (rank(r.0, first_desc), rank(r.1, second_desc));
        let mut expected: Vec<_> = legs.iter().flatten().copied().collect();
        expected.sort_by_key(order);
        let expected: Vec<_> =
            expected.into_iter().skip(offset as usize).take(count as usize).map(|(a, _)| binary(&[a])).collect();

        let sorted = legs.into_iter().map(|mut leg| {
            leg.sort_by_key(order);
            leg.into_iter().map(|(a, b)| binary(&[a, b])).collect()
        }).collect::<Vec<Vec<Bytes>>>();
        let plan = GatherPlan {
            body: GatherBody::Merge(smallvec![
                SortKey { column: KeyColumn::Output(0), descending: first_desc },
                SortKey { column: KeyColumn::Hidden(0), descending: second_desc },
            ]),
            limit: Some(Limit { offset, count }),
            hidden: 1,
        };
        let g = gather(&plan, sorted.len(), Protocol::Binary);
        let got = run(g, &[column("a", LONGLONG, 0), column("b", LONGLONG, 0)], sorted).unwrap();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), text in any::<bool>()) {
        let protocol = if text { Protocol::Text } else { Protocol::Binary };
        let bytes = Bytes::from(bytes);
        let mut g = gather(&merge(KeyColumn::Hidden(0), false, 1), 1, protocol);
        let _ = g.leg_columns(0, std::slice::from_ref(&bytes));
        let mut g = gather(&merge(KeyColumn::Hidden(0), false, 1), 1, protocol);
        g.leg_columns(0, &[column("a", VARCHAR, 0), column("b", LONG, 0)]).unwrap();
        let _ = g.push_row(0, bytes);
        let _ = g.pop();
    }
}
