# SPDX-License-Identifier: Apache-2.0
# NVIDIA Warp: kernels in Python by way of NVRTC's PTX. Arrays, gradients, a graph whose memory is used after
# the graph is gone, a hash grid, a triangle mesh that rays meet, sorting.
import tempfile

import numpy
import warp as wp

cache = tempfile.TemporaryDirectory()
wp.config.kernel_cache_dir = cache.name
wp.config.quiet = True
wp.init()
print(wp.get_device("cuda:0").name, "Warp", wp.config.version)
rng = numpy.random.default_rng(1)


@wp.kernel
def scale(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + wp.sin(x[i])


@wp.kernel
def add_up(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])


@wp.kernel
def shoot(mesh: wp.uint64, at: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, at[i], wp.vec3(0.0, 0.0, -1.0), 10.0)
    distance[i] = -1.0
    if hit.result:
        distance[i] = hit.t


@wp.kernel
def neighbours(grid: wp.uint64, at: wp.array(dtype=wp.vec3), count: wp.array(dtype=int)):
    i = wp.tid()
    n = int(0)
    for j in wp.hash_grid_query(grid, at[i], 0.1):
        if wp.length(at[i] - at[j]) <= 0.1:
            n += 1
    count[i] = n


with wp.ScopedDevice("cuda:0"):
    host = rng.random(1000, "f4")
    x = wp.array(host, requires_grad=True)
    y = wp.zeros(1000, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scale, dim=1000, inputs=[3.0, x, y])
        wp.launch(add_up, dim=1000, inputs=[y, loss])
    tape.backward(loss)
    assert numpy.allclose(y.numpy(), 3 * host + numpy.sin(host), rtol=1e-6), "kernel"
    assert numpy.allclose(x.grad.numpy(), 3 + numpy.cos(host), rtol=1e-6), "gradient"

    with wp.ScopedMempool("cuda:0", True):
        with wp.ScopedCapture() as capture:
            kept = wp.empty(1000, dtype=float)
            kept.fill_(17)
            wp.launch(scale, dim=1000, inputs=[2.0, x, kept])
        wp.capture_launch(capture.graph)
        del capture
        want = 2 * host + numpy.sin(host)
        assert numpy.allclose(kept.numpy(), want, rtol=1e-6), "memory of a graph that is gone"
        del kept

    points = numpy.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], "f4")
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array([0, 1, 2, 0, 2, 3], dtype=int))
    start = (rng.random((64, 3)) * [2, 2, 1] + [-0.5, -0.5, 1]).astype("f4")
    distance = wp.zeros(64, dtype=float)
    wp.launch(shoot, dim=64, inputs=[mesh.id, wp.array(start, dtype=wp.vec3), distance])
    inside = ((start[:, :2] > 0) & (start[:, :2] < 1)).all(1)
    assert numpy.allclose(distance.numpy(), numpy.where(inside, start[:, 2], -1), rtol=1e-5), "rays"

    cloud = rng.random((200, 3)).astype("f4")
    at = wp.array(cloud, dtype=wp.vec3)
    grid = wp.HashGrid(16, 16, 16)
    grid.build(at, 0.1)
    count = wp.zeros(200, dtype=int)
    wp.launch(neighbours, dim=200, inputs=[grid.id, at, count])
    apart = numpy.linalg.norm(cloud[:, None].astype("f8") - cloud[None], axis=2)
    assert (numpy.abs(apart - 0.1) > 1e-6).all(), "two points at the very distance"
    assert (count.numpy() == (apart < 0.1).sum(1)).all(), "hash grid"

    keys = wp.array(numpy.concatenate([rng.permutation(500), numpy.zeros(500)]), dtype=int)
    places = wp.array(numpy.arange(1000), dtype=int)
    before = keys.numpy()[:500].copy()
    wp.utils.radix_sort_pairs(keys, places, 500)
    assert (keys.numpy()[:500] == numpy.arange(500)).all(), "sort"
    assert (before[places.numpy()[:500]] == numpy.arange(500)).all(), "sorted pairs"
print("PASS warp")
