"""Trains a small character-level GPT on English text and shows what it has learned.

    python -m flambeau examples/train_gpt.py        # on flambeau
    python examples/train_gpt.py                    # the same program on PyTorch

It is an ordinary PyTorch program: about 0.8 million parameters, a few minutes on two cores. Into --out go
checkpoint.pt, losses.tsv, loss.png (where matplotlib is installed) and sample.txt. A second run goes on from the
checkpoint; Ctrl-C and SIGTERM write one first.

NOTE [ one curve ]: `crates/flambeau/examples/train_gpt.rs` is this program in Rust, and both give the losses of
PyTorch for the same seed. What has to agree is the order in which the default generator is asked:

 1. `manual_seed(seed)`, once.
 2. The model's constructors, which draw PyTorch's default weights: the embeddings `tokens` and `places`, then per
    block `qkv`, `mix`, `widen`, `narrow`, then `head`. A Linear draws its weight, then its bias; `head` has no bias;
    LayerNorm draws nothing.
 3. `initialise`, which draws the weights anew: every matrix in the order of `named_parameters()`, which is the order
    above, from N(0, 0.02), or N(0, 0.02 / sqrt(2 * layers)) for `mix` and `narrow`. Vectors are not drawn.
 4. In each step, one `randint(0, len(text) - block, (batch,))` for where the batch's windows start; then, with
    dropout, the model's dropouts in the order of its forward pass.

Validation reads fixed windows and sampling has a generator of its own, so neither disturbs this order.
"""

import argparse
import math
import os
import signal
import struct
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

# The exit status of a run that was asked to stop, as shells have it.
STOPPED = 128 + signal.SIGINT

TEXT = Path(__file__).resolve().parent.parent / "data" / "english.txt"


# The model


class Block(nn.Module):
    """Attention, then two layers on every position; both read a normalised copy and add to what flows through."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.before_layers = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        return self.mix(seen.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop(self.attend(self.before_attention(x)))
        return x + self.drop(self.narrow(F.gelu(self.widen(self.before_layers(x)))))


class GPT(nn.Module):
    """Scores for the next character at every position of `(batch, length)` character numbers."""

    def __init__(self, vocabulary: int, block: int, width: int, heads: int, layers: int, dropout: float):
        super().__init__()
        self.block = block
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(block, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.initialise(layers)

    def initialise(self, layers: int) -> None:
        """Small normal weights and zero biases; what is added to the residual stream starts smaller still."""
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                added = name.endswith(("mix.weight", "narrow.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * layers) if added else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        places = torch.arange(characters.shape[1], device=characters.device)
        x = self.drop(self.tokens(characters) + self.places(places))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, windows: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of each window's characters, all but the first, given those before."""
        scores = self(windows[:, :-1])
        return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), windows[:, 1:].reshape(-1))


# The text


class Text:
    """A text as numbers: its characters in code order, the first nine tenths to train on, the rest to validate."""

    def __init__(self, path: Path, block: int, device: torch.device):
        data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        codes, numbers = np.unique(data, return_inverse=True)
        if len(data) < 20 * (block + 1):
            raise ValueError(f"{path} has {len(data)} bytes, too few for windows of {block + 1}")
        if codes[-1] > 127:
            raise ValueError(f"{path} is not plain ASCII: it holds the byte {codes[-1]}")
        self.characters = bytes(codes).decode("ascii")
        numbers = torch.from_numpy(numbers.astype(np.int64)).to(device)
        cut = len(data) * 9 // 10
        self.train, self.held_out, self.block = numbers[:cut], numbers[cut:], block
        self.window = torch.arange(block + 1, device=device)

    def batch(self, size: int) -> torch.Tensor:
        """`(size, block + 1)` characters from random places of the training part."""
        starts = torch.randint(0, len(self.train) - self.block, (size,)).to(self.train.device)
        return self.train[starts[:, None] + self.window]

    def validation(self, batches: int, size: int) -> list[torch.Tensor]:
        """Windows evenly spread over the held-out part, the same ones every time."""
        last = len(self.held_out) - self.block - 1
        starts = torch.arange(batches * size, device=self.train.device) * last // max(batches * size - 1, 1)
        return [self.held_out[part[:, None] + self.window] for part in starts.split(size)]

    def encode(self, text: str) -> torch.Tensor:
        strange = sorted(set(text) - set(self.characters))
        if strange or not text:
            raise ValueError(f"a prompt is made of characters of the text; {text!r} has {strange or 'none'}")
        return torch.tensor([[self.characters.index(c) for c in text]], device=self.train.device)

    def decode(self, numbers: list[int]) -> str:
        return "".join(self.characters[n] for n in numbers)


