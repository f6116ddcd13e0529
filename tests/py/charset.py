"""Prints what clients of several character sets see."""

import sys

import pymysql

host, port, user, password, database = sys.argv[1:]
for charset in ["utf8mb4", "utf8mb3", "latin1", "ascii", "latin2", "cp1251"]:
    connection = pymysql.connect(
        host=host, port=int(port), user=user, password=password, database=database, charset=charset
    )
    with connection.cursor() as cursor:
        for sql in [
            "SELECT g, HEX(g), CHARSET('x'), COLLATION('x') FROM t WHERE id = 2",
            "SELECT @@character_set_client, @@character_set_connection, @@character_set_results",
            "SELECT id FROM t WHERE g = 'a' ORDER BY id",
        ]:
            cursor.execute(sql)
            print(charset, [c[:2] for c in cursor.description], cursor.fetchall())
    connection.close()
