//! Transforms of functions from Rust: nesting, custom functions at every level.

use flambeau::autograd::{Context, Function, apply};
use flambeau::prelude::*;
use flambeau::transform::functional::{grad, jacobian, jvp, vmap};

/// x³ and 3x², with derivatives that are not theirs: ten times in reverse, seven times in forward mode.
struct Cube;

impl Function for Cube {
    fn forward(&self, cx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let x = inputs[0];
        let slope = x.mul(x)?.mul(3.0)?;
        cx.save(&[x, &slope]);
        Ok(vec![x.mul(x)?.mul(x)?, slope])
    }

    fn backward(&self, cx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let [x, slope] = cx.saved() else { unreachable!() };
        let mut total = x.zeros_like()?;
        if let Some(g) = &grads[0] {
            total = total.add(&g.mul(slope)?.mul(10.0)?)?;
        }
        if let Some(g) = &grads[1] {
            total = total.add(&g.mul(x)?.mul(6.0)?)?;
        }
        Ok(vec![Some(total)])
    }

    fn jvp(&self, cx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let [x, slope] = cx.saved() else { unreachable!() };
        let Some(t) = &tangents[0] else { return Ok(vec![None, None]) };
        Ok(vec![Some(t.mul(slope)?.mul(7.0)?), Some(t.mul(x)?.mul(6.0)?)])
    }
}

fn cube(x: &Tensor) -> Result<Tensor> {
    Ok(apply(Cube, &[x])?.remove(0))
}

fn cubes(x: &Tensor) -> Result<Tensor> {
    cube(x)?.sum()
}

fn same(a: &Tensor, b: &Tensor) -> Result<()> {
    assert!(a.allclose(b, 1e-12, 1e-12, false)?, "{a:?}: {:?}, expected {:?}", a.to_scalars()?, b.to_scalars()?);
    Ok(())
}

#[test]
fn custom_functions_keep_their_derivatives_at_every_level() -> Result<()> {
    let x = Tensor::from_slice(&[0.5f64, -1.25, 2.0], &[3])?;
    let (once, twice) = (x.mul(&x)?.mul(30.0)?, x.mul(60.0)?);
    same(&grad(cubes, &x)?, &once)?;
    same(&grad(|x| grad(cubes, x)?.sum(), &x)?, &twice)?;
    same(&jvp(cubes, &x, &x.ones_like()?)?.1, &x.mul(&x)?.mul(21.0)?.sum()?)?;
    let (value, slope) = jvp(|x| grad(cubes, x), &x, &x.ones_like()?)?;
    same(&value, &once)?;
    same(&slope, &twice)?;
    same(&vmap(|x| grad(cube, x), &x)?, &once)?;
    same(&grad(|x| vmap(cube, x)?.sum(), &x)?, &once)?;
    same(&vmap(|x| Ok(jvp(cube, x, &x.ones_like()?)?.1), &x)?, &x.mul(&x)?.mul(21.0)?)?;
    same(&vmap(|x| grad(|x| grad(cube, x), x), &x)?, &twice)?;
    same(&jacobian(|x| grad(cubes, x), &x)?, &twice.diag_embed(0, -2, -1)?)?;
    let leaf = x.alias().requiring_grad()?;
    cubes(&leaf)?.backward()?;
    same(&leaf.grad().unwrap(), &once)
}

#[test]
fn a_function_without_jvp_is_refused_in_forward_mode() -> Result<()> {
    struct Double;
    impl Function for Double {
        fn forward(&self, _: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
            Ok(vec![inputs[0].mul(2.0)?])
        }
        fn backward(&self, _: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
            grads.iter().map(|g| g.as_ref().map(|g| g.mul(2.0)).transpose()).collect()
        }
    }
    let x = Tensor::from_slice(&[1.0f64], &[1])?;
    let refused = jvp(|x| Ok(apply(Double, &[x])?.remove(0)), &x, &x).unwrap_err();
    assert!(refused.message().contains("write jvp"), "{refused}");
    same(&grad(|x| apply(Double, &[x])?.remove(0).sum(), &x)?, &Tensor::from_slice(&[2.0f64], &[1])?)
}