# Training


def rate(step: int, steps: int) -> float:
    """Share of the full learning rate: a linear rise over 100 steps, then half a cosine down to a tenth."""
    if step < 100:
        return (step + 1) / 100
    done = min(1.0, (step - 100) / max(1, steps - 100))
    return 0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * done))


@dataclass
class Record:
    """What has happened so far: the loss of every step, and (steps done, loss) of every validation."""

    losses: list[float] = field(default_factory=list)
    validation: list[list[float]] = field(default_factory=list)

    @property
    def step(self) -> int:
        return len(self.losses)


class Trainer:
    """The model and all that changes with it, as one thing that can be stepped, saved and restored."""

    def __init__(self, options: argparse.Namespace, text: Text, device: torch.device):
        self.options, self.text, self.record = options, text, Record()
        self.settings = dict(
            vocabulary=len(text.characters),
            block=options.block,
            width=options.width,
            heads=options.heads,
            layers=options.layers,
            dropout=options.dropout,
        )
        torch.manual_seed(options.seed)
        self.model = GPT(**self.settings).to(device)
        # Weight decay pulls on matrices only: a bias or a norm's scale has no direction to overfit with.
        parameters = list(self.model.parameters())
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.99))
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: rate(step, options.schedule))
        self.held_out = text.validation(batches=10, size=32)

    def train_step(self) -> float:
        self.model.train()
        loss = self.model.loss(self.text.batch(self.options.batch))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.record.losses.append(loss.item())
        return self.record.losses[-1]

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        losses = [self.model.loss(windows).item() for windows in self.held_out]
        self.record.validation.append([self.record.step, sum(losses) / len(losses)])
        return self.record.validation[-1][1]

    @torch.no_grad()
    def sample(self, prompt: str, length: int, temperature: float = 0.8) -> str:
        """Text as the model goes on from `prompt`, one drawn character after the other."""
        self.model.eval()
        generator = torch.Generator().manual_seed(self.options.seed)
        numbers = self.text.encode(prompt)
        for _ in range(length):
            scores = self.model(numbers[:, -self.text.block :])[:, -1]
            chances = torch.softmax(scores / temperature, dim=-1).cpu()
            drawn = torch.multinomial(chances, 1, generator=generator)
            numbers = torch.cat([numbers, drawn.to(numbers.device)], dim=1)
        return self.text.decode(numbers[0].tolist())

    def save(self, path: Path) -> None:
        """All that a later run needs to go on as if there had been no break. The generator's state is also the
        position in the data, since it alone decides the next batch."""
        state = {
            "settings": self.settings,
            "batch": self.options.batch,
            "seed": self.options.seed,
            "schedule": self.options.schedule,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "generator": torch.get_rng_state(),
            "record": asdict(self.record),
        }
        write_whole(path, lambda part: torch.save(state, part))

    def restore(self, path: Path) -> None:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            saved = dict(state["settings"], batch=state["batch"], seed=state["seed"])
        except Exception as error:
            raise SystemExit(f"{path} is not a checkpoint that can be read ({error}); --fresh starts anew") from error
        wanted = dict(self.settings, batch=self.options.batch, seed=self.options.seed)
        differ = [f"{name} {saved[name]}, now {wanted[name]}" for name in wanted if saved[name] != wanted[name]]
        if differ:
            raise SystemExit(f"{path} was made with other settings ({'; '.join(differ)}); --fresh starts anew")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["generator"])
        self.record = Record(**state["record"])
        before, now = state.get("schedule"), self.options.schedule
        if before not in (None, now) and self.record.step < self.options.steps:
            print(f"the learning rate now falls over {now} steps, not {before}, from here on; --schedule {before} keeps it")


