"""Tells what an idle client finds on its connection once the gateway, whose process id is given, is to stop."""

import os
import signal
import sys

import pymysql

host, port, user, password, database, pid = sys.argv[1:]


def connect(autocommit):
    return pymysql.connect(
        host=host, port=int(port), user=user, password=password, database=database,
        autocommit=autocommit, read_timeout=30,
    )


def parting_word(connection):
    found = b""
    while piece := connection._sock.recv(65536):
        found += piece
    length, number = int.from_bytes(found[:3], "little"), found[3]
    assert len(found) == 4 + length, found
    assert number == 0, "an unasked packet begins a sequence"
    assert found[4] == 0xFF, found
    return int.from_bytes(found[5:7], "little"), found[7:].decode()


idle, next_word, in_transaction = connect(True), connect(True), connect(False)
for connection in (idle, in_transaction):
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t")
os.kill(int(pid), signal.SIGTERM)
print(*parting_word(idle))
print(*parting_word(in_transaction))

# Whoever speaks first loses nothing but the connection.
try:
    with next_word.cursor() as cursor:
        cursor.execute("SELECT 1")
    print("answered")
except pymysql.MySQLError as error:
    print(type(error).__name__)
