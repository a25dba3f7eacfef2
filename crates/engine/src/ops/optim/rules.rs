//! The rules of the optimizers, by their papers and with PyTorch's order of roundings.

use super::rule::{Rule, Writer};

/// The rules.
pub static RULES: &[&Rule] = &[&SGD, &ADAM, &ADAGRAD, &ADADELTA, &ADAMAX, &NADAM, &RADAM, &RMSPROP, &ASGD, &RPROP];

/// Turns the gradient round where the objective is made larger.
fn direct(w: &mut Writer) {
    if w.on("maximize") {
        let g = w.get("grad");
        let g = w.neg(g);
        w.set("grad", g);
    }
}

/// Weight decay: "decay" adds that much of the parameter to the gradient.
fn decay(w: &mut Writer) {
    if w.on("decay") {
        let (p, g, factor) = (w.get("param"), w.get("grad"), w.number("weight_decay"));
        let g = w.add_scaled(g, p, factor);
        w.set("grad", g);
    }
}

/// Weight decay that may be decoupled: then the parameter itself is multiplied by the number "shrink".
fn decay_either(w: &mut Writer) {
    if w.on("decay") && w.on("decoupled") {
        let (p, factor) = (w.get("param"), w.number("shrink"));
        let p = w.mul(p, factor);
        w.set("param", p);
    } else {
        decay(w);
    }
}

/// The running means of the gradient and of its square.
fn means(w: &mut Writer) {
    let (g, m, v) = (w.get("grad"), w.get("exp_avg"), w.get("exp_avg_sq"));
    let m = w.lerp(m, g, "share1");
    w.set("exp_avg", m);
    let v = mean_of_square(w, v, "beta2", "share2");
    w.set("exp_avg_sq", v);
}

fn mean_of_square(w: &mut Writer, v: flambeau_ir::Val, keep: &str, share: &str) -> flambeau_ir::Val {
    let (g, keep, share) = (w.get("grad"), w.number(keep), w.number(share));
    let v = w.mul(v, keep);
    w.addcmul(v, g, g, share)
}

/// `sqrt(v) + eps`.
fn root(w: &mut Writer, v: flambeau_ir::Val) -> flambeau_ir::Val {
    let (root, eps) = (w.sqrt(v), w.number("eps"));
    w.add(root, eps)
}

/// Gradient descent. Source of "nesterov": Sutskever and others, 2013.
pub static SGD: Rule = Rule {
    name: "sgd",
    state: &[("momentum_buffer", "momentum")],
    numbers: &["weight_decay", "momentum", "share", "step"],
    switches: &["maximize", "decay", "momentum", "fresh", "nesterov"],
    body: |w| {
        direct(w);
        decay(w);
        let mut g = w.get("grad");
        if w.on("momentum") {
            let mut b = g;
            let momentum = w.number("momentum");
            if !w.on("fresh") {
                let (old, share) = (w.get("momentum_buffer"), w.number("share"));
                let old = w.mul(old, momentum);
                b = w.add_scaled(old, g, share);
            }
            w.set("momentum_buffer", b);
            g = if w.on("nesterov") { w.add_scaled(g, b, momentum) } else { b };
        }
        let (p, step) = (w.get("param"), w.number("step"));
        let p = w.add_scaled(p, g, step);
        w.set("param", p);
    },
};

/// Adam and AdamW. Source: Kingma and Ba, 2014; Loshchilov and Hutter, 2017; "amsgrad": Reddi and others, 2018.
pub static ADAM: Rule = Rule {
    name: "adam",
    state: &[("exp_avg", ""), ("exp_avg_sq", ""), ("max_exp_avg_sq", "amsgrad")],
    numbers: &["weight_decay", "shrink", "share1", "beta2", "share2", "correction", "eps", "step"],
    switches: &["maximize", "decay", "decoupled", "amsgrad"],
    body: |w| {
        direct(w);
        decay_either(w);
        means(w);
        let mut v = w.get("exp_avg_sq");
        if w.on("amsgrad") {
            let most = w.get("max_exp_avg_sq");
            v = w.maximum(most, v);
            w.set("max_exp_avg_sq", v);
        }
        let (v, correction, eps) = (w.sqrt(v), w.number("correction"), w.number("eps"));
        let v = w.div(v, correction);
        let v = w.add(v, eps);
        let (p, m, step) = (w.get("param"), w.get("exp_avg"), w.number("step"));
        let p = w.addcdiv(p, m, v, step);
        w.set("param", p);
    },
};

