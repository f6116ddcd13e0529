//! Everyday statements and what a server answers to them.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Row, params};

use crate::{ask, check, client, tablet};

const SCHEMA: &[(&str, &str)] = &[
    (
        "CREATE TABLE customers (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, email VARCHAR(120) NOT NULL, \
         name VARCHAR(60) NOT NULL DEFAULT '', city VARCHAR(40) DEFAULT NULL, created_at DATETIME NOT NULL \
         DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id), UNIQUE KEY email (email), KEY city (city)) ENGINE=InnoDB \
         DEFAULT CHARSET=utf8mb4",
        "",
    ),
    (
        "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer_id BIGINT UNSIGNED NOT NULL, status \
         ENUM('new','paid','sent') NOT NULL DEFAULT 'new', total DECIMAL(10,2) NOT NULL, placed_at DATETIME(3), \
         note TEXT, KEY by_customer (customer_id), CONSTRAINT fk_customer FOREIGN KEY (customer_id) REFERENCES \
         customers (id))",
        "",
    ),
    (
        "INSERT INTO customers (email, name, city, created_at) VALUES ('bob@x.org','Bob','Berlin','2024-01-31 10:00:00'), \
         ('ann@x.org','Ann','Oslo','2024-02-29 23:59:59'), ('zoe@x.org','Zoë',NULL,'2023-12-01 00:00:00')",
        "",
    ),
    (
        "INSERT INTO orders VALUES (1,1,'paid',10.10,'2024-03-01 12:00:00.5',NULL),(2,1,'new',0.20,NULL,'x'),\
         (3,2,'sent',99999999.99,'2024-03-02 00:00:00','it''s')",
        "",
    ),
];

