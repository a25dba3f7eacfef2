//! Trains a small character-level GPT on English text: `examples/train_gpt.py` in Rust, with the same losses for the
//! same seed (see NOTE [ one curve ] there).
//!
//!     cargo run --release --example train_gpt -- --steps 3000 --threads 2 --out out/rust
//!
//! Into the folder go losses.tsv, sample.txt and model.pt, which Python loads too.

use flambeau::data::Dataset;
use flambeau::nn::optim::{AdamW, Group, LambdaLr, Optimizer};
use flambeau::nn::{Embedding, Layer, LayerNorm, Linear, clip_grad_norm, init};
use flambeau::ops::index::IndexItem;
use flambeau::ops::nn::{AttentionOptions, Reduction};
use flambeau::prelude::*;
use flambeau::random::Generator;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

// ---- the model

#[derive(Module)]
struct Block {
    before_attention: LayerNorm,
    qkv: Linear,
    mix: Linear,
    before_layers: LayerNorm,
    widen: Linear,
    narrow: Linear,
    heads: usize,
}

impl Block {
    fn new(width: usize, heads: usize) -> Result<Block> {
        Ok(Block {
            before_attention: LayerNorm::new(width)?,
            qkv: Linear::new(width, 3 * width)?,
            mix: Linear::new(width, width)?,
            before_layers: LayerNorm::new(width)?,
            widen: Linear::new(width, 4 * width)?,
            narrow: Linear::new(4 * width, width)?,
            heads,
        })
    }

    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, length, width] = [0, 1, 2].map(|d| x.shape()[d] as i64);
        let heads = self.heads as i64;
        let parts = self.qkv.forward(x)?.split(width, 2)?;
        let head = |t: &Tensor| t.view(&[batch, length, heads, width / heads])?.transpose(1, 2);
        let (q, k, v) = (head(&parts[0])?, head(&parts[1])?, head(&parts[2])?);
        let seen = q.attention(&k, &v, &AttentionOptions { causal: true, ..Default::default() })?;
        self.mix.forward(&seen.transpose(1, 2)?.reshape(&[batch, length, width])?)
    }
}

impl Layer for Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = (x + &self.attend(&self.before_attention.forward(x)?)?)?;
        let wide = self.widen.forward(&self.before_layers.forward(&x)?)?.gelu()?;
        &x + &self.narrow.forward(&wide)?
    }
}

#[derive(Module)]
struct Gpt {
    tokens: Embedding,
    places: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

impl Gpt {
    fn new(vocabulary: usize, block: usize, width: usize, heads: usize, layers: usize) -> Result<Gpt> {
        let model = Gpt {
            tokens: Embedding::new(vocabulary, width)?,
            places: Embedding::new(block, width)?,
            blocks: (0..layers).map(|_| Block::new(width, heads)).collect::<Result<_>>()?,
            norm: LayerNorm::new(width)?,
            head: Linear::without_bias(width, vocabulary)?,
        };
        // What is added to the residual stream starts smaller.
        for (name, p) in model.named_parameters() {
            let added = name.ends_with("mix.weight") || name.ends_with("narrow.weight");
            match p.ndim() {
                2.. => init::normal(&p, 0.0, if added { 0.02 / (2.0 * layers as f64).sqrt() } else { 0.02 })?,
                _ if name.ends_with("bias") => init::constant(&p, 0.0)?,
                _ => {}
            }
        }
        Ok(model)
    }

    /// Scores `[batch, length, vocabulary]` for characters `[batch, length]`.
    fn forward(&self, characters: &Tensor) -> Result<Tensor> {
        let places = Tensor::arange(0, characters.shape()[1], 1, None, Device::CPU)?;
        let mut x = (&self.tokens.forward(characters)? + &self.places.forward(&places)?)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.head.forward(&self.norm.forward(&x)?)
    }

