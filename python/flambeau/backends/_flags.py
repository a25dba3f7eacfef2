"""What switches have in common: a block that sets some of them and puts them back."""

from contextlib import contextmanager


class Settings:
    """Attributes that may be set and read, and have no effect."""

    def __init__(self, **settings):
        self.__dict__.update(settings)


def block(module, *names):
    """The function ``flags`` of a module of switches: a block in which those that are given have another value."""

    @contextmanager
    def flags(*args, **kwargs):
        given = dict(zip(names, args)) | kwargs
        unknown = [name for name in given if name not in names]
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{unknown[0]}'")
        before = {name: module[name] for name in given}
        module.update(given)
        try:
            yield
        finally:
            module.update(before)

    return flags


def setter(module, *names):
    """The function ``set_flags`` of a module of switches: sets those that are given, and gives what all were."""

    def set_flags(*args, **kwargs):
        before = tuple(module[name] for name in names)
        given = dict(zip(("_" + name for name in names), args)) | kwargs
        module.update({name.removeprefix("_"): value for name, value in given.items() if value is not None})
        return before

    return set_flags
