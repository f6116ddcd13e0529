"""Reads ten rows of a large unbuffered result, then resets the connection."""

import socket
import struct
import sys

import pymysql
import pymysql.cursors

host, port, user, password, database, sql = sys.argv[1:]
connection = pymysql.connect(
    host=host,
    port=int(port),
    user=user,
    password=password,
    database=database,
    cursorclass=pymysql.cursors.SSCursor,
)
cursor = connection.cursor()
cursor.execute(sql)
for _ in range(10):
    assert cursor.fetchone() is not None
connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
connection._force_close()
