"""Prints a transcript of multi-statements, warnings and errors between them."""

import sys

from pymysql.constants import CLIENT

from raw import connect, results

connection = connect(*sys.argv[1:], client_flag=CLIENT.MULTI_STATEMENTS, autocommit=True)
batches = [
    "SELECT 1; SELECT COUNT(*) FROM t; SELECT 'a;b', id FROM t WHERE id = 2",
    "INSERT INTO t VALUES (101, 1, 1, 'x'); UPDATE t SET v = 5 WHERE id = 101; SELECT v FROM t WHERE id = 101",
    "SELECT 2; SELECT nothing FROM t; SELECT 3",
    "SELECT 1 /* ; */; -- ; not this\nSELECT 2; # ; nor this\nSELECT 3;",
    "INSERT INTO t VALUES (103, 1, 1, '123456789012345678901'); SELECT 1",
    "DELETE FROM t WHERE id IN (101, 103);",
]
for batch in batches:
    print("--", batch)
    connection._execute_command(3, batch)
    results(connection)