const READS: &[(&str, &str)] = &[
    ("SELECT 1", "1"),
    (
        "SELECT NULL, TRUE, FALSE, 'it''s', \"q\", -3",
        "NULL|1|0|it's|q|-3",
    ),
    ("SELECT id, name FROM customers WHERE id = 1", "1|Bob"),
    ("SELECT name FROM customers WHERE email = 'BOB@X.ORG'", "Bob"),
    ("SELECT name FROM customers WHERE name = 'zoe'", "Zoë"),
    ("SELECT name FROM customers WHERE name = 'Bob   '", "Bob"),
    ("SELECT name FROM customers WHERE id = '2'", "Ann"),
    (
        "SELECT name FROM customers WHERE id IN (1, 3) ORDER BY id DESC",
        "Zoë/Bob",
    ),
    ("SELECT name FROM customers WHERE id NOT IN (1, 3)", "Ann"),
    (
        "SELECT name FROM customers WHERE (id, name) IN ((1, 'bob'), (2, 'x'))",
        "Bob",
    ),
    ("SELECT name FROM customers WHERE city IS NULL", "Zoë"),
    ("SELECT name FROM customers WHERE city <=> NULL", "Zoë"),
    (
        "SELECT name FROM customers WHERE name LIKE 'b%' OR name LIKE '_NN'",
        "Bob/Ann",
    ),
    ("SELECT name FROM customers WHERE name LIKE BINARY 'b%'", ""),
    (
        "SELECT name FROM customers WHERE created_at BETWEEN '2024-01-01' AND '2024-02-01'",
        "Bob",
    ),
    (
        "SELECT name FROM customers WHERE created_at > '2024-02-29 23:59:58'",
        "Ann",
    ),
    (
        "SELECT COUNT(*), COUNT(city), COUNT(DISTINCT city) FROM customers",
        "3|2|2",
    ),
    (
        "SELECT SUM(total), MIN(total), MAX(total) FROM orders",
        "100000010.29|0.20|99999999.99",
    ),
    ("SELECT AVG(total) FROM orders WHERE customer_id = 1", "5.150000"),
    ("SELECT SUM(id), AVG(id) FROM orders", "6|2.0000"),
    ("SELECT SUM(total) FROM orders WHERE id > 99", "NULL"),
    (
        "SELECT customer_id, COUNT(*) AS n, SUM(total) FROM orders GROUP BY customer_id ORDER BY n DESC",
        "1|2|10.30/2|1|99999999.99",
    ),
    (
        "SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 1",
        "1",
    ),
    (
        "SELECT customer_id, SUM(total) s FROM orders GROUP BY 1 HAVING s > 100",
        "2|99999999.99",
    ),
    ("SELECT status FROM orders ORDER BY status", "new/paid/sent"),
    ("SELECT id FROM orders ORDER BY total", "2/1/3"),
    ("SELECT total FROM orders WHERE total = 10.1", "10.10"),
    ("SELECT id FROM orders WHERE total > 10 AND total < '100'", "1"),
    (
        "SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer_id = c.id ORDER BY o.id",
        "Bob|1/Bob|2/Ann|3",
    ),
    (
        "SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.id > 1 ORDER BY c.id",
        "Bob|2/Ann|3/Zoë|NULL",
    ),
    (
        "SELECT c.name FROM orders o RIGHT JOIN customers c ON o.customer_id = c.id WHERE o.id IS NULL",
        "Zoë",
    ),
    ("SELECT COUNT(*) FROM customers, orders", "9"),
    (
        "SELECT COUNT(*) FROM customers a JOIN customers b USING (city)",
        "2",
    ),
    (
        "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE total > 50)",
        "Ann",
    ),
    (
        "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id AND note = 'X')",
        "Bob",
    ),
    (
        "SELECT name, (SELECT MAX(total) FROM orders o WHERE o.customer_id = c.id) FROM customers c ORDER BY id",
        "Bob|10.10/Ann|99999999.99/Zoë|NULL",
    ),
    ("SELECT (SELECT id FROM orders)", "ERR 1242..."),
    (
        "SELECT d.n FROM (SELECT customer_id, COUNT(*) n FROM orders GROUP BY customer_id) d WHERE d.n = 2",
        "2",
    ),
    (
        "WITH big AS (SELECT * FROM orders WHERE total > 5) SELECT COUNT(*) FROM big",
        "2",
    ),
    (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) FROM n",
        "15",
    ),
    ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2", "1/2"),
    (
        "SELECT 'a' AS x UNION SELECT 'A' UNION SELECT 'b' ORDER BY x DESC",
        "b/a",
    ),
    (
        "SELECT DISTINCT customer_id FROM orders ORDER BY customer_id LIMIT 1 OFFSET 1",
        "2",
    ),
    ("SELECT id FROM orders ORDER BY id LIMIT 1, 2", "2/3"),
    (
        "SELECT CASE WHEN total > 50 THEN 'big' WHEN total > 5 THEN 'mid' ELSE 'small' END FROM orders ORDER BY id",
        "mid/small/big",
    ),
    (
        "SELECT CASE status WHEN 'PAID' THEN 1 ELSE 0 END FROM orders ORDER BY id",
        "1/0/0",
    ),
    (
        "SELECT customer_id, CASE WHEN SUM(total) > 50 THEN 'hi' ELSE 'lo' END c FROM orders GROUP BY customer_id HAVING c = 'HI'",
        "2|hi",
    ),
    (
        "SELECT IF(1 > 2, 'a', 'b'), IFNULL(NULL, 5), COALESCE(NULL, NULL, 'z'), NULLIF(1, 1)",
        "b|5|z|NULL",
    ),
    (
        "SELECT CONCAT('a', 1, 2.50, NULL), CONCAT('a', 1, 2.50), CONCAT_WS('-', 'a', NULL, 'b')",
        "NULL|a12.50|a-b",
    ),
    (
        "SELECT LOWER('ÄB'), UPPER('äb'), LENGTH('ä'), CHAR_LENGTH('ä')",
        "äb|ÄB|2|1",
    ),
    (
        "SELECT LEFT('hello', 2), RIGHT('hello', 2), SUBSTRING('hello', 2, 3), SUBSTRING('hello', -3), MID('hello', 2, 1)",
        "he|lo|ell|llo|e",
    ),
    (
        "SELECT LPAD('7', 3, '0'), RPAD('7', 3, '.'), TRIM('  x '), REPLACE('aXa', 'X', 'b'), REVERSE('abc'), REPEAT('ab', 2)",
        "007|7..|x|aba|cba|abab",
    ),
    (
        "SELECT INSTR('Hello', 'L'), LOCATE('l', 'hello', 4), FIND_IN_SET('b', 'a,B,c'), SUBSTRING_INDEX('a.b.c', '.', 2), FIELD('b', 'a', 'B')",
        "3|4|2|a.b|2",
    ),
    (
        "SELECT ROUND(2.5), ROUND(-2.5), ROUND(1.005, 2), ROUND(155, -1), TRUNCATE(1.999, 1), FLOOR(-1.5), CEIL(1.1)",
        "3|-3|1.01|160|1.9|-2|2",
    ),
    (
        "SELECT 7 DIV 2, 7 MOD 2, -7 % 3, MOD(10, 4), ABS(-5), ABS(-1.5), SIGN(-2), POW(2, 10), SQRT(16)",
        "3|1|-1|2|5|1.5|-1|1024|4",
    ),
    (
        "SELECT 0.1 + 0.2, 1/3, 10/4, 1.10 * 2, 5 / 0, 1e0 / 4",
        "0.3|0.3333|2.5000|2.20|NULL|0.25",
    ),
    ("SELECT 9223372036854775807 + 1", "ERR 1690..."),
    (
        "SELECT 18446744073709551615, 9223372036854775808 > 9223372036854775807, 18446744073709551615 - 1",
        "18446744073709551615|1|18446744073709551614",
    ),
    ("SELECT '5' + 3, '2abc' * 2, 'x' = 0, '10' > 9", "8|4|1|1"),
    (
        "SELECT 5 & 3, 5 | 3, 5 ^ 3, 1 << 4, ~0, !1, NOT 0",
        "1|7|6|16|18446744073709551615|0|1",
    ),
    (
        "SELECT 1 AND NULL, 0 AND NULL, 1 OR NULL, 1 XOR 1, 1 && 0, 1 || 0",
        "NULL|0|1|0|0|1",
    ),
    (
        "SELECT CAST('12' AS SIGNED), CAST(-1 AS UNSIGNED), CAST(1.555 AS DECIMAL(5,2)), CAST(5 AS CHAR), CAST('2024-01-02' AS DATE)",
        "12|18446744073709551615|1.56|5|2024-01-02",
    ),
    (
        "SELECT DATE_FORMAT('2024-02-29 13:05:09', '%Y/%m/%d %H:%i:%s %W %b')",
        "2024/02/29 13:05:09 Thursday Feb",
    ),
    (
        "SELECT DATE_ADD('2024-01-31', INTERVAL 1 MONTH), '2024-01-31' + INTERVAL 1 DAY, DATE_SUB('2024-03-01 00:00:00', INTERVAL 1 SECOND)",
        "2024-02-29|2024-02-01|2024-02-29 23:59:59",
    ),
    (
        "SELECT DATEDIFF('2024-03-01', '2024-02-01'), TIMESTAMPDIFF(HOUR, '2024-01-01', '2024-01-02 12:00:00'), LAST_DAY('2024-02-01')",
        "29|36|2024-02-29",
    ),
    (
        "SELECT YEAR(created_at), MONTH(created_at), DAY(created_at), HOUR(created_at), DAYOFWEEK(created_at), DATE(created_at) FROM customers WHERE id = 2",
        "2024|2|29|23|5|2024-02-29",
    ),
    (
        "SELECT UNIX_TIMESTAMP('1970-01-02 00:00:00'), FROM_UNIXTIME(86400)",
        "86400|1970-01-02 00:00:00",
    ),
    (
        "SELECT EXTRACT(YEAR FROM '2024-05-06'), WEEK('2024-01-07'), TIME('2024-01-01 10:11:12')",
        "2024|1|10:11:12",
    ),
    (
        "SELECT placed_at FROM orders ORDER BY placed_at",
        "NULL/2024-03-01 12:00:00.500/2024-03-02 00:00:00.000",
    ),
    ("SELECT NOW() = CURRENT_TIMESTAMP, CURDATE() = DATE(NOW())", "1|1"),
    (
        "SELECT GROUP_CONCAT(name ORDER BY name DESC SEPARATOR '+') FROM customers",
        "Zoë+Bob+Ann",
    ),
    ("SELECT BIT_OR(id), STD(id) FROM orders WHERE id < 3", "3|0.5"),
    (
        "SELECT HEX('az'), HEX(255), UNHEX('4D'), x'4142', ASCII('A')",
        "617A|FF|M|AB|65",
    ),
    (
        "SELECT GREATEST(1, 5, 3), LEAST('b', 'A'), GREATEST(1.5, 2)",
        "5|A|2.0",
    ),
    (
        "SELECT name AS n FROM customers ORDER BY CHAR_LENGTH(email), n LIMIT 1",
        "Ann",
    ),
    (
        "SELECT SQL_CALC_FOUND_ROWS id FROM orders ORDER BY id LIMIT 1",
        "1",
    ),
    ("SELECT FOUND_ROWS()", "3"),
    ("SELECT id FROM orders WHERE id = 1 FOR UPDATE", "1"),
    (
        "SELECT DATABASE(), USER(), VERSION() = @@version, CONNECTION_ID() > 0",
        "shop|root@127.0.0.1|1|1",
    ),
    (
        "SELECT @@autocommit, @@server_id, @@read_only, @@session.sql_auto_is_null, @@max_allowed_packet > 0",
        "1|1|0|0|1",
    ),
    (
        "SELECT nosuch FROM orders",
        "ERR 1054 Unknown column 'nosuch' in 'field list'",
    ),
    (
        "SELECT id FROM orders WHERE nosuch = 1",
        "ERR 1054 Unknown column 'nosuch' in 'where clause'",
    ),
    (
        "SELECT id FROM orders o JOIN customers c",
        "ERR 1052 Column 'id' in field list is ambiguous",
    ),
    (
        "SELECT * FROM nosuch",
        "ERR 1146 Table 'shop.nosuch' doesn't exist",
    ),
    ("SELEC 1", "ERR 1..."),
    ("SELECT NOSUCH(1)", "ERR 1305..."),
    ("SELECT id FROM orders WHERE COUNT(*) > 1", "ERR 1111..."),
    (
        "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM orders",
        "ERR 1235...",
    ),
    (
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1",
        "customers|BASE TABLE/orders|BASE TABLE",
    ),
    (
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_KEY, EXTRA, NUMERIC_SCALE, COLLATION_NAME FROM \
         information_schema.columns WHERE TABLE_NAME = 'customers' ORDER BY ORDINAL_POSITION LIMIT 2",
        "id|bigint|bigint(20) unsigned|NO|PRI|auto_increment|0|NULL/email|varchar|varchar(120)|NO|UNI||NULL|utf8mb4_general_ci",
    ),
    (
        "SELECT SCHEMA_NAME FROM information_schema.schemata ORDER BY 1",
        "information_schema/shop",
    ),
    ("SHOW TABLES LIKE 'cust%'", "customers"),
    (
        "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'",
        "customers|BASE TABLE/orders|BASE TABLE",
    ),
    ("SHOW DATABASES", "information_schema/shop"),
    (
        "SHOW COLUMNS FROM orders LIKE 'total'",
        "total|decimal(10,2)|NO||NULL|",
    ),
    (
        "DESCRIBE customers id",
        "id|bigint(20) unsigned|NO|PRI|NULL|auto_increment",
    ),
    ("SHOW VARIABLES LIKE 'autocommit'", "autocommit|ON"),
    ("SHOW COUNT(*) WARNINGS", "0"),
];

