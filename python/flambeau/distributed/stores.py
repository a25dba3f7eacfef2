"""Key-value stores by which the processes of a group would find each other."""

from datetime import timedelta

__all__ = ["Store", "HashStore", "FileStore", "TCPStore", "PrefixStore", "default_pg_timeout"]

default_pg_timeout = timedelta(minutes=30)


class Store:
    """Keys with bytes, in this process."""

    def __init__(self):
        self._items = {}
        self.timeout = default_pg_timeout

    def set(self, key, value):
        """Put ``value`` under ``key``."""
        self._items[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        """The bytes under ``key``; nobody else could set it, so a missing one is an error at once."""
        if key not in self._items:
            raise RuntimeError(f"Store: wait timeout: no process of the group sets the key '{key}'")
        return self._items[key]

    def add(self, key, amount):
        """Add to a counter; its value now."""
        value = int(self._items.get(key, b"0")) + amount
        self._items[key] = str(value).encode()
        return value

    def compare_set(self, key, expected_value, desired_value):
        """Put a value where the present one, or none, is as expected; what is there now."""
        present = self._items.get(key)
        if present == expected_value.encode() or (present is None and expected_value == ""):
            self.set(key, desired_value)
        return self._items.get(key, expected_value.encode())

    def append(self, key, value):
        """Add to the end of the bytes under ``key``."""
        self._items[key] = self._items.get(key, b"") + (value.encode() if isinstance(value, str) else bytes(value))

    def check(self, keys):
        """Whether all of ``keys`` are there."""
        return all(key in self._items for key in keys)

    def wait(self, keys, timeout=None):
        """Return where all of ``keys`` are there; an error where not."""
        for key in keys:
            self.get(key)

    def delete_key(self, key):
        """Remove a key; whether it was there."""
        return self._items.pop(key, None) is not None

    def num_keys(self):
        """How many keys there are."""
        return len(self._items)

    def set_timeout(self, timeout):
        """How long ``wait`` would wait."""
        self.timeout = timeout


class HashStore(Store):
    """A store in memory."""


class FileStore(Store):
    """A store for processes that share a file; here for one process, which needs no file."""

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        _one_process("FileStore", world_size)
        self.path = file_name


class TCPStore(Store):
    """A store that a server keeps; here for one process, which needs no server."""

    def __init__(self, host_name, port=0, world_size=None, is_master=False, timeout=None, wait_for_workers=True, **_):
        super().__init__()
        _one_process("TCPStore", -1 if world_size is None else world_size)
        if not is_master:
            raise RuntimeError(
                "TCPStore: flambeau does not connect to other processes yet: only the master's store works"
            )
        self.host, self.port = host_name, port


class PrefixStore(Store):
    """Another store, with a prefix before each key."""

    def __init__(self, prefix, store):
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._items = _Prefixed(prefix, store._items)


class _Prefixed(dict):
    """The items of a store whose keys begin with a prefix."""

    def __init__(self, prefix, items):
        super().__init__()
        self.prefix, self.items_below = prefix, items

    def _key(self, key):
        return f"{self.prefix}/{key}"

    def __getitem__(self, key):
        return self.items_below[self._key(key)]

    def __setitem__(self, key, value):
        self.items_below[self._key(key)] = value

    def __contains__(self, key):
        return self._key(key) in self.items_below

    def __len__(self):
        return sum(key.startswith(self.prefix + "/") for key in self.items_below)

    def get(self, key, default=None):
        return self.items_below.get(self._key(key), default)

    def pop(self, key, *default):
        return self.items_below.pop(self._key(key), *default)


def _one_process(name, world_size):
    if world_size is not None and world_size > 1:
        raise NotImplementedError(
            f"{name}: flambeau does not run groups of several processes yet, got world_size={world_size}; use one process"
        )
