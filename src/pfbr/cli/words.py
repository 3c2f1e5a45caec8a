"""What several commands say in their help about a model, a method, a file: here, so that help needs nothing else.

Loading the models and methods themselves takes seconds; a test holds these texts to them.
"""

MODELS = ("gaussian-mean", "gaussian-mixture", "linear-dynamics", "logistic-regression")
RIVALS = (
    "exact",
    "prior",
    "smc",
    "smc-multinomial",
    "smc-optimal",
    "smc-one-pass",
    "ibis",
    "aesmc-mlp",
    "aesmc-gru",
    "enkf",
    "daum-huang",
    "daum-huang-local",
    "kbr",
    "kmcf",
    "svi",
    "svi-mean-field",
    "sgld",
    "svgd",
    "pmd",
    "npv",
)
EXPERIMENTS = ("gaussian", "mixture", "lds", "table1", "logistic-meta", "logistic-vi")
TIME_UNITS = ("s", "ms", "us", "min", "h", "D", "W")

SPEC = (
    "The model: a built-in name with optional settings (gaussian-mean:dim=8,observation_std=3; gaussian-mixture; "
    "linear-dynamics:dim=10,seed=0 or linear-dynamics:system=file.npz; logistic-regression:dim=5), or "
    "file.py:attribute for a model of your own."
)
METHOD = (
    "`auto`; `gaussian`, the bare affine flow; `general`, the bare map learned once for every model; `collocation`, a "
    "training-free flow for curved posteriors in few dimensions; a trained operator's file or name (`static-2d`, "
    "`mixture`); or a baseline: " + ", ".join(RIVALS) + "."
)
FORMATS = ".npy (T, k) or (S, T, k), .csv or .parquet (one row an observation), .jsonl (one JSON value a line)"
SEED = "Same seed, same answer."
PARTICLES = "How many particles carry the posterior."
TIME = (
    "The column (or the field of JSON objects) with the times, numbers or dates; the model gets the time between two "
    "observations as `dt`."
)
INPUTS = "The columns with the model's `inputs`, commas between, in the order in which the model wants them."
OBSERVATION = "The columns with the observation, commas between; without it, all that are not named otherwise."
BY = (
    "The column that tells streams apart, in a .csv or .parquet file, or the field of live lines that does (`id`): "
    "each stream has a posterior of its own."
)
START = (
    "The time of the prior, a number or a date: the first `dt` is the first time minus this. In a table with --by or "
    "from .parquet also `first`, the first time of each stream."
)
TIME_UNIT = f"What the model counts time in, where times are dates: {', '.join(TIME_UNITS)}."
