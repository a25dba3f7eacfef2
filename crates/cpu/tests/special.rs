//! The special functions against values from mpmath (40 digits, rounded), and at the ends of their domains.

use flambeau_cpu::math::special;

/// Functions whose values may be near zero, or grow out of it, are compared against this as well.
const ABSOLUTE: f64 = 2e-16;
const RELATIVE: f64 = 4e-15;

fn agree(name: &str, x: &[f64], got: f64, want: f64) {
    let error = (got - want).abs();
    assert!(error <= want.abs() * RELATIVE + ABSOLUTE * f64::from(want.abs() > 1e-3), "{name}{x:?} = {got:e}, mpmath {want:e}");
}

#[test]
fn functions_of_one_argument() {
    for (x, want) in [
        (1e-08, 18.42068073818021),
        (0.3, 1.0957979948180756),
        (1.001, -0.0005763935982833062),
        (1.7, -0.09580769740706588),
        (2.3, 0.15418945495963046),
        (9.5, 11.689333420797269),
        (30.5, 72.9534711841694),
        (1000000.0, 12815504.569147611),
        (-0.25, 1.589575312551186),
        (-3.7, -1.3797399049658245),
    ] {
        agree("lgamma", &[x], special::lgamma(x), want);
    }
    for (x, want) in [
        (0.001, -1000.5755719318103),
        (0.5, -1.9635100260214235),
        (1.0, -0.5772156649015329),
        (2.5, 0.7031566406452432),
        (20.0, 2.970523992242149),
        (100000.0, 11.512920464961896),
        (-0.3, 2.113309779635399),
        (-7.25, 5.189977214956288),
    ] {
        agree("digamma", &[x], special::digamma(x), want);
    }
    for (x, want) in [
        (0.1, 1.0025015629340956),
        (3.0, 4.8807925858650245),
        (7.9, 389.406283282158),
        (8.1, 469.5006067101215),
        (50.0, 2.9325537838493362e+20),
        (-2.0, 2.2795853023360673),
    ] {
        agree("i0", &[x], special::i0(x), want);
    }
    for (x, want) in [(0.1, 0.9071009257823011), (3.0, 0.2430003541618254), (9.0, 0.134959524581723), (1000.0, 0.012617240455891257)] {
        agree("i0e", &[x], special::i0e(x), want);
    }
    for (x, want) in [
        (1e-05, 5.0000000000625004e-06),
        (3.0, 3.9533702174026093),
        (8.1, 439.48430891035844),
        (50.0, 2.903078590103557e+20),
        (-2.0, -1.590636854637329),
    ] {
        agree("i1", &[x], special::i1(x), want);
    }
    for (x, want) in [(0.1, 0.045298446808809324), (3.0, 0.19682671329730086), (9.0, 0.1272249839358912), (1000.0, 0.012610930256928629)] {
        agree("i1e", &[x], special::i1e(x), want);
    }
    for (x, want) in [
        (1e-05, 11.628856980944363),
        (0.5, 0.9244190712276659),
        (2.0, 0.11389387274953344),
        (2.1, 0.10078374088996693),
        (30.0, 2.1324774964630563e-14),
    ] {
        agree("k0", &[x], special::k0(x), want);
    }
    for (x, want) in [(0.5, 1.5241093857739094), (5.0, 0.547807564313519), (1000.0, 0.03962832160075422)] {
        agree("k0e", &[x], special::k0e(x), want);
    }
    for (x, want) in [
        (1e-05, 99999.99993935571),
        (0.5, 1.656441120003301),
        (2.0, 0.13986588181652243),
        (2.1, 0.12274641153350789),
        (30.0, 2.1677320018915495e-14),
    ] {
        agree("k1", &[x], special::k1(x), want);
    }
    for (x, want) in [(0.5, 2.731009708211786), (5.0, 0.6002738587883126), (1000.0, 0.03964813081296021)] {
        agree("k1e", &[x], special::k1e(x), want);
    }
    for (x, want) in [
        (0.1, 0.99750156206604),
        (3.0, -0.26005195490193345),
        (7.5, 0.2663396578803784),
        (9.0, -0.09033361118287614),
        (100.0, 0.019985850304223122),
        (-3.0, -0.26005195490193345),
    ] {
        agree("j0", &[x], special::j0(x), want);
    }
    for (x, want) in [
        (0.0001, 4.99999999375e-05),
        (3.0, 0.3390589585259365),
        (7.5, 0.1352484275797055),
        (9.0, 0.24531178657332528),
        (100.0, -0.07714535201411216),
        (-9.0, -0.24531178657332528),
    ] {
        agree("j1", &[x], special::j1(x), want);
    }
    for (x, want) in [
        (0.1, -1.5342386513503667),
        (3.0, 0.3768500100127904),
        (7.5, 0.11731328614820863),
        (9.0, 0.24993669828502468),
        (100.0, -0.07724431336508315),
    ] {
        agree("y0", &[x], special::y0(x), want);
    }
    for (x, want) in [
        (0.1, -6.4589510947020266),
        (3.0, 0.3246744247918),
        (7.5, -0.25912851048611624),
        (9.0, 0.10431457519671589),
        (100.0, -0.020372312002759792),
    ] {
        agree("y1", &[x], special::y1(x), want);
    }
    for (x, want) in [(0.001, 0.9999998333333416), (0.4, 0.9735458557716262), (0.6, 0.9410707889917256), (10.0, -0.05440211108893698)] {
        agree("spherical_j0", &[x], special::spherical_j0(x), want);
    }
    for (x, want) in [
        (-20.0, -0.1764061270779847),
        (-4.5, 0.2921527810559595),
        (-3.0, -0.37881429367765806),
        (-0.5, 0.4757280916105396),
        (0.5, 0.23169360648083348),
        (1.9, 0.0405944200315295),
        (2.1, 0.029952602115866523),
        (10.0, 1.1047532552898686e-10),
    ] {
        agree("airy", &[x], special::airy(x), want);
    }
    for (x, want) in [
        (-5.0, 144009798674.66104),
        (-0.5, 1.952360489182557),
        (0.0, 1.0),
        (0.5, 0.6156903441929259),
        (3.0, 0.17900115118138996),
        (40.0, 0.014100335983377814),
    ] {
        agree("erfcx", &[x], special::erfcx(x), want);
    }
    for (x, want) in [
        (-40.0, -804.6084420137538),
        (-2.0, -3.783184333682032),
        (-0.5, -1.1759117615936185),
        (0.5, -0.3689464152886564),
        (5.0, -2.866516129637636e-07),
    ] {
        agree("log_ndtr", &[x], special::log_ndtr(x), want);
    }
    for (x, want) in [
        (1e-10, -6.361340902404057),
        (0.01, -2.326347874040841),
        (0.3, -0.5244005127080408),
        (0.6, 0.2533471031357997),
        (0.9999, 3.7190164854557084),
    ] {
        agree("ndtri", &[x], special::ndtri(x), want);
    }
}

