"""A variational autoencoder on pictures of bars, with flambeau's distributions and mixed precision.

Each picture is 8 by 8, with one bright row and one bright column. The encoder gives a normal distribution over four
numbers for each picture, the decoder a coin for each pixel. The loss is the reconstruction's surprise plus the
divergence of the encoder's distribution from a standard normal one (Kingma and Welling, 2013).

    python examples/vae.py [--steps 300] [--bfloat16]
"""

import argparse

import flambeau as torch
from flambeau import nn
from flambeau.distributions import Bernoulli, Independent, Normal, kl_divergence

SIDE, CODE = 8, 4


def pictures(count):
    """Pictures with a bright row and a bright column each."""
    row, column = torch.randint(0, SIDE, (2, count))
    places = torch.arange(SIDE)
    bright = (places[None, :, None] == row[:, None, None]) | (places[None, None, :] == column[:, None, None])
    return bright.float().flatten(1)


class Autoencoder(nn.Module):
    """An encoder to a distribution over codes and a decoder to a distribution over pictures."""

    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, hidden), nn.Tanh(), nn.Linear(hidden, 2 * CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, hidden), nn.Tanh(), nn.Linear(hidden, SIDE * SIDE))

    def encode(self, x):
        """The distribution over codes."""
        mean, spread = self.encoder(x).float().chunk(2, dim=-1)
        return Independent(Normal(mean, nn.functional.softplus(spread) + 1e-3), 1)

    def decode(self, code):
        """The distribution over pictures."""
        return Independent(Bernoulli(logits=self.decoder(code).float()), 1)

    def loss(self, x):
        """The bound on a picture's surprise, in nats."""
        codes = self.encode(x)
        prior = Independent(Normal(torch.zeros(CODE), torch.ones(CODE)), 1)
        reconstruction = self.decode(codes.rsample())
        return (kl_divergence(codes, prior) - reconstruction.log_prob(x)).mean()


def train(steps, bfloat16=False, seed=0):
    """Train, and give the loss of each step."""
    torch.manual_seed(seed)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        x = pictures(64)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = model.loss(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    """Parse the command line, train, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--bfloat16", action="store_true", help="compute products in bfloat16")
    options = parser.parse_args()
    losses = train(options.steps, options.bfloat16)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:7.3f}")
    print(f"last       loss {losses[-1]:7.3f}")


if __name__ == "__main__":
    main()