const WRITES: &[(&str, &str)] = &[
    ("INSERT INTO customers (email) VALUES ('new@x.org')", ""),
    ("SELECT LAST_INSERT_ID(), ROW_COUNT()", "4|1"),
    (
        "INSERT INTO customers (email) VALUES ('NEW@x.org')",
        "ERR 1062 Duplicate entry 'NEW@x.org' for key 'email'",
    ),
    (
        "INSERT INTO customers (id, email) VALUES (1, 'q@x.org')",
        "ERR 1062 Duplicate entry '1' for key 'PRIMARY'",
    ),
    (
        "INSERT INTO customers (email) VALUES (NULL)",
        "ERR 1048 Column 'email' cannot be null",
    ),
    (
        "INSERT INTO customers (name) VALUES ('x')",
        "ERR 1364 Field 'email' doesn't have a default value",
    ),
    (
        "INSERT INTO customers (email, nosuch) VALUES ('a', 1)",
        "ERR 1054 Unknown column 'nosuch' in 'field list'",
    ),
    (
        "INSERT INTO customers (email, name) VALUES ('a')",
        "ERR 1136 Column count doesn't match value count at row 1",
    ),
    (
        "INSERT INTO orders (id, customer_id, total) VALUES (9, 1, 100000000)",
        "ERR 1264 Out of range value for column 'total' at row 1",
    ),
    (
        "INSERT INTO orders (id, customer_id, total) VALUES ('x', 1, 1)",
        "ERR 1366...",
    ),
    (
        "INSERT INTO orders (id, customer_id, status, total) VALUES (9, 1, 'lost', 1)",
        "ERR 1265...",
    ),
    (
        "INSERT INTO customers (email, created_at) VALUES ('t@x.org', '2024-02-30')",
        "ERR 1292 Incorrect datetime value: '2024-02-30' for column 'created_at' at row 1",
    ),
    (
        "INSERT INTO orders (id, customer_id, total) VALUES (9, 77, 1)",
        "ERR 1452...",
    ),
    ("DELETE FROM customers WHERE id = 1", "ERR 1451..."),
    (
        "INSERT IGNORE INTO customers (email) VALUES ('bob@x.org'), ('ig@x.org')",
        "",
    ),
    ("SELECT ROW_COUNT()", "1"),
    (
        "INSERT INTO customers (email, name) VALUES ('bob@x.org', 'Robert') ON DUPLICATE KEY UPDATE name = VALUES(name), city = CONCAT(city, '!')",
        "",
    ),
    ("SELECT ROW_COUNT()", "2"),
    (
        "SELECT id, name, city FROM customers WHERE email = 'bob@x.org'",
        "1|Robert|Berlin!",
    ),
    (
        "REPLACE INTO orders (id, customer_id, total) VALUES (2, 2, 7), (50, 2, 8)",
        "",
    ),
    ("SELECT ROW_COUNT()", "3"),
    (
        "UPDATE orders SET total = total + 0.05, note = total WHERE customer_id = 2 AND id < 50 ORDER BY id DESC LIMIT 1",
        "ERR 1264...",
    ),
    (
        "UPDATE orders SET total = total + 0.05, note = total WHERE id = 50",
        "",
    ),
    ("SELECT total, note FROM orders WHERE id = 50", "8.05|8.05"),
    ("UPDATE orders SET total = 8.05 WHERE id = 50", ""),
    ("SELECT ROW_COUNT()", "0"),
    ("DELETE FROM orders WHERE id >= 1 ORDER BY id DESC LIMIT 2", ""),
    ("SELECT id FROM orders", "1/2"),
    (
        "INSERT INTO orders (id, customer_id, total) SELECT id + 100, customer_id, total * 2 FROM orders",
        "",
    ),
    (
        "SELECT id, total FROM orders WHERE id > 100 ORDER BY id",
        "101|20.20/102|14.00",
    ),
    ("INSERT INTO orders SET id = 200, customer_id = 1, total = 1", ""),
    (
        "ALTER TABLE orders ADD COLUMN weight INT NOT NULL DEFAULT 3 AFTER total, ADD INDEX by_weight (weight)",
        "",
    ),
    ("SELECT weight FROM orders WHERE id = 200", "3"),
    (
        "ALTER TABLE orders MODIFY total DECIMAL(12,3) NOT NULL, DROP INDEX by_weight, DROP COLUMN note",
        "",
    ),
    ("SELECT * FROM orders WHERE id = 200", "200|1|new|1.000|3|NULL"),
    ("CREATE UNIQUE INDEX u ON customers (name, city)", ""),
    (
        "SHOW INDEX FROM customers WHERE Key_name = 'u'",
        "customers|0|u|1|name|A|0|NULL|NULL||BTREE|||NO/customers|0|u|2|city|A|0|NULL|NULL|YES|BTREE|||NO",
    ),
    ("TRUNCATE TABLE orders", ""),
    ("SELECT COUNT(*) FROM orders", "0"),
    ("DROP TABLE customers", "ERR 1451..."),
    ("DROP TABLE IF EXISTS orders, nosuch", ""),
    ("DROP TABLE nosuch", "ERR 1051 Unknown table 'shop.nosuch'"),
    (
        "CREATE TABLE customers (id INT)",
        "ERR 1050 Table 'customers' already exists",
    ),
    ("CREATE DATABASE other", ""),
    (
        "CREATE TABLE other.t (a INT PRIMARY KEY, b VARBINARY(4), u BIGINT UNSIGNED, tm TIME, f FLOAT, j JSON)",
        "",
    ),
    (
        "INSERT INTO other.t VALUES (1, x'00ff', 18446744073709551615, '-10:30:00', 1.5, '{\"a\": 1}')",
        "",
    ),
    (
        "SELECT HEX(b), u, tm, f, j FROM other.t WHERE u = 18446744073709551615",
        "00FF|18446744073709551615|-10:30:00|1.5|{\"a\": 1}",
    ),
    (
        "SELECT MAX(u) FROM other.t WHERE u > 9223372036854775807",
        "18446744073709551615",
    ),
    ("DROP DATABASE other", ""),
    ("USE nosuch", "ERR 1049 Unknown database 'nosuch'"),
];

