//! Statements, and what a server answers to each.

pub(super) const SCHEMA: &[(&str, &str)] = &[
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

pub(super) const READS: &[(&str, &str)] = &[
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

pub(super) const WRITES: &[(&str, &str)] = &[
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
