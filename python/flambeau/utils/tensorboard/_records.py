"""TensorBoard's file format: protocol buffers in framed records with checksums.

The records are those of TensorFlow (length, masked CRC-32C of the length, data, masked CRC-32C of the data); the messages
are ``Event`` and ``Summary`` of its ``.proto`` files, of which the field numbers below are taken.
"""

import struct


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data):
    """Castagnoli's checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    """Data as a record of a file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def varint(n):
    """An integer in groups of 7 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(field, value):
    """A field with an integer."""
    return varint(field << 3) + varint(int(value))


def double(field, value):
    """A field with a double."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value):
    """A field with a float."""
    return varint(field << 3 | 5) + struct.pack("<f", value)


def data(field, value):
    """A field with bytes, a string or a message."""
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def doubles(field, values):
    """A field with many doubles."""
    return data(field, b"".join(struct.pack("<d", v) for v in values))


def event(wall_time, step=None, summary=None, version=None):
    """A message ``Event``."""
    out = double(1, wall_time)
    if step is not None:
        out += integer(2, step)
    if version is not None:
        out += data(3, version)
    if summary is not None:
        out += data(5, summary)
    return out


def scalar(tag, value):
    """A summary of one number."""
    return data(1, data(1, tag) + single(2, value))


def text(tag, value):
    """A summary of a text: a tensor of one string, shown by the plugin "text"."""
    tensor = integer(1, 7) + data(2, data(2, integer(1, 1))) + data(8, value)
    metadata = data(1, data(1, "text"))
    return data(1, data(1, tag + "/text_summary") + data(9, metadata) + data(8, tensor))


def histogram(tag, low, high, count, total, squares, limits, buckets):
    """A summary of how often values fall between limits."""
    message = double(1, low) + double(2, high) + double(3, count) + double(4, total) + double(5, squares)
    return data(1, data(1, tag) + data(5, message + doubles(6, limits) + doubles(7, buckets)))


def image(tag, height, width, channels, png):
    """A summary of an image that is encoded already."""
    message = integer(1, height) + integer(2, width) + integer(3, channels) + data(4, png)
    return data(1, data(1, tag) + data(4, message))
