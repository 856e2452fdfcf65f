"""The servers beside a run: Prefect's, its worker, and MLflow's page."""
