"""Functions run in several processes."""

import multiprocessing
import pickle
import signal
import traceback

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with a status other than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, rank, args, errors):
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.send_bytes(pickle.dumps(traceback.format_exc()))
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, errors):
        self.processes, self._errors = processes, errors
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        """The numbers by which the system knows them."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until one of them ends; True once all have. Where one failed the others are ended, and its error raised."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        self._raise(failed)

    def _raise(self, i):
        process = self.processes[i]
        if self._errors[i].poll():
            text = pickle.loads(self._errors[i].recv_bytes())
            raise ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{text}", i, process.pid
            )
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)
        raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)


class SpawnContext(ProcessContext):
    """Processes that ``spawn`` started."""


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` processes, started as ``start_method`` says."""
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, send), daemon=daemon)
        process.start()
        send.close()
        processes.append(process)
        errors.append(receive)
    made = SpawnContext(processes, errors)
    if not join:
        return made
    while not made.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in ``nprocs`` fresh processes; what one raises is raised here."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
