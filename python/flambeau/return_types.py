"""Results that have names: tuples whose items are also attributes, such as ``x.max(0).values``."""

_classes = {}


class _Named(tuple):
    """Base of the result types. Made of a sequence with as many items as there are fields."""

    __slots__ = ()
    _fields = ()

    def __new__(cls, items):
        made = super().__new__(cls, items)
        if len(made) != len(cls._fields):
            raise TypeError(f"torch.return_types.{cls.__name__} takes a {len(cls._fields)}-sequence, got {len(made)}")
        return made

    def __repr__(self):
        fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{fields})"

    def __reduce__(self):
        return _rebuild, (type(self).__name__, self._fields, tuple(self))


def _rebuild(name, fields, items):
    """A result as pickle left it."""
    return _make(name, fields)(items)


def _make(name, fields):
    """The result type of an operation; the native module asks for it when it is first needed."""
    found = _classes.get(name)
    if found is None:
        places = {field: property(lambda self, place=place: self[place]) for place, field in enumerate(fields)}
        namespace = {"__slots__": (), "__module__": __name__, "_fields": tuple(fields), **places}
        found = _classes[name] = type(name, (_Named,), namespace)
    return found


def __getattr__(name):
    if name in _classes:
        return _classes[name]
    raise AttributeError(f"flambeau has no 'return_types.{name}' yet")
