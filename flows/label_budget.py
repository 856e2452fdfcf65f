"""The flow `label_budget`: how good each method is when only some of the training documents have labels.

Features are learnt on all training texts, without labels, or by a method that uses labels on the documents of the
budget; the probe and its C see the labels of the budget alone. The draws are nested and the same for every method
(`evaluation.probes.budgets`).
"""

from typing import Any

from prefect import flow
from prefect.states import State

from textbench.flows.plan.request import LabelBudgetRequest
from textbench.flows.run.label_budgets import run_label_budgets
from textbench.flows.run.prefect_tasks import PrefectTasks, state_of
from textbench.flows.run.run_names import run_name


@flow(name="label_budget", flow_run_name=run_name, log_prints=False)
def label_budget(request: LabelBudgetRequest) -> State[Any]:
    """Run every method at every label budget of every draw, record a curve a method in MLflow, return the cells' rows.

    Cells that are stored are not computed again. The run fails when a cell fails; the other cells are finished first.
    """
    return state_of(run_label_budgets(request, PrefectTasks()))
