//! The demo's rows: small, plausible, and the same for the same seed.

use std::fmt::Write as _;

use crate::base::KeyRange;
use crate::vindex::{Destination, Value, Vindex};

/// The tables of `commerce`.
pub(super) const COMMERCE_SCHEMA: &str = "
CREATE TABLE customers (
  id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100) NOT NULL, name VARCHAR(100) NOT NULL,
  city VARCHAR(50) NOT NULL, created_at DATETIME NOT NULL);
CREATE TABLE orders (
  id BIGINT NOT NULL, customer_id BIGINT NOT NULL, status VARCHAR(20) NOT NULL,
  total DECIMAL(10,2) NOT NULL, placed_at DATETIME NOT NULL,
  PRIMARY KEY (id, customer_id), KEY by_customer (customer_id));
CREATE TABLE order_lines (
  order_id BIGINT NOT NULL, line INT NOT NULL, customer_id BIGINT NOT NULL, sku VARCHAR(20) NOT NULL,
  quantity INT NOT NULL, price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, line, customer_id), KEY by_customer (customer_id));
";

/// The table of `lookup`.
pub(super) const LOOKUP_SCHEMA: &str = "
CREATE TABLE products (sku VARCHAR(20) NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(10,2) NOT NULL);
";

/// How many customers there are; each has two orders, each order two lines.
pub(super) const CUSTOMERS: u64 = 500;
/// How many products there are.
const PRODUCTS: u64 = 120;
/// Rows in one INSERT.
const BATCH: usize = 250;

const NAMES: [&str; 16] = [
    "Ada",
    "Alan",
    "Barbara",
    "Claude",
    "Dennis",
    "Edsger",
    "Frances",
    "Grace",
    "Hedy",
    "Ivan",
    "John",
    "Katherine",
    "Leslie",
    "Margaret",
    "Niklaus",
    "Radia",
];
const CITIES: [&str; 8] = [
    "Oslo", "Lisbon", "Kyoto", "Nairobi", "Quito", "Tallinn", "Perth", "Montreal",
];
const STATUS: [&str; 4] = ["placed", "paid", "shipped", "returned"];
const THINGS: [&str; 10] = [
    "kettle", "lamp", "notebook", "chair", "clock", "scarf", "mug", "compass", "radio", "teapot",
];
const KINDS: [&str; 12] = [
    "blue", "brass", "canvas", "copper", "green", "linen", "oak", "paper", "red", "silver", "small", "white",
];

/// A small generator of even numbers of chance (`SplitMix64`): seeded, so that a demo can be told about.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len() as u64) as usize).copied()
    }
}

/// The rows of each shard, as statements.
pub(super) struct ShardRows {
    customers: Vec<String>,
    orders: Vec<String>,
    lines: Vec<String>,
}

/// The rows of `commerce`, each customer's on the shard that its id hashes to.
pub(super) fn commerce(ranges: &[KeyRange], seed: u64) -> Option<Vec<String>> {
    let hash = Vindex::new("hash", &std::collections::BTreeMap::new(), None).ok()?;
    let mut chance = Chance::new(seed);
    let mut shards: Vec<ShardRows> = ranges
        .iter()
        .map(|_| ShardRows {
            customers: Vec::new(),
            orders: Vec::new(),
            lines: Vec::new(),
        })
        .collect();
    for id in 1..=CUSTOMERS {
        let place = match hash.map(&Value::Int(i64::try_from(id).ok()?)).ok()? {
            Destination::KeyspaceId(place) => place,
            Destination::Shard(_) | Destination::None => return None,
        };
        let at = ranges.iter().position(|r| r.contains(&place))?;
        add_customer(shards.get_mut(at)?, id, &mut chance)?;
    }
    Some(shards.into_iter().map(ShardRows::into_sql).collect())
}

fn add_customer(shard: &mut ShardRows, id: u64, chance: &mut Chance) -> Option<()> {
    let name = chance.pick(&NAMES)?;
    let city = chance.pick(&CITIES)?;
    let email = format!("{}{id}@example.org", name.to_lowercase());
    shard.customers.push(format!(
        "({id}, '{email}', '{name}', '{city}', '{}')",
        moment(chance)
    ));
    for n in 0..2 {
        let order = id * 10 + n;
        let mut cents = 0;
        for line in 1..=2 {
            let product = chance.below(PRODUCTS) + 1;
            let (quantity, price) = (chance.below(4) + 1, price_of(product));
            cents += quantity * price;
            shard.lines.push(format!(
                "({order}, {line}, {id}, '{}', {quantity}, {})",
                sku(product),
                money(price)
            ));
        }
        let status = chance.pick(&STATUS)?;
        shard.orders.push(format!(
            "({order}, {id}, '{status}', {}, '{}')",
            money(cents),
            moment(chance)
        ));
    }
    Some(())
}

impl ShardRows {
    fn into_sql(self) -> String {
        let mut out = String::new();
        for (table, rows) in [
            ("customers", self.customers),
            ("orders", self.orders),
            ("order_lines", self.lines),
        ] {
            insert(&mut out, table, &rows);
        }
        out
    }
}

/// The rows of `lookup`.
pub(super) fn lookup() -> String {
    let rows: Vec<String> = (1..=PRODUCTS)
        .map(|n| {
            let kind = KINDS[(n as usize / THINGS.len()) % KINDS.len()];
            let thing = THINGS[n as usize % THINGS.len()];
            format!("('{}', '{kind} {thing}', {})", sku(n), money(price_of(n)))
        })
        .collect();
    let mut out = String::new();
    insert(&mut out, "products", &rows);
    out
}

fn insert(out: &mut String, table: &str, rows: &[String]) {
    for batch in rows.chunks(BATCH) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "INSERT INTO {table} VALUES {};", batch.join(", "));
    }
}

fn sku(product: u64) -> String {
    format!("SKU-{product:04}")
}

/// A product's price in cents; the same in `lookup` and in every order.
fn price_of(product: u64) -> u64 {
    199 + (product * 7919) % 9800
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn moment(chance: &mut Chance) -> String {
    format!(
        "2025-{:02}-{:02} {:02}:{:02}:{:02}",
        chance.below(12) + 1,
        chance.below(28) + 1,
        chance.below(24),
        chance.below(60),
        chance.below(60)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_one_shard_and_the_same_seed_gives_the_same_rows() {
        let ranges: Vec<_> = ["-40", "40-80", "80-c0", "c0-"]
            .iter()
            .map(|r| KeyRange::parse(r).unwrap())
            .collect();
        let rows = commerce(&ranges, 7).unwrap();
        let lines: usize = rows.iter().map(|sql| sql.matches("@example.org").count()).sum();
        assert_eq!(lines as u64, CUSTOMERS);
        assert!(rows.iter().all(|sql| sql.contains("INSERT INTO order_lines")));
        assert_eq!(rows, commerce(&ranges, 7).unwrap());
        assert_ne!(rows, commerce(&ranges, 8).unwrap());
    }
}
