"""Provide the binary learners: VW's gradient descent for most reductions, and AdaGrad for trees of regressors."""
