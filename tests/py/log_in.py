"""Logs in a few times as PyMySQL does, which begins with a SET. Each login must be quick."""

import sys
import time

import pymysql

host, port, user, password, database = sys.argv[1:]
for _ in range(4):
    began = time.monotonic()
    conn = pymysql.connect(
        host=host, port=int(port), user=user, password=password, database=database,
        charset="utf8mb4", autocommit=True, read_timeout=10,
    )
    with conn.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        assert cursor.fetchone()
        cursor.execute("SELECT v FROM t WHERE id = 1")
        assert cursor.fetchone() == (1,)
    conn.close()
    took = time.monotonic() - began
    assert took < 5, took
print("4 logins")