#[tokio::test]
async fn everyday_statements_answer_as_a_server_answers() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(&mut conn, SCHEMA).await;
    check(&mut conn, READS).await;
    check(&mut conn, WRITES).await;
    conn.disconnect().await.unwrap();
    tablet.shutdown().await;
}

#[tokio::test]
async fn columns_are_described_with_their_types_and_flags() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(&mut conn, SCHEMA).await;
    let result = conn
        .query_iter("SELECT c.id, c.email AS mail, total, placed_at, COUNT(*) OVER_ALL FROM customers c, orders GROUP BY 1")
        .await
        .unwrap();
    let columns = result.columns().unwrap().to_vec();
    result.drop_result().await.unwrap();
    let id = &columns[0];
    assert_eq!(id.column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
    assert!(id.flags().contains(
        ColumnFlags::NOT_NULL_FLAG
            | ColumnFlags::PRI_KEY_FLAG
            | ColumnFlags::UNSIGNED_FLAG
            | ColumnFlags::AUTO_INCREMENT_FLAG
    ));
    assert_eq!(
        (id.schema_str(), id.table_str(), id.org_table_str()),
        ("shop".into(), "c".into(), "customers".into())
    );
    let mail = &columns[1];
    assert_eq!(
        (mail.name_str(), mail.org_name_str()),
        ("mail".into(), "email".into())
    );
    assert_eq!(
        (mail.column_type(), mail.character_set(), mail.column_length()),
        (ColumnType::MYSQL_TYPE_VAR_STRING, 45, 480)
    );
    let total = &columns[2];
    assert_eq!(
        (total.column_type(), total.decimals(), total.column_length()),
        (ColumnType::MYSQL_TYPE_NEWDECIMAL, 2, 12)
    );
    assert_eq!(
        (columns[3].column_type(), columns[3].decimals()),
        (ColumnType::MYSQL_TYPE_DATETIME, 3)
    );
    assert_eq!(
        (columns[4].column_type(), columns[4].character_set()),
        (ColumnType::MYSQL_TYPE_LONGLONG, 63)
    );
}

