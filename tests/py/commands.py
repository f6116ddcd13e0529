"""Prints a transcript of the commands besides queries and prepared statements."""

import sys

import pymysql

from raw import connect, packet, results

host, port, user, password, database = sys.argv[1:]
connection = connect(host, port, user, password, database)


def command(name, code, payload=b""):
    print("--", name)
    connection._execute_command(code, payload)


def single(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


command("ping", 0x0E)
results(connection)

command("init db", 0x02, database.encode())
results(connection)
print("database is kept:", single("SELECT DATABASE()") == database)

command("init db of nothing", 0x02, b"no_such_database")
results(connection)

connection.query("SET @x = 5")
command("reset connection", 0x1F)
results(connection)
print("variable after reset:", single("SELECT @x"))

command("statistics", 0x09)
print("uptime is told:", packet(connection).startswith(b"Uptime:"))

command("set option: multi-statements on", 0x1B, b"\x00\x00")
print("end:", packet(connection)[:1].hex())
command("two statements", 0x03, b"SELECT 1; SELECT 2")
results(connection)
command("set option: multi-statements off", 0x1B, b"\x01\x00")
print("end:", packet(connection)[:1].hex())
command("two statements", 0x03, b"SELECT 1; SELECT 2")
error = packet(connection)
print("error:", error.args[0])

command("unknown command", 0x50)
error = packet(connection)
print("error:", error.args[0])

print("still usable:", single("SELECT 7"))
try:
    pymysql.connect(host=host, port=int(port), user=user, password="wrong", database=database)
except pymysql.err.OperationalError as error:
    print("wrong password:", error.args[0])
try:
    pymysql.connect(host=host, port=int(port), user=user, password=password, database="no_such_database")
except pymysql.err.OperationalError as error:
    print("wrong database:", error.args[0])
