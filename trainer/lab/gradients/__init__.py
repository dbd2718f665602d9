"""The gradient bench: the gradients of strategies on the same rollouts at the same weights, without a run of each."""
