"""``SummaryWriter``: writes what TensorBoard shows."""

import os
import socket
import struct
import threading
import time
import zlib

from . import _records

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """A file of events in a folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        os.makedirs(log_dir, exist_ok=True)
        self._dir = log_dir
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_count)}{filename_suffix}"
        self._file = open(os.path.join(log_dir, name), "ab")
        self._lock = threading.Lock()
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.time()
        self._write(_records.event(time.time(), version="brain.Event:2"))
        self._file.flush()

    def get_logdir(self):
        """The folder."""
        return self._dir

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write a summary."""
        self._write(_records.event(walltime or time.time(), global_step, summary))

    def _write(self, event):
        with self._lock:
            self._file.write(_records.record(event))
            self._waiting += 1
            if self._waiting >= self._max_queue or time.time() - self._flushed > self._flush_secs:
                self._file.flush()
                self._waiting, self._flushed = 0, time.time()

    def flush(self):
        """Put all on disk."""
        with self._lock:
            self._file.flush()

    def close(self):
        """Put all on disk and close the file."""
        with self._lock:
            self._file.close()


def _counter():
    n = 0
    while True:
        yield n
        n += 1


_count = _counter()


def _number(value):
    return float(value.item() if hasattr(value, "item") else value)


def _array(values):
    import numpy

    return values.detach().cpu().numpy() if hasattr(values, "detach") else numpy.asarray(values)


def _png(pixels):
    """An image of bytes ``[height, width, channels]`` as PNG."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class SummaryWriter:
    """Writes scalars, histograms, texts, images and settings for TensorBoard into ``log_dir`` ("runs/..." by default)."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer = FileWriter(self.log_dir, *self._options)
        self.all_writers = {self.log_dir: self.file_writer}

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number at a step."""
        self.file_writer.add_summary(_records.scalar(tag, _number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers in one plot: each has a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            place = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            if place not in self.all_writers:
                self.all_writers[place] = FileWriter(place, *self._options)
            self.all_writers[place].add_summary(_records.scalar(main_tag, _number(value)), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text at a step."""
        self.file_writer.add_summary(_records.text(tag, text_string), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How often values fall where, at a step."""
        import numpy

        values = _array(values).astype("float64").ravel()
        if values.size == 0:
            raise ValueError("The input has no element.")
        edges = 64 if bins == "tensorflow" else bins
        counts, limits = numpy.histogram(values, bins=edges)
        summary = _records.histogram(
            tag,
            values.min(),
            values.max(),
            values.size,
            values.sum(),
            (values**2).sum(),
            limits[1:].tolist(),
            counts.tolist(),
        )
        self.file_writer.add_summary(summary, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """An image at a step: floats from 0 to 1 or bytes, its dimensions as ``dataformats`` says."""
        import numpy

        pixels = _array(img_tensor)
        order = dataformats.upper()
        if order == "HW":
            pixels, order = pixels[..., None], "HWC"
        pixels = pixels.transpose([order.index(d) for d in "HWC"])
        if pixels.dtype != numpy.uint8:
            pixels = (pixels * 255.0).clip(0, 255).astype("uint8")
        pixels = numpy.ascontiguousarray(pixels)
        self.file_writer.add_summary(_records.image(tag, *pixels.shape, _png(pixels)), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Images side by side."""
        import numpy

        stack = _array(img_tensor).transpose([dataformats.upper().index(d) for d in "NHWC"])
        self.add_image(tag, numpy.concatenate(list(stack), axis=1), global_step, walltime, "HWC")

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib at a step."""
        import numpy

        figure.canvas.draw()
        pixels = numpy.asarray(figure.canvas.buffer_rgba())
        self.add_image(tag, pixels, global_step, walltime, "HWC")
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Settings with what came of them: as a text and as scalars."""
        rows = "\n".join(f"|{k}|{v}|" for k, v in hparam_dict.items())
        self.add_text("hparams", "|setting|value|\n|-|-|\n" + rows, global_step)
        for tag, value in metric_dict.items():
            self.add_scalar(tag, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """A module's graph: refused."""
        raise NotImplementedError("SummaryWriter.add_graph: flambeau does not draw graphs")

    def add_embedding(self, *args, **kwargs):
        """Points to project: refused."""
        raise NotImplementedError("SummaryWriter.add_embedding: flambeau does not write projections")

    def flush(self):
        """Put all on disk."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self):
        """Put all on disk and close the files."""
        for writer in self.all_writers.values():
            writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
