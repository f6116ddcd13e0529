"""Connects with PyMySQL and prints a number and a letter beyond ASCII."""

import sys

import pymysql

host, port, user, password, database = sys.argv[1:]
connection = pymysql.connect(
    host=host, port=int(port), user=user, password=password, database=database, charset="utf8mb4"
)
with connection.cursor() as cursor:
    cursor.execute("SELECT 1, %s", ("\u00e4",))
    print(*cursor.fetchone())