#[tokio::test]
#[allow(clippy::type_complexity)] // one row, written out once
async fn prepared_statements_carry_every_type_both_ways() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    conn.query_drop(
        "CREATE TABLE p (i BIGINT, u BIGINT UNSIGNED, d DECIMAL(20,5), f DOUBLE, s VARCHAR(50), b BLOB, t DATETIME(6), n INT)",
    )
    .await
    .unwrap();
    let row = (
        i64::MIN,
        u64::MAX,
        "123456789012345.12345",
        0.1f64,
        "it's \\ \"x\" ?",
        vec![0u8, 255, 39, 92],
        "2024-02-29 01:02:03.000004",
        Option::<i32>::None,
    );
    conn.exec_drop("INSERT INTO p VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row.clone())
        .await
        .unwrap();
    let back: Vec<(i64, u64, String, f64, String, Vec<u8>, String, Option<i32>)> = conn
        .exec(
            "SELECT i, u, d, f, s, b, CAST(t AS CHAR), n FROM p WHERE s = ? AND u = ?",
            (row.4, row.1),
        )
        .await
        .unwrap();
    assert_eq!(back.len(), 1);
    let b = &back[0];
    assert_eq!((b.0, b.1, b.2.as_str(), b.3), (row.0, row.1, row.2, row.3));
    assert_eq!(
        (b.4.as_str(), b.5.as_slice(), b.6.as_str(), b.7),
        (row.4, row.5.as_slice(), row.6, None)
    );
    let n: Option<u64> = conn
        .exec_first("SELECT COUNT(*) FROM p LIMIT ?", (10,))
        .await
        .unwrap();
    assert_eq!(n, Some(1));
    let named: Option<Row> = conn
        .exec_first("SELECT :a + :b AS total", params! { "a" => 2, "b" => 3 })
        .await
        .unwrap();
    assert_eq!(named.unwrap().get::<i64, _>("total"), Some(5));
    assert!(
        conn.exec_drop("SELECT * FROM gone WHERE x = ?", (1,))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn several_statements_in_one_command_stop_at_the_first_error() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let mut result = conn
        .query_iter("SELECT 1; CREATE TABLE m (a INT); INSERT INTO m VALUES (1),(2); SELECT a FROM m")
        .await
        .unwrap();
    let mut sets = Vec::new();
    while !result.is_empty() || result.affected_rows() > 0 || result.columns().is_some() {
        let affected = result.affected_rows();
        let rows: Vec<Row> = result.collect().await.unwrap();
        sets.push((affected, rows.len()));
    }
    drop(result);
    assert_eq!(
        sets.iter().map(|(_, rows)| *rows).collect::<Vec<_>>(),
        [1, 0, 0, 2]
    );
    let stopped = ask(&mut conn, "SELECT 1; SELECT nosuch; INSERT INTO m VALUES (9)").await;
    assert!(stopped.starts_with("ERR 1054"), "{stopped}");
    let mut other = client(&tablet).await;
    assert_eq!(ask(&mut other, "SELECT COUNT(*) FROM m").await, "2");
}

#[tokio::test]
async fn a_long_result_arrives_whole() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i, REPEAT('x', 50) FROM n";
    let rows: Vec<(u64, String)> = conn.query(sql).await.unwrap();
    assert_eq!(rows.len(), 30_000);
    assert!(
        rows.iter()
            .enumerate()
            .all(|(at, (i, s))| *i == at as u64 + 1 && s.len() == 50)
    );
}

