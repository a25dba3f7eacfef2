"""Whether operations are recorded for differentiation: switches for a block or a function, each for one thread."""

from . import _C

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"]


def _wrap(make, function):
    """``function`` called within ``make()``; a generator function runs within it at every step."""
    from functools import wraps
    from inspect import isclass, isgeneratorfunction

    if isclass(function):
        from warnings import warn

        warn("decorating a class with a grad mode decorates only its constructor: decorate methods", stacklevel=3)
        return _wrap(make, lambda *args, **kwargs: function(*args, **kwargs))
    if isgeneratorfunction(function):

        @wraps(function)
        def steps(*args, **kwargs):
            generator = function(*args, **kwargs)
            advance, given = generator.send, None
            while True:
                try:
                    with make():
                        out = advance(given)
                except StopIteration as stop:
                    return stop.value
                try:
                    given = yield out
                    advance = generator.send
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    advance, given = generator.throw, error

        return steps

    @wraps(function)
    def inside(*args, **kwargs):
        with make():
            return function(*args, **kwargs)

    return inside


class _Switch:
    """A context manager that sets grad mode and puts it back; also a decorator, with or without parentheses."""

    __slots__ = ("prev",)
    _mode = False

    def __new__(cls, function=None):
        made = super().__new__(cls)
        return made if function is None else made(function)

    def __enter__(self):
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(self._mode)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.prev)

    def __call__(self, function):
        return _wrap(type(self), function)

    def clone(self):
        """Another of the same kind."""
        return type(self)()


class no_grad(_Switch):
    """Nothing inside is recorded: results do not require grad."""

    __slots__ = ()


class enable_grad(_Switch):
    """Recording inside, also within ``no_grad``."""

    __slots__ = ()
    _mode = True


class set_grad_enabled:
    """Recording on or off, from the call on; as a context manager until the block ends."""

    __slots__ = ("prev", "mode")

    def __init__(self, mode):
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, function):
        _C._set_grad_enabled(self.prev)
        mode = self.mode
        return _wrap(lambda: set_grad_enabled(mode), function)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.prev)

    def clone(self):
        """Another of the same mode."""
        return type(self)(self.mode)

    def __repr__(self):
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode:
    """As ``no_grad``, and what is made inside can never take part in recording later."""

    __slots__ = ("mode", "prev")

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self.prev = (_C.is_inference_mode_enabled(), _C.is_grad_enabled())
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, *_):
        inference, grad = self.prev
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(grad)

    def __call__(self, function):
        mode = self.mode
        return _wrap(lambda: inference_mode(mode), function)

    def clone(self):
        """Another of the same mode."""
        return type(self)(self.mode)