def write_whole(path: Path, write) -> None:
    """Lets `write` fill a file beside `path`, then puts it in its place, so that `path` is never half written."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


# What a person sees


class Progress:
    """A bar with loss, tokens per second and time left on a terminal; a line now and then elsewhere."""

    def __init__(self, done: int, total: int, tokens_a_step: int):
        self.first, self.done, self.total, self.tokens = done, done, total, tokens_a_step
        self.busy, self.shown, self.held_out = 0.0, time.monotonic(), ""
        self.bar = None
        # A terminal that does not know its size (0 columns) has no room for a bar.
        if tqdm is not None and sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).columns > 0:
            self.bar = tqdm(total=total, initial=done, unit="step", dynamic_ncols=True, smoothing=0.05)

    def step(self, loss: float, seconds: float) -> None:
        self.done += 1
        self.busy += seconds
        speed = (self.done - self.first) * self.tokens / self.busy
        state = f"loss {loss:.3f}{self.held_out}, {speed:,.0f} tokens/s"
        now = time.monotonic()
        if self.bar is not None:
            self.bar.set_postfix_str(state, refresh=False)
            self.bar.update()
        elif now - self.shown >= 5.0 or self.done in (self.first + 1, self.total):
            self.shown = now
            left = (self.total - self.done) * self.busy / (self.done - self.first)
            time_left = f"{int(left) // 60}:{int(left) % 60:02d} left"
            print(f"step {self.done}/{self.total}: {state}, {time_left}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def write_losses(record: Record, path: Path) -> None:
    """Each step's loss in full: step, shortest decimal that reads back the same, bits of the float32 in hexadecimal."""
    lines = (f"{i}\t{loss!r}\t{struct.pack('>f', loss).hex()}\n" for i, loss in enumerate(record.losses, 1))
    write_whole(path, lambda file: file.writelines(line.encode() for line in lines))


def plot(record: Record, path: Path) -> bool:
    """The loss curve as a picture; False where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    steps = np.arange(1, record.step + 1)
    losses = np.array(record.losses)
    width = max(1, min(50, record.step // 10))
    axes.plot(steps, losses, color="#c9ced6", linewidth=0.7, label="training, every step")
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    axes.plot(steps[width - 1 :], smooth, color="#2b5c8a", label=f"training, mean of {width} steps")
    if record.validation:
        axes.plot(*zip(*record.validation), "o-", color="#c4502f", markersize=4, label="held-out text")
    axes.set(xlabel="step", ylabel="cross-entropy per character (nats)", title="A small GPT learns English letters")
    axes.grid(alpha=0.3)
    axes.legend()
    write_whole(path, lambda file: FigureCanvasAgg(figure).print_png(file))
    return True


def positive(word: str) -> int:
    """A whole number from the command line, 1 or more."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number above 0")
    return int(word)


class Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help with defaults, where there are any that the text does not tell."""

    def _get_help_string(self, action: argparse.Action) -> str:
        told = action.default in (None, False) or "(default:" in action.help
        return action.help if told else super()._get_help_string(action)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Trains a small character-level GPT; see the head of the file.",
        formatter_class=Formatter,
    )
    parser.add_argument("--text", type=Path, default=TEXT, help="plain ASCII text to learn from")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for what is made")
    parser.add_argument("--losses", type=Path, help="file for every step's loss (default: losses.tsv in --out)")
    parser.add_argument("--steps", type=positive, default=3000, help="steps in all, those before a resume included")
    parser.add_argument("--schedule", type=positive, help="steps of the learning rate's schedule (default: --steps)")
    parser.add_argument("--batch", type=positive, default=16, help="windows in a step")
    parser.add_argument("--block", type=positive, default=64, help="characters that the model looks back on")
    parser.add_argument("--width", type=positive, default=128, help="numbers that describe a character")
    parser.add_argument("--heads", type=positive, default=4, help="attention heads")
    parser.add_argument("--layers", type=positive, default=4, help="blocks")
    parser.add_argument("--dropout", type=float, default=0.0, help="share of activations dropped in training")
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=1337, help="seed of all draws")
    parser.add_argument("--threads", type=positive, help="threads to compute with (default: all cores)")
    parser.add_argument("--device", default="cpu", help="device to train on")
    parser.add_argument("--every", type=positive, default=250, help="steps between validations and checkpoints")
    parser.add_argument("--prompt", default="And God said", help="what the sample begins with")
    parser.add_argument("--fresh", action="store_true", help="start anew even if there is a checkpoint")
    parser.add_argument("--resume", action="store_true", help="fail if there is no checkpoint to go on from")
    options = parser.parse_args(arguments)
    if options.width % options.heads:
        parser.error(f"a width of {options.width} cannot be shared evenly by {options.heads} heads")
    if not 0.0 <= options.dropout < 1.0:
        parser.error(f"--dropout is a share, at least 0 and under 1, not {options.dropout}")
    options.schedule = options.schedule or options.steps
    return options


def train(trainer: Trainer, steps: int, every: int, checkpoint: Path) -> bool:
    """Steps until `steps` are done. False if asked to stop (Ctrl-C, SIGTERM) before; either way all is saved."""
    asked = []
    stops = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(stop, lambda *_: asked.append(True)) for stop in stops]
    progress = Progress(trainer.record.step, steps, trainer.options.batch * trainer.text.block)
    try:
        while trainer.record.step < steps and not asked:
            start = time.perf_counter()
            loss = trainer.train_step()
            seconds = time.perf_counter() - start
            if trainer.record.step % every == 0 or trainer.record.step == steps:
                progress.held_out = f", held out {trainer.validate():.3f}"
                trainer.save(checkpoint)
            progress.step(loss, seconds)
    finally:
        progress.close()
        for stop, handler in zip(stops, before):
            signal.signal(stop, handler)
    if asked:
        trainer.save(checkpoint)
    return not asked


def main() -> None:
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
    losses = options.losses or options.out / "losses.tsv"
    try:
        text = Text(options.text, options.block, torch.device(options.device))
        text.encode(options.prompt)
        for folder in (options.out, losses.parent):
            folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise SystemExit(f"train_gpt.py: {error}") from error
    trainer = Trainer(options, text, torch.device(options.device))
    checkpoint = options.out / "checkpoint.pt"
    if checkpoint.exists() and not options.fresh:
        trainer.restore(checkpoint)
        done = trainer.record.step
        if done < options.steps:
            print(f"going on from {checkpoint}: {done} of {options.steps} steps are done")
        else:
            print(f"{checkpoint} has {done} steps done and --steps is {options.steps}: there is nothing left to train")
            print("a higher --steps goes on, --fresh starts anew")
    elif options.resume:
        raise SystemExit(f"train_gpt.py: --resume, but there is no {checkpoint}")
    count = sum(p.numel() for p in trainer.model.parameters())
    print(f"{count:,} parameters, {len(text.train):,} characters to learn from, {torch.get_num_threads()} threads")

    finished = train(trainer, options.steps, options.every, checkpoint)
    write_losses(trainer.record, losses)
    if not finished:
        again = "the same command, without --fresh," if options.fresh else "the same command"
        print(f"stopped after {trainer.record.step} steps; {again} goes on from {checkpoint}", file=sys.stderr)
        raise SystemExit(STOPPED)
    sample = trainer.sample(options.prompt, 600)
    (options.out / "sample.txt").write_text(sample + "\n", encoding="ascii")
    print(f"\n{sample}\n")
    if trainer.record.validation:
        print(f"loss on held-out text: {trainer.record.validation[-1][1]:.4f}")
    picture = options.out / "loss.png"
    drawn = plot(trainer.record, picture)
    made = [checkpoint, losses, options.out / "sample.txt", *([picture] if drawn else [])]
    print("written:", ", ".join(map(str, made)))
    if not drawn:
        print("no picture of the curve: matplotlib is not installed")


if __name__ == "__main__":
    main()