#[tokio::test]
async fn numbers_of_enums_and_fractions_of_texts_are_kept() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(
        &mut conn,
        &[
            ("CREATE TABLE e (v ENUM('z','y','x'))", ""),
            ("INSERT INTO e VALUES ('x'), ('z'), (2), (NULL)", ""),
            ("SELECT v, v + 0 FROM e ORDER BY v", "NULL|NULL/z|1/y|2/x|3"),
            (
                "SELECT UNIX_TIMESTAMP('2024-01-01 00:00:00.5'), TIME('10:11:12.345')",
                "1704067200.5|10:11:12.345",
            ),
        ],
    )
    .await;
}

/// Two columns renamed by one statement used to come out empty: the copy found columns by name.
#[tokio::test]
async fn columns_keep_their_rows_through_any_renaming() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(
        &mut conn,
        &[
            (
                "CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(10), w INT, KEY by_w (w))",
                "",
            ),
            ("INSERT INTO p VALUES (1, 'a', 5), (2, 'b', 6)", ""),
            (
                "ALTER TABLE p CHANGE w ww BIGINT FIRST, RENAME COLUMN v TO vv, ADD COLUMN n INT DEFAULT 7",
                "",
            ),
            ("SELECT * FROM p WHERE ww > 5", "6|2|b|7"),
            ("ALTER TABLE p RENAME COLUMN vv TO ww2, RENAME COLUMN n TO vv", ""),
            ("SELECT * FROM p ORDER BY id", "5|1|a|7/6|2|b|7"),
            ("SHOW INDEX FROM p WHERE Key_name = 'by_w'", "p|1|by_w|1|ww|..."),
        ],
    )
    .await;
}

#[tokio::test]
async fn thousands_of_rows_load_in_one_go() {
    let tablet = tablet().await;
    let rows: Vec<String> = (1..=5000)
        .map(|i| format!("({i}, 'customer {i}', {i}.25)"))
        .collect();
    let script = format!(
        "CREATE TABLE shop.big (id BIGINT PRIMARY KEY, name VARCHAR(40), total DECIMAL(10,2)); \
         INSERT INTO shop.big VALUES {}",
        rows.join(",")
    );
    let before = tokio::time::Instant::now();
    tablet.execute_local(&script).await.unwrap();
    println!("5000 rows in {:?}", before.elapsed());
    assert_eq!(
        tablet
            .query_local("SELECT COUNT(*), SUM(total) FROM shop.big")
            .await
            .unwrap(),
        [[Some("5000".to_owned()), Some("12503750.00".to_owned())]]
    );
}