    /// Mean cross-entropy of each window's characters, all but the first, given those before.
    fn loss(&self, windows: &Tensor) -> Result<Tensor> {
        let length = windows.shape()[1] as i64;
        let scores = self.forward(&windows.narrow(1, 0, length - 1)?)?;
        let flat = scores.reshape(&[-1, scores.shape()[2] as i64])?;
        flat.cross_entropy(&windows.narrow(1, 1, length - 1)?.reshape(&[-1])?, None, Reduction::Mean, -100, 0.0)
    }
}

// ---- the text

/// Windows of a text as numbers: sample `i` begins at character `i`.
struct Text {
    characters: Vec<u8>,
    train: Tensor,
    window: Tensor,
    block: usize,
}

impl Text {
    fn load(path: &str, block: usize) -> Result<Text> {
        let bytes = std::fs::read(path)?;
        let characters: Vec<u8> = bytes.iter().copied().collect::<BTreeSet<u8>>().into_iter().collect();
        let number = |b: &u8| characters.binary_search(b).unwrap_or(0) as i64;
        let train: Vec<i64> = bytes[..bytes.len() * 9 / 10].iter().map(number).collect();
        let train = Tensor::from_slice(&train, &[train.len()])?;
        let window = Tensor::arange(0, block + 1, 1, None, Device::CPU)?;
        Ok(Text { characters, train, window, block })
    }

    /// `[size, block + 1]` characters from random places.
    fn batch(&self, size: usize) -> Result<Tensor> {
        let starts = Tensor::randint(0, self.len() as i64, &[size], DType::I64, Device::CPU)?;
        self.train.index_items(&[IndexItem::Tensor(starts.unsqueeze(1)?.add(&self.window)?)])
    }
}

impl Dataset for Text {
    type Item = Tensor;

    fn len(&self) -> usize {
        self.train.numel() - self.block
    }

    fn get(&self, i: usize) -> Result<Tensor> {
        self.train.narrow(0, i as i64, self.block as i64 + 1)
    }
}

// ---- training

/// Share of the full learning rate: a linear rise over 100 steps, then half a cosine down to a tenth.
fn rate(step: usize, steps: usize) -> f64 {
    if step < 100 {
        return (step + 1) as f64 / 100.0;
    }
    let done = ((step - 100) as f64 / steps.saturating_sub(100).max(1) as f64).min(1.0);
    0.1 + 0.9 * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
}

/// Text as the model goes on from a prompt.
fn sample(model: &Gpt, text: &Text, prompt: &str, length: usize, seed: u64) -> Result<String> {
    let _guard = no_grad();
    let generator = Generator::with_seed(seed);
    let known = prompt.bytes().filter_map(|b| text.characters.binary_search(&b).ok());
    let mut numbers: Vec<i64> = known.map(|n| n as i64).collect();
    for _ in 0..length {
        let recent = &numbers[numbers.len().saturating_sub(text.block)..];
        let scores = model.forward(&Tensor::from_slice(recent, &[1, recent.len()])?)?;
        let chances = scores.select(1, -1)?.div(0.8)?.softmax(-1, None)?;
        numbers.push(chances.multinomial(1, false, Some(generator.clone()))?.item()?.to_i64());
    }
    Ok(numbers.iter().map(|&n| text.characters[n as usize] as char).collect())
}

struct Options {
    steps: usize,
    schedule: Option<usize>,
    threads: Option<usize>,
    seed: u64,
    out: PathBuf,
}

const USAGE: &str = "\
usage: train_gpt [--steps N] [--schedule N] [--threads N] [--seed N] [--out FOLDER]

Trains a small character-level GPT on English text, as examples/train_gpt.py does.

