"""An out-of-distribution score: how unlike the steps that an operator was trained on is this one."""

import dataclasses

import equinox as eqx
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import affine_part, view
from pfbr.inference.operator import Operator
from pfbr.inference.provenance import Provenance
from pfbr.typing import Matrix, Points, Scalar

NAMES = ("sharpness", "surprise", "curvature left", "skewness", "kurtosis")


def features(points: Points, likelihood: Likelihood) -> Float[Array, " f"]:
    """Five numbers in the frame of the set, so that neither place nor scale of the problem matters.

    log sharpness: root mean square of the whitened scores. log surprise: their mean,
    which all particles agree on.
    Curvature left: the share of the scores that is not affine, 0 for a Gaussian likelihood. Skewness and kurtosis: root
    mean square over coordinates of the set's third and fourth moments, beyond those of a normal.
    """
    seen = view(points, likelihood)
    mean_score, half_curvature = affine_part(seen)
    left = seen.scores - mean_score - seen.points @ (2 * half_curvature)
    power = jnp.mean(jnp.sum(seen.scores**2, axis=-1)) + 1e-12
    skewness = jnp.sqrt(jnp.mean(jnp.mean(seen.points**3, axis=0) ** 2))
    kurtosis = jnp.sqrt(jnp.mean((jnp.mean(seen.points**4, axis=0) - 3.0) ** 2))
    return jnp.stack(
        [
            0.5 * jnp.log(power),
            0.5 * jnp.log(jnp.sum(mean_score**2) + 1e-6),
            jnp.mean(jnp.sum(left**2, axis=-1)) / power,
            skewness,
            kurtosis,
        ]
    )


class ReferenceStatistics(eqx.Module):
    """Mean and spread of the features on streams the operator is used to."""

    mean: Float[Array, " f"]
    inverse_scale: Matrix

    def distance(self, points: Points, likelihood: Likelihood) -> Scalar:
        """Mahalanobis distance over √(number of features): about 1 for a step like those seen; 5 is far away."""
        z = self.inverse_scale @ (features(points, likelihood) - self.mean)
        return jnp.sqrt(jnp.mean(z**2))


def with_reference(operator: Operator, reference: ReferenceStatistics) -> Operator:
    """The operator with its reference statistics among its provenance, so that a file says them."""
    known = {"mean": np.asarray(reference.mean).tolist(), "inverse_scale": np.asarray(reference.inverse_scale).tolist()}
    document = operator.provenance.document | {"reference_statistics": known}
    return dataclasses.replace(operator, provenance=Provenance(document))


def reference_of(operator: Operator) -> ReferenceStatistics | None:
    """The operator's reference statistics, if it has any; one that needs no training has none."""
    known = operator.provenance.document.get("reference_statistics")
    return (
        None
        if known is None
        else ReferenceStatistics(*(jnp.asarray(known[name]) for name in ("mean", "inverse_scale")))
    )
