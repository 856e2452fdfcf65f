"""Pictures of a search: parallel coordinates over its trials, and which parameters mattered."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import optuna

FEWEST = 3  # finished trials below which a picture says nothing


def draw(space: Mapping[str, str], trials: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write parallel_coordinates.png and importances.png into `folder`; return those that could be drawn.

    `space` (Optuna's JSON of each distribution) and `trials` are those of choice.json. Nothing is drawn of fewer
    than three finished trials, and no importance where all scores are the same or one parameter was searched.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import optuna

    study = _study(space, trials)
    if len(study.get_trials(states=[optuna.trial.TrialState.COMPLETE])) < FEWEST:
        return []
    pictures: dict[str, Callable[..., Any]] = {
        "parallel_coordinates": optuna.visualization.matplotlib.plot_parallel_coordinate
    }
    varied = [name for name in study.trials[0].params if len({str(t.params[name]) for t in study.trials}) > 1]
    if len(varied) > 1 and len({trial.value for trial in study.trials}) > 1:
        pictures["importances"] = optuna.visualization.matplotlib.plot_param_importances
    written = []
    for name, plot in pictures.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plot(study)
        figure = plt.gcf()
        figure.set_size_inches(8, 4.5)
        figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")
        plt.close(figure)
        written.append(folder / f"{name}.png")
    return written


def _study(space: Mapping[str, str], trials: Sequence[Mapping[str, Any]]) -> "optuna.Study":
    """Return the finished trials as a study of Optuna's, C as a parameter where there is one."""
    import optuna
    from optuna.distributions import FloatDistribution, json_to_distribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    values_of_c = [trial["C"] for trial in trials if trial.get("C")]
    for trial in trials:
        if trial["state"] != "complete":
            continue
        params = {name: value for name, value in trial["values"].items() if name in space}
        distributions = {name: json_to_distribution(space[name]) for name in params}
        if trial["C"]:
            params["C"] = trial["C"]
            distributions["C"] = FloatDistribution(min(values_of_c), max(values_of_c), log=True)
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=distributions, value=trial["score"])
        )
    return study
