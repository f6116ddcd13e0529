"""Reads ten rows of a large unbuffered result, then resets the connection; as often as told."""

import socket
import struct
import sys

import pymysql
import pymysql.cursors

host, port, user, password, database, sql, times = sys.argv[1:]
for _ in range(int(times)):
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
