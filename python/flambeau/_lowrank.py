"""Approximate factorisations by random projections (Halko et al., 2009), and a few eigenpairs."""

from . import _C, linalg

__all__ = ["get_approximate_basis", "lobpcg", "pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A, q, niter=2, M=None):
    """``Q`` of ``q`` orthonormal columns such that ``Q @ Q.mH @ A`` is near ``A`` (less ``M``)."""
    niter = 2 if niter is None else niter
    if M is not None:
        A = A - M
    start = _C.randn((A.shape[-1], q), dtype=A.dtype if A.is_floating_point() or A.is_complex() else None, device=A.device)
    Q = linalg.qr(A @ start).Q
    for _ in range(niter):
        Q = linalg.qr(A.mH @ Q).Q
        Q = linalg.qr(A @ Q).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """``U``, ``S`` and ``V`` of rank ``q`` such that ``U @ diag(S) @ V.mH`` is near ``A`` (less ``M``).

    ``niter`` subspace iterations make it nearer. The result is random; `manual_seed` fixes it.
    """
    q = 6 if q is None else q
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A = A.mH
    Q = get_approximate_basis(A, q, niter)
    U, S, Vh = linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components: `svd_lowrank` of ``A`` less the mean of its rows."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The ``k`` largest (or smallest) eigenvalues of a symmetric matrix, and their eigenvectors.

    With ``B``, positive-definite, those of ``A x = e B x``. Matrices are dense here, so the whole problem is solved, to the
    dtype's precision; options of the iteration have no effect.
    """
    k = (1 if X is None else X.shape[-1]) if k is None else k
    largest = True if largest is None else largest
    if A.shape[-1] < 3 * k:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than 3 x the number of requested eigenpairs (={k})")
    if B is None:
        values, vectors = linalg.eigh(A)
    else:
        L = linalg.cholesky(B)
        inner = linalg.solve_triangular(L, linalg.solve_triangular(L, A, upper=False).mH, upper=False).mH
        values, vectors = linalg.eigh(inner)
        vectors = linalg.solve_triangular(L.mH, vectors, upper=True)
    if largest:
        return values.flip(-1)[..., :k], vectors.flip(-1)[..., :k]
    return values[..., :k], vectors[..., :k]


def lu(A, pivot=True, get_infos=False, out=None):
    """LU factors packed in one matrix, the rows exchanged (int32, from 1 on) and, if asked, which pivot is zero."""
    factors, pivots, infos = _C._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    results = (factors, pivots, infos) if get_infos else (factors, pivots)
    if out is None:
        return results
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for given, result in zip(out, results):
        given.resize_(result.shape).copy_(result)
    return out