  --steps N      steps in all (default: 3000)
  --schedule N   steps of the learning rate's schedule (default: --steps)
  --threads N    threads to compute with (default: all cores)
  --seed N       seed of all draws (default: 1337)
  --out FOLDER   folder for what is made (default: out/rust)";

/// The options on the command line; none where only help is asked for. The error is a sentence for a person.
fn options(mut words: impl Iterator<Item = String>) -> std::result::Result<Option<Options>, String> {
    let mut o = Options { steps: 3000, schedule: None, threads: None, seed: 1337, out: PathBuf::from("out/rust") };
    while let Some(word) = words.next() {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        if name == "-h" || name == "--help" {
            return Ok(None);
        }
        if !["--steps", "--schedule", "--threads", "--seed", "--out"].contains(&name.as_str()) {
            return Err(format!("unknown option {name}"));
        }
        let value = given.or_else(|| words.next()).ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: '{value}' is not a whole number"));
        let positive = || match number()? {
            0 => Err(format!("{name}: '{value}' is not a whole number above 0")),
            n => usize::try_from(n).map_err(|_| format!("{name}: {n} is too large")),
        };
        match name.as_str() {
            "--steps" => o.steps = positive()?,
            "--schedule" => o.schedule = Some(positive()?),
            "--threads" => o.threads = Some(positive()?),
            "--seed" => o.seed = number()?,
            _ => o.out = PathBuf::from(&value),
        }
    }
    Ok(Some(o))
}

/// A number with commas between thousands.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn main() -> ExitCode {
    let done = match options(std::env::args().skip(1)) {
        Ok(Some(o)) => train(&o).map_err(|e| e.to_string()),
        Ok(None) => {
            println!("{USAGE}");
            Ok(())
        }
        Err(wrong) => {
            eprintln!("{USAGE}\n\ntrain_gpt: {wrong}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train_gpt: {error}");
            ExitCode::FAILURE
        }
    }
}

fn train(o: &Options) -> Result<()> {
    let steps = o.schedule.unwrap_or(o.steps);
    if let Some(threads) = o.threads {
        flambeau::cpu::set_num_threads(threads);
    }
    std::fs::create_dir_all(&o.out)?;
    let (batch, block) = (16, 64);
    let text = Text::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/english.txt"), block)?;

    manual_seed(o.seed);
    let model = Gpt::new(text.characters.len(), block, 128, 4, 4)?;
    // Weight decay pulls on matrices only.
    let (matrices, vectors) = model.parameters().into_iter().partition(|p| p.ndim() >= 2);
    let mut optimizer = AdamW::new(vec![Group::new(matrices).weight_decay(0.1), Group::new(vectors)], 2e-3).betas(0.9, 0.99);
    let mut schedule = LambdaLr::new(&mut optimizer, |step| rate(step, steps));
    let (count, learned) = (grouped(model.parameter_count()), grouped(text.train.numel()));
    println!("{count} parameters, {learned} characters to learn from, {} threads", flambeau::cpu::num_threads());

    let (begun, mut lines) = (Instant::now(), String::new());
    for step in 1..=o.steps {
        let loss = model.loss(&text.batch(batch)?)?;
        optimizer.zero_grad();
        loss.backward()?;
        clip_grad_norm(&model.parameters(), 1.0)?;
        optimizer.step()?;
        schedule.step(&mut optimizer);
        let loss = loss.item()?.to_f64() as f32;
        let _ = writeln!(lines, "{step}\t{:?}\t{:08x}", loss as f64, loss.to_bits());
        if step % 100 == 0 || step == o.steps {
            let seconds = begun.elapsed().as_secs_f64();
            let speed = (step * batch * block) as f64 / seconds;
            let left = (seconds / step as f64 * (o.steps - step) as f64) as u64;
            let (speed, minutes) = (grouped(speed.round() as usize), left / 60);
            eprintln!("step {step}/{}: loss {loss:.3}, {speed} tokens/s, {minutes}:{:02} left", o.steps, left % 60);
        }
    }

    std::fs::write(o.out.join("losses.tsv"), lines)?;
    flambeau::io::pt::save_state_dict(o.out.join("model.pt"), model.state_dict())?;
    let written = sample(&model, &text, "And God said", 600, o.seed)?;
    std::fs::write(o.out.join("sample.txt"), format!("{written}\n"))?;
    println!("\n{written}\n\nwritten: losses.tsv, model.pt and sample.txt in {}", o.out.display());
    Ok(())
}
