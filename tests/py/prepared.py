"""Prints a transcript of prepared statements: NULLs at byte borders of the bitmap, extreme typed parameters."""

import sys

from raw import (
    BLOB,
    LONG,
    LONGLONG,
    NULL,
    TINY,
    UNSIGNED,
    VAR_STRING,
    connect,
    execute,
    execute_long,
    packet,
    prepare,
    results,
    rows_by_cursor,
    send_long_data,
)

connection = connect(*sys.argv[1:])


def run(sql, *executions):
    print("--", sql)
    statement = prepare(connection, sql)
    for bound in executions:
        if statement:
            execute(connection, statement, bound)
    if statement:
        connection._execute_command(0x19, statement[0].to_bytes(4, "little"))


wide = ", ".join(f"c{n}" for n in range(17))
run(f"SELECT {wide} FROM wide WHERE id = ?", [(LONGLONG, 2)], [(LONGLONG, 3)], [(TINY | UNSIGNED, 3)])
run(f"SELECT {wide} FROM wide WHERE id = 2", [])

extremes = [(TINY | UNSIGNED, 255), (LONG, -1), (LONGLONG | UNSIGNED, 2**64 - 1)]
run("SELECT id, ? AS a, ? AS b, ? AS c FROM wide WHERE id = 2", extremes, [(NULL, None)] * 3)
run("INSERT INTO bound VALUES (?, ?, ?, ?)", [(TINY | UNSIGNED, 254), *extremes], [(TINY | UNSIGNED, 255), *extremes])
run("SELECT * FROM bound WHERE id = ?", [(TINY | UNSIGNED, 255)], [(LONG, 254)], [(VAR_STRING, b"255")], [(TINY, -1)])
run("SELECT * FROM bound WHERE id IN (?, ?)", [(LONG, 254), (TINY | UNSIGNED, 254)])
run("SELECT COUNT(*) FROM bound WHERE c = ?", [(LONGLONG | UNSIGNED, 2**64 - 1)])
run("DELETE FROM bound WHERE id = ?", [(TINY | UNSIGNED, 255)], [(TINY | UNSIGNED, 255)])
run("SELECT nothing FROM bound")
run("SELECT id FROM bound ORDER BY id LIMIT ?, ?", [(LONGLONG, 0), (LONGLONG, 1)], [(LONGLONG, 1), (LONGLONG, 1)])

print("-- long data, in pieces, then reset, then anew")
long = prepare(connection, "SELECT id, LENGTH(?) AS n, MD5(?) AS m FROM wide WHERE id = 2")
for index in [0, 1]:
    for piece in [b"a" * 70_000, b"", b"b" * 5]:
        send_long_data(connection, long, index, piece)
execute_long(connection, long, [BLOB, BLOB])
send_long_data(connection, long, 0, b"forgotten")
connection._execute_command(0x1A, long[0].to_bytes(4, "little"))
results(connection)
send_long_data(connection, long, 0, b"xyz")
send_long_data(connection, long, 1, b"xyz")
execute_long(connection, long, [BLOB, BLOB])

print("-- a statement that is not there")
connection._execute_command(0x17, (999_999).to_bytes(4, "little") + b"\0\1\0\0\0")
print(packet(connection).args[0])

print("-- rows by a cursor")
cursor = prepare(connection, "SELECT id, c0, c11 FROM wide WHERE id = 2")
for row in rows_by_cursor(connection, cursor, 1):
    print("row:", row.hex())
print("-- the connection afterwards")
connection.query("SELECT 5")
