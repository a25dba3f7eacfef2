"""TorchScript's types as objects: ``ListType(IntType.get())``. Annotations are read into them; nothing is compiled."""

__all__ = [
    "AnyType", "AwaitType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType",
    "FutureType", "InterfaceType", "IntType", "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType",
    "RRefType", "StreamObjType", "StringType", "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
    "unify_type_list",
]  # fmt: skip


class Type:
    """A type: equal to another of the same words."""

    def __init__(self, *_):
        raise TypeError(f"{type(self).__name__}: No constructor defined! Use {type(self).__name__}.get()")

    def kind(self):
        """The name of the class."""
        return type(self).__name__

    def str(self):
        """The type in words."""
        return repr(self)

    def containedTypes(self):
        """The types that it is made of."""
        return []

    def is_interface_type(self):
        """Whether it is an interface: there are none."""
        return False

    def isSubtypeOf(self, other):
        """Whether every value of this type is one of the other."""
        if isinstance(other, OptionalType) and (isinstance(self, NoneType) or self.isSubtypeOf(other._parts[0])):
            return True
        if isinstance(other, UnionType) and not isinstance(self, UnionType):
            return any(self.isSubtypeOf(t) for t in other._parts)
        numbers = isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))
        return isinstance(other, AnyType) or numbers or self == other

    @property
    def annotation_str(self):
        """The type as an annotation."""
        return repr(self)

    def __eq__(self, other):
        return isinstance(other, Type) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))


def _plain(name, words):
    """A type without parts: one object, which ``get`` gives."""

    def get():
        return only

    made = type(name, (Type,), {"get": staticmethod(get), "__repr__": lambda self: words, "__doc__": f"The type ``{words}``."})
    only = object.__new__(made)
    return made


AnyType, BoolType, ComplexType = _plain("AnyType", "Any"), _plain("BoolType", "bool"), _plain("ComplexType", "complex")
DeviceObjType, FloatType = _plain("DeviceObjType", "Device"), _plain("FloatType", "float")
IntType, NoneType, NumberType = _plain("IntType", "int"), _plain("NoneType", "NoneType"), _plain("NumberType", "number")
PyObjectType, StreamObjType = _plain("PyObjectType", "PyObject"), _plain("StreamObjType", "Stream")
StringType, SymBoolType = _plain("StringType", "str"), _plain("SymBoolType", "SymBool")
SymIntType, TensorType = _plain("SymIntType", "SymInt"), _plain("TensorType", "Tensor")


class _Made(Type):
    def __init__(self, *parts):
        for part in parts:
            if not isinstance(part, Type):
                raise TypeError(f"{type(self).__name__}: expected a type such as IntType.get(), got {part!r}")
        self._parts = list(parts)

    def containedTypes(self):
        """The types that it is made of."""
        return list(self._parts)

    def __repr__(self):
        return f"{type(self).__name__[:-4]}[{', '.join(map(repr, self._parts))}]"


class _OfOne(_Made):
    def __init__(self, a):
        super().__init__(a)

    def getElementType(self):
        """The type inside."""
        return self._parts[0]


class ListType(_OfOne):
    """A list of one type."""

    @staticmethod
    def ofInts():
        """A list of integers."""
        return ListType(IntType.get())

    @staticmethod
    def ofFloats():
        """A list of floats."""
        return ListType(FloatType.get())

    @staticmethod
    def ofBools():
        """A list of truth values."""
        return ListType(BoolType.get())

    @staticmethod
    def ofTensors():
        """A list of tensors."""
        return ListType(TensorType.get())


class OptionalType(_OfOne):
    """A type or None."""

    @staticmethod
    def ofTensor():
        """A tensor or None."""
        return OptionalType(TensorType.get())


class FutureType(_OfOne):
    """What will be of a type."""


class AwaitType(_OfOne):
    """What can be asked for a value of a type."""


class RRefType(_OfOne):
    """A reference to what lies in another process."""


class DictType(_Made):
    """A dictionary, of a type of keys and a type of values."""

    def __init__(self, key, value):
        super().__init__(key, value)

    def getKeyType(self):
        """The type of the keys."""
        return self._parts[0]

    def getValueType(self):
        """The type of the values."""
        return self._parts[1]


class TupleType(_Made):
    """A tuple of types."""

    def __init__(self, a):
        super().__init__(*a)

    def elements(self):
        """The types of its parts."""
        return list(self._parts)


class UnionType(_Made):
    """One of several types."""

    def __init__(self, a):
        super().__init__(*sorted(a, key=repr))


class ClassType(Type):
    """A compiled class: there are none."""


class EnumType(Type):
    """A compiled enumeration: there are none."""


class InterfaceType(Type):
    """A compiled interface: there are none."""


def unify_type_list(types):
    """The one type that all of ``types`` are; a RuntimeError where they differ."""
    for i, t in enumerate(types):
        if t != types[0]:
            raise RuntimeError(
                f"Could not unify type list since element {i} of type {t!r} did not match the types before it ({types[0]!r})"
            )
    return types[0]
