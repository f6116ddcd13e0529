"""Prints a transcript of prepared statements: NULLs at byte borders of the bitmap, extreme typed parameters."""

import sys

from raw import LONG, LONGLONG, NULL, TINY, UNSIGNED, VAR_STRING, connect, execute, prepare

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
