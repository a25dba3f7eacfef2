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
    schedule: usize,
    threads: Option<usize>,
    seed: u64,
    out: PathBuf,
}

fn options() -> Result<Options> {
    let mut o = Options { steps: 3000, schedule: 0, threads: None, seed: 1337, out: PathBuf::from("out/rust") };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| Error::value(format!("{word} needs a value")))?;
        let number = || value.parse::<usize>().map_err(|_| Error::value(format!("{word}: '{value}' is not a whole number")));
        match word.as_str() {
            "--steps" => o.steps = number()?,
            "--schedule" => o.schedule = number()?,
            "--threads" => o.threads = Some(number()?),
            "--seed" => o.seed = number()? as u64,
            "--out" => o.out = PathBuf::from(&value),
            _ => return Err(Error::value(format!("unknown option {word}; there are --steps, --schedule, --threads, --seed and --out"))),
        }
    }
    if o.schedule == 0 {
        o.schedule = o.steps;
    }
    Ok(o)
}

fn main() -> Result<()> {
    let o = options()?;
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
    let mut schedule = LambdaLr::new(&mut optimizer, |step| rate(step, o.schedule));
    println!("{} parameters, {} windows to learn from", model.parameter_count(), text.len());

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
            eprintln!(
                "step {step}/{}: loss {loss:.3}, {speed:.0} tokens/s, {:.0} s left",
                o.steps,
                seconds / step as f64 * (o.steps - step) as f64
            );
        }
    }

    std::fs::write(o.out.join("losses.tsv"), lines)?;
    flambeau::io::pt::save_state_dict(o.out.join("model.pt"), model.state_dict())?;
    let written = sample(&model, &text, "And God said", 400, o.seed)?;
    std::fs::write(o.out.join("sample.txt"), &written)?;
    println!("{written}\nwritten: losses.tsv, model.pt and sample.txt in {}", o.out.display());
    Ok(())
}