/// Source: Duchi, Hazan and Singer, 2011.
pub static ADAGRAD: Rule = Rule {
    name: "adagrad",
    state: &[("sum", "")],
    numbers: &["weight_decay", "eps", "step"],
    switches: &["maximize", "decay"],
    body: |w| {
        direct(w);
        decay(w);
        let (g, sum, one) = (w.get("grad"), w.get("sum"), w.literal(1.0));
        let sum = w.addcmul(sum, g, g, one);
        w.set("sum", sum);
        let denominator = root(w, sum);
        let (p, step) = (w.get("param"), w.number("step"));
        let p = w.addcdiv(p, g, denominator, step);
        w.set("param", p);
    },
};

/// Source: Zeiler, 2012.
pub static ADADELTA: Rule = Rule {
    name: "adadelta",
    state: &[("square_avg", ""), ("acc_delta", "")],
    numbers: &["weight_decay", "rho", "share", "eps", "step"],
    switches: &["maximize", "decay"],
    body: |w| {
        direct(w);
        decay(w);
        let (g, v, moved) = (w.get("grad"), w.get("square_avg"), w.get("acc_delta"));
        let v = mean_of_square(w, v, "rho", "share");
        w.set("square_avg", v);
        let eps = w.number("eps");
        let [below, above] = [v, moved].map(|x| {
            let x = w.add(x, eps);
            w.sqrt(x)
        });
        let delta = w.div(above, below);
        let delta = w.mul(delta, g);
        let (rho, share) = (w.number("rho"), w.number("share"));
        let moved = w.mul(moved, rho);
        let moved = w.addcmul(moved, delta, delta, share);
        w.set("acc_delta", moved);
        let (p, step) = (w.get("param"), w.number("step"));
        let p = w.add_scaled(p, delta, step);
        w.set("param", p);
    },
};

/// Source: Kingma and Ba, 2014, section 7.
pub static ADAMAX: Rule = Rule {
    name: "adamax",
    state: &[("exp_avg", ""), ("exp_inf", "")],
    numbers: &["weight_decay", "share1", "beta2", "eps", "step"],
    switches: &["maximize", "decay"],
    body: |w| {
        direct(w);
        decay(w);
        let (g, m, most) = (w.get("grad"), w.get("exp_avg"), w.get("exp_inf"));
        let m = w.lerp(m, g, "share1");
        w.set("exp_avg", m);
        let (beta2, eps) = (w.number("beta2"), w.number("eps"));
        let (most, now) = (w.mul(most, beta2), w.abs(g));
        let now = w.add(now, eps);
        let most = w.maximum(most, now);
        w.set("exp_inf", most);
        let (p, step) = (w.get("param"), w.number("step"));
        let p = w.addcdiv(p, m, most, step);
        w.set("param", p);
    },
};

/// Source: Dozat, 2016.
pub static NADAM: Rule = Rule {
    name: "nadam",
    state: &[("exp_avg", ""), ("exp_avg_sq", "")],
    numbers: &["weight_decay", "shrink", "share1", "beta2", "share2", "correction", "eps", "step_grad", "step_mean"],
    switches: &["maximize", "decay", "decoupled"],
    body: |w| {
        direct(w);
        decay_either(w);
        means(w);
        let (v, correction) = (w.get("exp_avg_sq"), w.number("correction"));
        let v = w.div(v, correction);
        let denominator = root(w, v);
        let (p, g, m) = (w.get("param"), w.get("grad"), w.get("exp_avg"));
        let (step_grad, step_mean) = (w.number("step_grad"), w.number("step_mean"));
        let p = w.addcdiv(p, g, denominator, step_grad);
        let p = w.addcdiv(p, m, denominator, step_mean);
        w.set("param", p);
    },
};

