"""Results that may come later."""

from threading import Condition

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A result that somebody sets, for somebody who waits.

    >>> f = Future()
    >>> later = f.then(lambda f: f.value() + 1)
    >>> f.set_result(1); later.wait()
    2
    """

    def __init__(self, *, devices=None):
        self._ready = Condition()
        self._done = False
        self._value = self._error = None
        self._callbacks = []

    def done(self):
        """Whether there is a result or an exception."""
        return self._done

    def wait(self):
        """The result, once it is there; or its exception, raised."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self.value()

    def value(self):
        """The result, which is there; or its exception, raised."""
        if not self._done:
            raise RuntimeError("Future: value() was called before it was set")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result):
        """Set the result; once."""
        self._finish(result, None)

    def set_exception(self, result):
        """Set an exception that ``wait`` will raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value, error):
        with self._ready:
            if self._done:
                raise RuntimeError("Future can only be set once")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in callbacks:
            callback()

    def add_done_callback(self, callback):
        """Call ``callback`` with this future when it is done, or now."""
        with self._ready:
            if not self._done:
                self._callbacks.append(lambda: callback(self))
                return
        callback(self)

    def then(self, callback):
        """A future of what ``callback`` gives on this one, when it is done."""
        after = Future()

        def run(future):
            try:
                after.set_result(callback(future))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after


def collect_all(futures):
    """A future of the list of ``futures``, done when they all are."""
    gathered = Future()
    left = len(futures)
    if not left:
        gathered.set_result([])

    def one(_):
        nonlocal left
        left -= 1
        if left == 0:
            gathered.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one)
    return gathered


def wait_all(futures):
    """The results of all ``futures``."""
    return [future.wait() for future in futures]