#[test]
fn functions_of_two_arguments() {
    for (x, y, want) in [
        (0.5, 0.2, 0.4729107431344619),
        (3.0, 2.5, 0.45618688411667047),
        (3.0, 20.0, 0.9999995444850495),
        (100.0, 95.0, 0.3173568111698),
        (30000.0, 30100.0, 0.7185819147885653),
    ] {
        agree("igamma", &[x, y], special::igamma(x, y), want);
    }
    for (x, y, want) in [
        (0.5, 0.2, 0.5270892568655381),
        (0.01, 0.3, 0.009072396421765093),
        (3.0, 2.5, 0.5438131158833295),
        (3.0, 20.0, 4.555149505589213e-07),
        (100.0, 130.0, 0.002750408367306526),
        (30000.0, 30100.0, 0.28141808521143474),
    ] {
        agree("igammac", &[x, y], special::igammac(x, y), want);
    }
    for (x, y, want) in
        [(1.5, 0.5, 4.776537947554833), (2.0, 1.0, 1.6449340668482264), (3.0, 20.0, 0.0013140612011573274), (25.0, 0.7, 7456.739987570301)]
    {
        agree("zeta", &[x, y], special::zeta(x, y), want);
    }
    for (x, y, want) in
        [(0.7, 1.0, 2.834049156694611), (-1.3, 1.0, 14.53687624413708), (2.5, 2.0, -0.2362040516417274), (3.5, 7.0, 0.26222195252313135)]
    {
        agree("polygamma", &[x, y], special::polygamma(x, y), want);
    }
    for (x, y, want) in [(0.3, 5.0, 0.99888), (0.3, 40.0, 0.9291591886517991), (1.5, 7.0, 421.5)] {
        agree("chebyshev_t", &[x, y], special::chebyshev_t(x, y), want);
    }
    for (x, y, want) in [(0.3, 5.0, 1.01376), (0.3, 40.0, 1.0454181275398593), (1.5, 7.0, 987.0)] {
        agree("chebyshev_u", &[x, y], special::chebyshev_u(x, y), want);
    }
    for (x, y, want) in [(0.3, 5.0, 31.757759999999998), (1.5, 7.0, 801.0)] {
        agree("hermite_h", &[x, y], special::hermite_h(x, y), want);
    }
    for (x, y, want) in [(0.3, 5.0, -0.09333274999999998), (1.5, 7.0, 0.5987583705357142)] {
        agree("laguerre", &[x, y], special::laguerre(x, y), want);
    }
    for (x, y, want) in [(0.3, 5.0, 0.34538625), (0.9, 30.0, 0.20181239795906342)] {
        agree("legendre", &[x, y], special::legendre(x, y), want);
    }
}