/// Source: Liu and others, 2019.
pub static RADAM: Rule = Rule {
    name: "radam",
    state: &[("exp_avg", ""), ("exp_avg_sq", "")],
    numbers: &["weight_decay", "shrink", "share1", "beta2", "share2", "correction1", "correction2", "eps", "lr", "rectifier"],
    switches: &["maximize", "decay", "decoupled", "rectified"],
    body: |w| {
        direct(w);
        decay_either(w);
        means(w);
        let (m, correction, lr) = (w.get("exp_avg"), w.number("correction1"), w.number("lr"));
        let m = w.div(m, correction);
        let mut update = w.mul(m, lr);
        if w.on("rectified") {
            let v = w.get("exp_avg_sq");
            let denominator = root(w, v);
            let (inverse, correction, rectifier) = (w.reciprocal(denominator), w.number("correction2"), w.number("rectifier"));
            let adaptive = w.mul(inverse, correction);
            update = w.mul(update, adaptive);
            update = w.mul(update, rectifier);
        }
        let p = w.get("param");
        let p = w.sub(p, update);
        w.set("param", p);
    },
};

/// Source: Hinton's lectures, 2012; "centered": Graves, 2013.
pub static RMSPROP: Rule = Rule {
    name: "rmsprop",
    state: &[("square_avg", ""), ("momentum_buffer", "momentum"), ("grad_avg", "centered")],
    numbers: &["weight_decay", "alpha", "share", "eps", "momentum", "step"],
    switches: &["maximize", "decay", "momentum", "centered"],
    body: |w| {
        direct(w);
        decay(w);
        let (g, v) = (w.get("grad"), w.get("square_avg"));
        let mut v = mean_of_square(w, v, "alpha", "share");
        w.set("square_avg", v);
        if w.on("centered") {
            let m = w.get("grad_avg");
            let m = w.lerp(m, g, "share");
            w.set("grad_avg", m);
            let minus = w.literal(-1.0);
            v = w.addcmul(v, m, m, minus);
        }
        let denominator = root(w, v);
        let (p, step) = (w.get("param"), w.number("step"));
        let p = if w.on("momentum") {
            let (b, momentum, one) = (w.get("momentum_buffer"), w.number("momentum"), w.literal(1.0));
            let b = w.mul(b, momentum);
            let b = w.addcdiv(b, g, denominator, one);
            w.set("momentum_buffer", b);
            w.add_scaled(p, b, step)
        } else {
            w.addcdiv(p, g, denominator, step)
        };
        w.set("param", p);
    },
};

/// Source: Polyak and Juditsky, 1992.
pub static ASGD: Rule = Rule {
    name: "asgd",
    state: &[("ax", "")],
    numbers: &["weight_decay", "shrink", "step", "mu"],
    switches: &["maximize", "decay", "averaging"],
    body: |w| {
        direct(w);
        decay(w);
        let (p, g, shrink, step) = (w.get("param"), w.get("grad"), w.number("shrink"), w.number("step"));
        let p = w.mul(p, shrink);
        let p = w.add_scaled(p, g, step);
        w.set("param", p);
        let mut ax = p;
        if w.on("averaging") {
            let (mean, mu) = (w.get("ax"), w.number("mu"));
            let move_ = w.sub(p, mean);
            let move_ = w.mul(move_, mu);
            ax = w.add(mean, move_);
        }
        w.set("ax", ax);
    },
};

/// Source: Riedmiller and Braun, 1993.
pub static RPROP: Rule = Rule {
    name: "rprop",
    state: &[("prev", ""), ("step_size", "")],
    numbers: &["etaminus", "etaplus", "least", "most"],
    switches: &["maximize"],
    body: |w| {
        direct(w);
        let (g, prev, size) = (w.get("grad"), w.get("prev"), w.get("step_size"));
        let turn = w.mul(g, prev);
        let (up, down, one, zero) = (w.number("etaplus"), w.number("etaminus"), w.literal(1.0), w.literal(0.0));
        let factor = w.by_sign(turn, up, down, one);
        let (least, most) = (w.number("least"), w.number("most"));
        let size = w.mul(size, factor);
        let size = w.maximum(size, least);
        let size = w.minimum(size, most);
        w.set("step_size", size);
        // A step that went too far is not tried again from its own gradient. Where `turn` is NaN the gradient stays.
        let g = w.unless_negative(turn, g, zero);
        w.set("prev", g);
        let (p, sign, minus) = (w.get("param"), w.sign(g), w.literal(-1.0));
        let p = w.addcmul(p, sign, size, minus);
        w.set("param", p);
    },
};
