# SPDX-License-Identifier: Apache-2.0
# group: jax
# limit: 100
# JAX: jit, grad, vmap, random numbers (the native ones), scan, linear algebra, FFT, half precision,
# convolution, sharding over one device, a host callback, donated buffers, a small network trained.
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".2")
from checks import *

os.environ["JAX_PLATFORMS"] = "cuda,cpu" if gpu else "cpu"  # host callbacks put their values on the CPU
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError as e:
    skip(e)
jax.config.update("jax_enable_x64", True)
R = np.random.default_rng(22)
normal = lambda *s: R.standard_normal(s).astype("f4")


@section()
def devices():
    d = jax.devices()[0]
    say("platform", (d.platform, len(jax.devices())))
    if gpu:
        say("kind", d.device_kind)
        holds("memory statistics", d.memory_stats()["bytes_limit"] > 0)


@section()
def transformations():
    f = lambda w, x: jnp.tanh(x @ w).sum()
    w, x = normal(30, 20), normal(10, 30)
    with jax.default_matmul_precision("highest"):
        close("value", jax.jit(f)(w, x), np.tanh(x.astype("f8") @ w).sum(), 1e-5)
        g = jax.jit(jax.grad(f))(w, x)
        close("gradient", g, x.T.astype("f8") @ (1 - np.tanh(x.astype("f8") @ w) ** 2), 1e-5)
        v = jax.vmap(lambda row: f(w, row[None]))(x)
        close("by row", v, np.tanh(x.astype("f8") @ w).sum(1), 1e-5)
        h = jax.hessian(lambda t: (jnp.sin(t) ** 2).sum())(jnp.arange(5.0))
        close("second derivatives", h, np.diag(2 * np.cos(2 * np.arange(5.0))), 1e-9)
        p, t = jax.jvp(lambda t: t**3, (jnp.float64(2),), (jnp.float64(1),))
        say("forward mode", (float(p), float(t)))


@section()
def random_numbers():
    key = jax.random.key(42)
    for name, v in (("normal", jax.random.normal(key, (1000,))),
                    ("uniform", jax.random.uniform(key, (1000,), dtype="f4")),
                    ("integers", jax.random.randint(key, (1000,), 0, 1 << 30)),
                    ("permutation", jax.random.permutation(key, 1000)),
                    ("categorical", jax.random.categorical(key, jnp.arange(10.0), shape=(500,))),
                    ("gamma", jax.random.gamma(key, 2.0, (200,)))):
        bits(name, np.asarray(v))


@section()
def control_flow():
    carry, out = jax.jit(lambda c, v: jax.lax.scan(lambda c, v: (c * 0.9 + v, c), c, v))(0.0,
        jnp.arange(100.0))
    want = 0.0
    for v in range(100):
        want = want * 0.9 + v
    close("scan", carry, want, 1e-12)
    say("while", int(jax.lax.while_loop(lambda v: v < 1000, lambda v: v * 2, 3)))
    say("cond", int(jax.jit(lambda v: jax.lax.cond(v > 2, lambda: v * 10, lambda: v))(5)))
    say("fori", int(jax.lax.fori_loop(0, 10, lambda i, s: s + i, 0)))


@section()
def linear_algebra():
    a = R.standard_normal((60, 60))
    s = a @ a.T / 60 + np.eye(60)
    u, w, v = jnp.linalg.svd(a)
    close("svd", (u * w) @ v, a, 1e-9)
    w, v = jnp.linalg.eigh(s)
    close("eigh", (v * w) @ v.T, s, 1e-9)
    l = jnp.linalg.cholesky(s)
    close("cholesky", l @ l.T, s, 1e-9)
    q, r = jnp.linalg.qr(a)
    close("qr", q @ r, a, 1e-9)
    close("solve", a @ jnp.linalg.solve(a, a[:, :5]), a[:, :5], 1e-8)
    close("inverse", a @ jnp.linalg.inv(a), np.eye(60), 1e-8)
    close("determinant", jnp.linalg.slogdet(s)[1], np.linalg.slogdet(s)[1], 1e-9)
    x = normal(8, 256)
    close("fft", jnp.fft.fft(x), np.fft.fft(x), 1e-4)
    close("rfft2", jnp.fft.rfft2(x), np.fft.rfft2(x), 1e-4)


@section()
def half_precision():
    a, b = normal(200, 300), normal(300, 100)
    want = a.astype("f8") @ b
    for dtype, tolerance in (("float16", 5e-3), ("bfloat16", 2e-2)):
        got = jax.jit(jnp.matmul)(a.astype(jnp.dtype(dtype)), b.astype(jnp.dtype(dtype)))
        close(dtype, np.asarray(got, "f4"), want, tolerance)
    c = jax.lax.conv_general_dilated(normal(2, 8, 20, 20), normal(4, 8, 3, 3), (1, 1), "SAME")
    holds("convolution is finite", bool(jnp.isfinite(c).all()) and c.shape == (2, 4, 20, 20))
    with jax.default_matmul_precision("highest"):
        close("einsum", jnp.einsum("bij,bjk->bik", a.reshape(2, 100, 300), b[None].repeat(2, 0)),
              want.reshape(2, 100, 100), 1e-4)


@section()
def one_device():
    y = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(jnp.arange(8.0)[None])
    same("pmap", y[0], np.arange(8.0))
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    z = jax.device_put(jnp.arange(16.0), NamedSharding(mesh, PartitionSpec("x")))
    same("sharded", jax.jit(lambda v: v * 2)(z), np.arange(16.0) * 2)


@section()
def callbacks():
    f = jax.jit(lambda v: jax.pure_callback(lambda u: np.asarray(u) * 3, jax.ShapeDtypeStruct((10,), "f8"),
                                            v) + 1)
    same("host callback", f(jnp.arange(10.0)), np.arange(10.0) * 3 + 1)
    g = jax.jit(lambda v: v + 1, donate_argnums=0)
    v = jnp.zeros(1000)
    for _ in range(50):
        v = g(v)
    same("donated", v, np.full(1000, 50.0))


@section()
def training():
    w = [jnp.asarray(normal(20, 64) / 4), jnp.asarray(normal(64, 1) / 8)]
    x = normal(128, 20)
    y = np.sin(x.sum(1, keepdims=True)).astype("f4")
    loss = lambda w: ((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2).mean()
    step = jax.jit(lambda w: jax.tree.map(lambda p, g: p - 0.05 * g, w, jax.grad(loss)(w)))
    before = float(loss(w))
    for _ in range(200):
        w = step(w)
    holds("the loss falls", float(loss(w)) < before / 2, (before, float(loss(w))))
    number("loss", float(loss(w)), 1e-3)


done()