#[test]
fn ends_of_the_domains() {
    let inf = f64::INFINITY;
    assert_eq!(special::lgamma(-2.0), inf);
    assert_eq!(special::lgamma(1.0), 0.0);
    assert_eq!(special::lgamma(2.0), 0.0);
    assert_eq!((special::digamma(0.0), special::digamma(-0.0)), (-inf, inf));
    assert!(special::digamma(-3.0).is_nan());
    assert_eq!((special::y0(0.0), special::y1(0.0), special::k0(0.0), special::k1(0.0)), (-inf, -inf, inf, inf));
    assert!(special::y0(-1.0).is_nan() && special::k1(-1.0).is_nan());
    assert_eq!((special::i0(800.0), special::i1(-800.0), special::j0(inf), special::y1(inf)), (inf, -inf, 0.0, 0.0));
    assert_eq!((special::ndtri(0.0), special::ndtri(1.0), special::ndtri(0.5)), (-inf, inf, 0.0));
    assert!(special::ndtri(1.5).is_nan());
    assert_eq!((special::igamma(2.0, 0.0), special::igamma(2.0, inf), special::igammac(2.0, 0.0)), (0.0, 1.0, 1.0));
    assert!(special::igamma(-1.0, 1.0).is_nan() && special::igamma(0.0, 0.0).is_nan());
    assert_eq!((special::zeta(1.0, 2.0), special::zeta(2.0, 0.0)), (inf, inf));
    assert!(special::zeta(0.5, 1.0).is_nan());
    assert_eq!((special::legendre(0.4, -1.0), special::chebyshev_t(-1.0, 1e9), special::chebyshev_w(1.0, 3.0)), (0.0, 1.0, 7.0));
}

#[test]
fn numbers_and_how_they_are_made_up() {
    assert_eq!(special::next_f32(1.0, 2.0), 1.0 + f32::EPSILON);
    assert_eq!(special::next_f64(0.0, -1.0), -f64::from_bits(1));
    assert_eq!(special::next_brain(1.0, 0.0), 1.0 - 0.00390625);
    assert_eq!(special::next_half(65504.0, f32::INFINITY), f32::INFINITY);
    assert_eq!(special::parts(-6.0), (-0.75, 3.0));
    assert_eq!(special::parts(f64::from_bits(1)), (0.5, -1073.0));
    assert_eq!(special::ldexp(f64::from_bits(1), 2000.0), f64::powi(2.0, 926));
    assert_eq!(special::ldexp(3.0, -1075.0), f64::from_bits(2));
    assert_eq!(special::ldexp(0.0, 1e9), 0.0);
}
