"""What MLflow runs of a logged model: it reads the `.npz` and answers as `textbench transform` does.

MLflow keeps this file as the model's code ("models from code") and runs it when the model is loaded: nothing of it is
pickled.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow

from textbench.flows.explain.export import Model
from textbench.tasks import InputError

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "text"


class ExportedModel(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined]
    """An exported model as MLflow asks for it: a table with a column `text` in, a row a text out."""

    def load_context(self, context: Any) -> None:
        """Read the model's file."""
        self._model = Model.load(Path(context.artifacts["model"]))

    def predict(
        self, context: Any, model_input: "pd.DataFrame", params: dict[str, Any] | None = None
    ) -> "pd.DataFrame":
        """Return label, margin and the value of each class, in columns named as in the CSV of `textbench transform`.

        Several labels of one text have ; between. Raises MlflowException, which servers answer as a bad request, for
        no text, and for one that is blank or no string.
        """
        import pandas as pd
        from mlflow.exceptions import MlflowException

        texts = model_input[COLUMN].tolist()
        blank = [n for n, text in enumerate(texts, 1) if not isinstance(text, str) or not text.strip()]
        if blank or not texts:
            said = f"text {blank[0]} is blank or no string" if blank else "there is no text"
            raise MlflowException.invalid_parameter_value(said)
        try:
            answers = self._model.answer(texts)
        except InputError as error:
            raise MlflowException.invalid_parameter_value(" ".join(str(error).split())) from error
        found = {
            "label": [label if isinstance(label, str) else ";".join(label) for label in answers.labels],
            "margin": answers.margins.astype("float64"),
        }
        columns = {f"{answers.kind}_{n}": answers.values[:, i] for i, n in enumerate(answers.classes)}
        return pd.DataFrame(found | columns).astype(dict.fromkeys(columns, "float64"))


mlflow.models.set_model(ExportedModel())
