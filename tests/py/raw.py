"""The protocol below PyMySQL's cursors: prepared statements and commands as packets, printed as a transcript.

A transcript leaves out what may rightly differ between two servers: statement ids and schema names.
"""

import struct

import pymysql

TINY, LONG, LONGLONG, BLOB, VAR_STRING, NULL = 1, 3, 8, 252, 253, 6
UNSIGNED = 0x8000


def connect(host, port, user, password, database, **options):
    return pymysql.connect(
        host=host, port=int(port), user=user, password=password, database=database, charset="utf8mb4", **options
    )


def packet(connection):
    """The next packet's payload, or an error as the client sees it."""
    try:
        return connection._read_packet().get_all_data()
    except pymysql.err.Error as error:
        return error


def lenenc(data, at):
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def column(data):
    """A column definition without its schema: (table, org_table, name, org_name, charset, length, type, flags, decimals)."""
    parts, at = [], 0
    for _ in range(6):
        size, at = lenenc(data, at)
        parts.append(data[at : at + size].decode())
        at += size
    assert data[at] == 0x0C, data
    return (*parts[2:], *struct.unpack_from("<HIBHB", data, at + 1))


def is_eof(data):
    return len(data) < 9 and data[:1] == b"\xfe"


def eof(data):
    """Warnings, and the one status flag that a test may count on: more results follow."""
    assert is_eof(data), data
    warnings, status = struct.unpack("<HH", data[1:5])
    return warnings, bool(status & 8)


def columns(connection, count):
    found = [column(packet(connection)) for _ in range(count)]
    if count:
        eof(packet(connection))
    return found


def prepare(connection, sql):
    """Gives the statement's id, its parameters and columns; or prints the error."""
    connection._execute_command(0x16, sql)
    head = packet(connection)
    if isinstance(head, Exception):
        print("prepare:", head.args)
        return None
    ident, n_columns, n_params, _, warnings = struct.unpack("<IHHBH", head[1:12])
    params = columns(connection, n_params)
    cols = columns(connection, n_columns)
    print("prepared:", len(params), "parameters;", cols, "warnings", warnings)
    return ident, n_params


def value(kind, bound):
    if kind & 0xFF == VAR_STRING:
        assert len(bound) < 0xFB
        return bytes([len(bound)]) + bound
    return bound.to_bytes({TINY: 1, LONG: 4, LONGLONG: 8}[kind & 0xFF], "little", signed=not kind & UNSIGNED)


def execute(connection, statement, bound):
    """Executes with typed parameters, `(kind, value)` each, and prints everything that comes back."""
    ident, n_params = statement
    body = struct.pack("<IBI", ident, 0, 1)
    if n_params:
        nulls = bytearray((n_params + 7) // 8)
        for n, (_, v) in enumerate(bound):
            if v is None:
                nulls[n // 8] |= 1 << (n % 8)
        body += bytes(nulls) + b"\x01"
        body += b"".join(struct.pack("<H", kind) for kind, _ in bound)
        body += b"".join(value(kind, v) for kind, v in bound if v is not None)
    connection._execute_command(0x17, body)
    results(connection)


def results(connection):
    """Prints all the results of a command."""
    more = True
    while more:
        head = packet(connection)
        if isinstance(head, Exception):
            print("error:", head.args)
            return
        if head[0] == 0:
            affected, at = lenenc(head, 1)
            insert_id, at = lenenc(head, at)
            status, warnings = struct.unpack_from("<HH", head, at)
            print("ok:", affected, insert_id, "warnings", warnings)
            more = bool(status & 8)
            continue
        for found in columns(connection, lenenc(head, 0)[0]):
            print("column:", found)
        while True:
            row = packet(connection)
            if isinstance(row, Exception):
                print("error:", row.args)
                return
            if is_eof(row):
                warnings, more = eof(row)
                print("end: warnings", warnings)
                break
            print("row:", row.hex())


def send_long_data(connection, statement, index, data):
    """One piece of a parameter; a server answers nothing."""
    connection._execute_command(0x18, struct.pack("<IH", statement[0], index) + data)


def execute_long(connection, statement, kinds):
    """Executes with every parameter sent before as long data."""
    body = struct.pack("<IBI", statement[0], 0, 1) + bytes((len(kinds) + 7) // 8) + b"\x01"
    connection._execute_command(0x17, body + b"".join(struct.pack("<H", kind) for kind in kinds))
    results(connection)


def rows_by_cursor(connection, statement, piece):
    """All rows of a statement without parameters, by a read-only cursor or, as a server may, all at once."""
    connection._execute_command(0x17, struct.pack("<IBI", statement[0], 1, 1))
    head = packet(connection)
    if isinstance(head, Exception):
        raise head
    for _ in range(lenenc(head, 0)[0]):
        packet(connection)
    status = struct.unpack("<H", packet(connection)[3:5])[0]
    rows = []
    while True:
        if status & 0x40:
            connection._execute_command(0x1C, struct.pack("<II", statement[0], piece))
        while not is_eof(row := packet(connection)):
            rows.append(row)
        status = struct.unpack("<H", row[3:5])[0]
        if not status & 0x40 or status & 0x80:
            return rows
