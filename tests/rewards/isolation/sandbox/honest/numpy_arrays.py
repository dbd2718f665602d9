import numpy as np

matrix = np.arange(9, dtype=float).reshape(3, 3) + np.eye(3)
assert np.allclose(np.linalg.inv(matrix) @ matrix, np.eye(3))
assert np.linalg.eigvalsh(matrix + matrix.T).shape == (3,)
assert np.sort(np.array([3, 1, 2])).tolist() == [1, 2, 3]
assert (np.ones((400, 400)) @ np.ones((400, 400))).sum() == 400**3
assert np.random.default_rng(0).integers(10, size=5).shape == (5,)
assert abs(np.fft.fft(np.ones(8))[0] - 8) < 1e-9
