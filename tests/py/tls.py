"""Connects over TLS without checking the certificate and prints how, with a count."""

import ssl
import sys

import pymysql

host, port, user, password, database = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
connection = pymysql.connect(
    host=host, port=int(port), user=user, password=password, database=database, ssl=context
)
assert connection._sock.version().startswith("TLS"), connection._sock.version()
with connection.cursor() as cursor:
    cursor.execute("SELECT COUNT(*) FROM t")
    print("TLS", cursor.fetchone()[0])
